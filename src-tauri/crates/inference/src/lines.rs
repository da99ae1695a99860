//! A stream's bytes as whole lines.

/// Holds the line whose end has not arrived.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Returns the lines that these bytes complete, each with its end; empty if they complete none. The rest waits for its end, which is
    /// only looked for in what arrives.
    pub fn complete(&mut self, bytes: &[u8]) -> Vec<u8> {
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        let (ending, rest) = bytes.split_at(end.map_or(0, |end| end + 1));
        if ending.is_empty() {
            self.partial.extend_from_slice(rest);
            return Vec::new();
        }
        self.partial.extend_from_slice(ending);
        std::mem::replace(&mut self.partial, rest.to_vec())
    }

    /// Returns the number of bytes of the line whose end has not arrived.
    pub fn pending(&self) -> usize {
        self.partial.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_complete_with_its_end() {
        let mut lines = Lines::default();
        assert_eq!(lines.complete(b"da"), b"");
        assert_eq!(lines.complete(b""), b"");
        assert_eq!(lines.pending(), 2);
        assert_eq!(lines.complete(b"ta: 1\n\nda"), b"data: 1\n\n");
        assert_eq!(lines.complete(b"ta: 2\n"), b"data: 2\n");
        assert_eq!(lines.complete(b"\n"), b"\n");
    }
}
