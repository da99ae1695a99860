//! How full we leave a volume.

/// Left free for the system and for what else is being written: 1 GiB.
const MARGIN: u64 = 1 << 30;
/// Of a volume smaller than 20 GiB it is this part.
const MARGIN_SHARE: u64 = 20;

/// Bytes to be left free on a volume of so many.
#[must_use]
pub fn margin(size_bytes: u64) -> u64 {
    MARGIN.min(size_bytes / MARGIN_SHARE)
}
