//! The pieces of a header, even a damaged one, for the mutations. It shares no check with the reader.

/// The pieces of a header. The counts in front are recomputed when it is written.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub version: [u8; 4],
    pub pairs: Vec<Pair>,
    pub tensors: Vec<Tensor>,
    /// The rest of the file.
    pub rest: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Pair {
    pub key: Vec<u8>,
    pub kind: u32,
    pub value: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Tensor {
    pub name: Vec<u8>,
    pub shape: Vec<u64>,
    pub kind: u32,
    pub offset: u64,
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Returns the bytes of a value of this type, if the size is fixed.
#[must_use]
pub fn size(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Bytes to be taken from the front.
struct Front<'a>(&'a [u8]);

impl<'a> Front<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        self.take(length)
    }

    fn value(&mut self, kind: u32) -> Option<()> {
        match kind {
            STRING => self.string().map(|_| ()),
            ARRAY => {
                let element = self.u32()?;
                let length = usize::try_from(self.u64()?).ok()?;
                match size(element) {
                    Some(bytes) => self.take(length.checked_mul(bytes)?).map(|_| ()),
                    None if element == STRING => {
                        (0..length).try_for_each(|_| self.string().map(|_| ()))
                    }
                    None => None,
                }
            }
            scalar => self.take(size(scalar)?).map(|_| ()),
        }
    }

    fn pair(&mut self) -> Option<Pair> {
        let key = self.string()?.to_vec();
        let kind = self.u32()?;
        let before = self.0;
        self.value(kind)?;
        let value = before[..before.len() - self.0.len()].to_vec();
        Some(Pair { key, kind, value })
    }

    fn tensor(&mut self) -> Option<Tensor> {
        let name = self.string()?.to_vec();
        let dimensions = self.u32()?.min(16);
        let shape = (0..dimensions).map(|_| self.u64()).collect::<Option<_>>()?;
        Some(Tensor {
            name,
            shape,
            kind: self.u32()?,
            offset: self.u64()?,
        })
    }
}

impl Layout {
    /// Returns `None` if the pieces cannot be found.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut front = Front(bytes);
        (front.take(4)? == b"GGUF").then_some(())?;
        let version = front.take(4)?.try_into().ok()?;
        let (tensors, pairs) = (front.u64()?, front.u64()?);
        Some(Self {
            version,
            pairs: (0..pairs).map(|_| front.pair()).collect::<Option<_>>()?,
            tensors: (0..tensors)
                .map(|_| front.tensor())
                .collect::<Option<_>>()?,
            rest: front.0.to_vec(),
        })
    }

    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let string = |bytes: &[u8]| [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
        let mut file = [&b"GGUF"[..], &self.version].concat();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64).to_le_bytes());
        for pair in &self.pairs {
            file.extend(string(&pair.key));
            file.extend(pair.kind.to_le_bytes());
            file.extend(&pair.value);
        }
        for tensor in &self.tensors {
            file.extend(string(&tensor.name));
            file.extend((tensor.shape.len() as u32).to_le_bytes());
            file.extend(tensor.shape.iter().flat_map(|size| size.to_le_bytes()));
            file.extend(tensor.kind.to_le_bytes());
            file.extend(tensor.offset.to_le_bytes());
        }
        file.extend(&self.rest);
        file
    }

    /// The same header with the first `most` elements of each list and as many embeddings, so that it fits a fuzzer.
    #[must_use]
    pub fn shortened(mut self, most: u64) -> Self {
        for pair in self.pairs.iter_mut().filter(|pair| pair.kind == ARRAY) {
            let mut front = Front(&pair.value);
            let (Some(element), Some(length)) = (front.u32(), front.u64()) else {
                continue;
            };
            let length = length.min(most);
            let elements = front.0;
            for _ in 0..length {
                let _ = front.value(element);
            }
            let kept = &elements[..elements.len() - front.0.len()];
            pair.value = [&element.to_le_bytes()[..], &length.to_le_bytes(), kept].concat();
        }
        let offsets: Vec<u64> = self.tensors.iter().map(|tensor| tensor.offset).collect();
        let mut less = 0;
        for (number, tensor) in self.tensors.iter_mut().enumerate() {
            tensor.offset -= less;
            let Some(next) = offsets.get(number + 1) else {
                continue;
            };
            if let [_, rows] = &mut tensor.shape[..]
                && tensor.name.starts_with(b"token_embd")
                && *rows > most
            {
                let of_row = (next - offsets[number]) / *rows;
                less += of_row * (*rows - most);
                *rows = most;
            }
        }
        self
    }
}
