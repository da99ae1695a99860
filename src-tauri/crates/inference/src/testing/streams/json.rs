//! JSON read slowly, with letters as the halves that were sent.

/// A code unit of a text, or a byte of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    Byte(u8),
    Half(u16),
}

#[derive(Debug, Clone)]
pub(super) enum Json {
    Null,
    /// A number, `true` or `false` as it is written.
    Plain(String),
    Text(Vec<Unit>),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

pub(super) fn decode(units: &[Unit]) -> String {
    let (mut bytes, mut halves, mut text) = (Vec::new(), Vec::new(), String::new());
    for unit in units.iter().map(Some).chain([None]) {
        if !matches!(unit, Some(Unit::Byte(_))) {
            text += &String::from_utf8_lossy(&std::mem::take(&mut bytes));
        }
        if !matches!(unit, Some(Unit::Half(_))) {
            text += &String::from_utf16_lossy(&std::mem::take(&mut halves));
        }
        match unit {
            Some(Unit::Byte(byte)) => bytes.push(*byte),
            Some(Unit::Half(half)) => halves.push(*half),
            None => {}
        }
    }
    text
}

impl Json {
    /// A field; of several the last.
    pub(super) fn get(&self, name: &str) -> Self {
        let Self::Object(fields) = self else {
            return Self::Null;
        };
        let field = fields.iter().rfind(|(field, _)| field == name);
        field.map_or(Self::Null, |(_, value)| value.clone())
    }

    pub(super) fn text(&self) -> Vec<Unit> {
        match self {
            Self::Text(text) => text.clone(),
            Self::Plain(written) => written.bytes().map(Unit::Byte).collect(),
            Self::List(parts) => parts.iter().flat_map(Self::text).collect(),
            Self::Object(_) => self.get("text").text(),
            Self::Null => Vec::new(),
        }
    }

    pub(super) fn written(&self) -> String {
        let list = |items: Vec<String>| items.join(",");
        match self {
            Self::Null => "null".to_owned(),
            Self::Plain(written) => written.clone(),
            Self::Text(text) => format!("{:?}", decode(text)),
            Self::List(items) => format!("[{}]", list(items.iter().map(Self::written).collect())),
            Self::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{name:?}:{}", value.written()));
                format!("{{{}}}", list(fields.collect()))
            }
        }
    }
}

pub(super) struct Parser<'a> {
    pub(super) json: &'a [u8],
    pub(super) at: usize,
}

impl Parser<'_> {
    pub(super) fn blank(&mut self) {
        while matches!(self.json.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over this byte behind blanks.
    fn takes(&mut self, byte: u8) -> bool {
        self.blank();
        let found = self.json.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn value(&mut self) -> Option<Json> {
        if self.takes(b'"') {
            return self.text().map(Json::Text);
        }
        if self.takes(b'[') {
            let mut items = Vec::new();
            while !self.takes(b']') {
                if !items.is_empty() && !self.takes(b',') {
                    return None;
                }
                items.push(self.value()?);
            }
            return Some(Json::List(items));
        }
        if self.takes(b'{') {
            let mut fields = Vec::new();
            while !self.takes(b'}') {
                if !fields.is_empty() && !self.takes(b',') {
                    return None;
                }
                let name = self.takes(b'"').then(|| self.text())??;
                fields.push((decode(&name), self.takes(b':').then(|| self.value())??));
            }
            return Some(Json::Object(fields));
        }
        let rest = &self.json[self.at..];
        let is_plain =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = rest.iter().take_while(is_plain).count();
        self.at += length;
        match std::str::from_utf8(&rest[..length]).ok()? {
            "" => None,
            "null" => Some(Json::Null),
            plain => Some(Json::Plain(plain.to_owned())),
        }
    }

    pub(super) fn text(&mut self) -> Option<Vec<Unit>> {
        let mut units = Vec::new();
        loop {
            let byte = *self.json.get(self.at)?;
            self.at += 1;
            units.push(match byte {
                b'"' => return Some(units),
                b'\\' => {
                    let escape = *self.json.get(self.at)?;
                    self.at += 1;
                    match escape {
                        b'u' => {
                            let digits = self.json.get(self.at..self.at + 4)?;
                            self.at += 4;
                            Unit::Half(
                                u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
                            )
                        }
                        b'n' => Unit::Byte(b'\n'),
                        b'r' => Unit::Byte(b'\r'),
                        b't' => Unit::Byte(b'\t'),
                        b'b' => Unit::Byte(8),
                        b'f' => Unit::Byte(12),
                        other => Unit::Byte(other),
                    }
                }
                byte => Unit::Byte(byte),
            });
        }
    }
}
