//! Streams of a chat that are broken as servers break them, and a slow reader that shares nothing with what it is compared with. It uses
//! no other module.

mod json;

use json::{Json, Parser, Unit, decode};

/// A small pseudo-random generator: each stream follows from its seed.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

const TEXTS: [&str; 8] = [
    "Hello",
    " wörld",
    "日本",
    "a😀b",
    "\n\"q\"\\",
    "👩‍👩",
    " {\"choices\":",
    ".",
];

/// A stream as a server may well send it: nothing of it may be lost.
pub(crate) fn stream(dice: &mut Dice) -> Vec<u8> {
    let end = dice.one(&["\n\n", "\r\n\r\n", "\r\r"]);
    let mut events: Vec<Vec<u8>> = Vec::new();
    for _ in 0..=dice.below(6) {
        let field = dice.one(&["content", "content", "content", "reasoning_content"]);
        for text in pieces(dice.one(&TEXTS), dice) {
            let open = format!("{{\"choices\":[{{\"index\":0,\"delta\":{{\"{field}\":\"");
            events.push([open.as_bytes(), &text, b"\"},\"finish_reason\":null}]}"].concat());
        }
    }
    let calls = dice.below(4).saturating_sub(1);
    for number in 0..calls {
        let index = dice.one(&["", "\"index\":0,"]);
        let index = if number == 0 { index } else { "" };
        let arguments = dice.one(&["{\"a\":1}", "\"{\\\"a\\\":1}\"", "\"\""]);
        events.push(format!("{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}\"id\":\"c{number}\",\"function\":{{\"name\":\"look\",\"arguments\":{arguments}}}}}]}}}}]}}").into_bytes());
    }
    let reason = dice.one(&["stop", "length"]);
    events.push(
        format!("{{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}")
            .into_bytes(),
    );
    if dice.below(4) > 0 {
        events.push(b"[DONE]".to_vec());
    }
    let mut stream = dice
        .one(&["", "", "\u{feff}", ": waits\n\n"])
        .as_bytes()
        .to_vec();
    for event in events {
        let between = [
            "",
            "",
            "",
            "data: null",
            "data:",
            "event: message",
            ": ping",
        ];
        let between = dice.one(&between);
        if !between.is_empty() {
            stream.extend([between, end].concat().bytes());
        }
        stream.extend_from_slice(b"data: ");
        // JSON may go on in another line between its values.
        match (dice.below(6), event.iter().position(|byte| *byte == b'[')) {
            (0, Some(at)) if event.len() > 6 => {
                stream.extend([&event[..=at], b"\ndata: ", &event[at + 1..]].concat());
            }
            _ => stream.extend(event),
        }
        stream.extend(end.bytes());
    }
    stream
}

/// A text as the insides of JSON's strings: whole, or cut in two anywhere.
fn pieces(text: &str, dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let escapes = dice.below(2) == 0;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => units.push(format!("\\{letter}").into_bytes()),
            '\n' => units.push(b"\\n".to_vec()),
            letter if letter.is_ascii() => units.push(vec![letter as u8]),
            letter if escapes => {
                let halves = letter.encode_utf16(&mut [0; 2]).to_vec();
                units.extend(
                    halves
                        .iter()
                        .map(|half| format!("\\u{half:04x}").into_bytes()),
                );
            }
            letter => units.extend(letter.to_string().bytes().map(|byte| vec![byte])),
        }
    }
    let at = dice.below(units.len() * 2);
    let (one, two) = units.split_at(at.min(units.len()));
    let pieces = [one, two].map(|units| units.concat());
    pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Breaks a stream in one place.
pub(crate) fn mutate(stream: &mut Vec<u8>, dice: &mut Dice) {
    let (at, other) = (dice.below(stream.len()), dice.below(stream.len()));
    let (from, to) = (at.min(other), at.max(other));
    match dice.below(9) {
        0 => stream[at] ^= 1_u8 << dice.below(8),
        1 => drop(stream.remove(at)),
        2 => drop(stream.drain(from..to.min(from + 9))),
        3 => stream.insert(
            at,
            dice.one(&[
                &b'\n', &b'\r', &b'"', &b'\\', &b'{', &b'}', &0xff, &0x9f, &0xf0,
            ])
            .to_owned(),
        ),
        4 => stream.truncate(at),
        5 => {
            let copy = stream[from..to].to_vec();
            drop(stream.splice(at..at, copy));
        }
        6 => {
            let more = dice.one(&[
                "data: null\n\n",
                "\n\n",
                "\ndata: ",
                "\u{feff}",
                "{}",
                "data: {}\n\n",
                "x: {\n",
                "\\ud83d",
                "\\ude00",
            ]);
            drop(stream.splice(at..at, more.bytes()));
        }
        // An empty line is lost.
        7 => {
            if let Some(found) = stream[at..].windows(2).position(|pair| pair == b"\n\n") {
                stream.remove(at + found);
            }
        }
        // A text without its quotes, or with others'.
        _ => {
            if let Some(found) = stream[at..].iter().position(|byte| *byte == b'"') {
                stream[at + found] = *dice.one(&[b" ", b"7", b"'"]).first().unwrap_or(&b' ');
            }
        }
    }
    if stream.is_empty() {
        stream.push(b'\n');
    }
}

