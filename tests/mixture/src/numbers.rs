//! Random numbers that are the same on each machine and each day.

/// The next of a sequence of numbers of 24 bits.
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}

/// A number between −1 and 1.
pub(crate) fn signed(state: &mut u32) -> f32 {
    to_signed(next(state))
}

/// The numbers from 0 to `count` in another order.
pub(crate) fn shuffled(count: usize, seed: u32) -> Vec<usize> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, next(&mut state) as usize % (at + 1));
    }
    order
}

/// The lower 24 bits as a number between −1 and 1.
fn to_signed(bits: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "24 bits")]
    let number = (bits & 0x00ff_ffff) as f32;
    number / 8_388_608.0 - 1.0
}

/// Random bytes, eight at a time: tests write 100 MB of them.
pub(crate) struct Stream(u64);

impl Stream {
    /// A stream that is a name's own.
    pub(crate) fn of(name: &str) -> Self {
        // FNV-1a.
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// SplitMix64.
    fn next(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)).to_le_bytes()
    }

    pub(crate) fn append(&mut self, count: usize, to: &mut Vec<u8>) {
        let end = to.len() + count;
        while to.len() < end {
            to.extend_from_slice(&self.next());
        }
        to.truncate(end);
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next()[..part.len()]);
        }
        bytes
    }

    /// A number between −1 and 1.
    pub(crate) fn signed(&mut self) -> f32 {
        to_signed(u32::from_le_bytes(self.bytes()))
    }
}
