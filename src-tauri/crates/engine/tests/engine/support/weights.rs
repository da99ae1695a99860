//! Model files of weights that mean nothing, the same on any machine.

const ALIGNMENT: usize = 32;

#[derive(Default)]
pub(crate) struct Gguf {
    pairs: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
    state: u32,
}

impl Gguf {
    pub(crate) fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.pairs
            .push([&string(key)[..], &kind.to_le_bytes(), value].concat());
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.pair(key, 8, &string(text));
    }

    pub(crate) fn flag(&mut self, key: &str) {
        self.pair(key, 7, &[1]);
    }

    pub(crate) fn number(&mut self, key: &str, number: u32) {
        self.pair(key, 4, &number.to_le_bytes());
    }

    /// A list of elements of that kind, one behind the other.
    pub(crate) fn list(&mut self, key: &str, kind: u32, elements: &[Vec<u8>]) {
        let head = [
            &kind.to_le_bytes()[..],
            &(elements.len() as u64).to_le_bytes(),
        ];
        self.pair(key, 9, &[head.concat(), elements.concat()].concat());
    }

    /// A tensor of numbers between `-size` and `size`.
    pub(crate) fn weights(&mut self, name: &str, shape: &[u32], size: f32) {
        self.weights_at(name, shape, 0.0, size);
    }

    /// They are so far from the middle, at most.
    pub(crate) fn weights_at(&mut self, name: &str, shape: &[u32], middle: f32, size: f32) {
        let mut entry = string(name);
        entry.extend(u32::try_from(shape.len()).unwrap().to_le_bytes());
        entry.extend(shape.iter().flat_map(|&side| u64::from(side).to_le_bytes()));
        entry.extend(0_u32.to_le_bytes());
        entry.extend((self.data.len() as u64).to_le_bytes());
        self.tensors.push(entry);
        for _ in 0..shape.iter().product() {
            self.state = self
                .state
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            let unit = f32::from(u16::try_from(self.state >> 16).unwrap()) / 32768.0 - 1.0;
            self.data.extend(unit.mul_add(size, middle).to_le_bytes());
        }
        self.data
            .resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64).to_le_bytes());
        file.extend(self.pairs.concat());
        file.extend(self.tensors.concat());
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(&self.data);
        file
    }
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}