/// What a stream says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// The arguments of each call.
    pub(crate) calls: Vec<String>,
    /// Something could not be read, or is an error.
    pub(crate) lost: bool,
    /// It has a reason to end, or the last event.
    pub(crate) ends: bool,
}

impl Reading {
    /// The same without what stands for letters that are lost.
    pub(crate) fn letters(self) -> Self {
        let letters = |text: String| text.replace('\u{fffd}', "");
        Self {
            text: letters(self.text),
            reasoning: letters(self.reasoning),
            calls: self.calls.into_iter().map(letters).collect(),
            ..self
        }
    }
}

/// Reads a whole stream. A line ends with a line feed, a carriage return or both; a carriage return at the end may be half of one.
pub(crate) fn read(stream: &[u8]) -> Reading {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let stream = stream.strip_suffix(b"\r").unwrap_or(stream);
    let mut unified = Vec::new();
    for (at, byte) in stream.iter().enumerate() {
        let is_half = *byte == b'\n' && at > 0 && stream[at - 1] == b'\r';
        match byte {
            _ if is_half => {}
            b'\r' => unified.push(b'\n'),
            byte => unified.push(*byte),
        }
    }
    let stream = unified;
    let mut reader = Reader::default();
    let mut data: Vec<u8> = Vec::new();
    let mut lines = stream.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if reader.done {
            break;
        }
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if line.is_empty() && lines.peek().is_some() {
            reader.unread(&std::mem::take(&mut data));
        } else if name == b"data" && line.len() > 4 {
            data.push(b'\n');
            data.extend_from_slice(&line[5..]);
            // No event begins with what is neither blank nor an object.
            let is_other = !data.contains(&b'{') && !data.trim_ascii().is_empty();
            if reader.event(&data) || is_other {
                data.clear();
            }
        } else if lines.peek().is_none() {
            // Its end has not come: it is no line yet.
        } else if !matches!(name, b"event" | b"id" | b"retry" | b"data") && !line.starts_with(b":")
        {
            reader.unread(line);
        }
    }
    reader.end()
}

#[derive(Debug, Default)]
struct Reader {
    text: Vec<Unit>,
    reasoning: Vec<Unit>,
    calls: Vec<(String, Vec<Unit>)>,
    lost: bool,
    ends: bool,
    done: bool,
}

impl Reader {
    fn unread(&mut self, data: &[u8]) {
        self.lost |= data.contains(&b'{');
    }

    /// Whether it is one.
    fn event(&mut self, data: &[u8]) -> bool {
        let data = data.trim_ascii();
        if data.is_empty() {
            return false;
        }
        if data == b"[DONE]" {
            (self.done, self.ends) = (true, true);
            return true;
        }
        let data = data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(data);
        let mut parser = Parser { json: data, at: 0 };
        let event = parser.value().filter(|_| {
            parser.blank();
            parser.at == data.len()
        });
        let Some(event) = event else { return false };
        if !matches!(event, Json::Object(_)) {
            self.unread(data);
            return true;
        }
        self.lost |= !matches!(event.get("error"), Json::Null);
        let choices = match event.get("choices") {
            Json::Null => Vec::new(),
            Json::List(choices) => choices,
            _ => {
                self.lost = true;
                Vec::new()
            }
        };
        for choice in choices {
            let index = choice.get("index");
            if matches!(&index, Json::Null) || matches!(&index, Json::Plain(zero) if zero == "0") {
                self.choice(&choice);
            }
        }
        true
    }

    fn choice(&mut self, choice: &Json) {
        let delta = choice.get("delta");
        self.lost |= !matches!(choice, Json::Object(_));
        self.lost |= !matches!(delta, Json::Object(_) | Json::Null);
        self.text.extend(delta.get("content").text());
        self.reasoning.extend(delta.get("reasoning_content").text());
        if let Json::List(calls) = delta.get("tool_calls") {
            for call in calls {
                let id = decode(&call.get("id").text());
                let known = self
                    .calls
                    .iter()
                    .position(|(known, _)| *known == id && !id.is_empty());
                let at = known.unwrap_or(self.calls.len());
                if known.is_none() {
                    self.calls.push((id, Vec::new()));
                }
                let arguments = match call.get("function").get("arguments") {
                    Json::Text(text) => text,
                    Json::Null => Vec::new(),
                    json => json.written().bytes().map(Unit::Byte).collect(),
                };
                self.calls[at].1.extend(arguments);
            }
        }
        self.ends |=
            matches!(choice.get("finish_reason"), Json::Text(reason) if !reason.is_empty());
    }

    fn end(self) -> Reading {
        Reading {
            text: decode(&self.text),
            reasoning: decode(&self.reasoning),
            calls: self.calls.iter().map(|(_, call)| decode(call)).collect(),
            lost: self.lost,
            ends: self.ends,
        }
    }
}
