//! Sizes as people read them. Memory is counted in binary units ([`crate::budget::gib`]), what is on disk or on the network in decimal
//! ones, as the Finder and the model hubs do.

/// Formats the size of a file or a download: decimal units, with one decimal from a gigabyte on.
pub fn file_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000, "KB"), (1_000_000, "MB"), (1_000_000_000, "GB")];
    // 999.7 MB would read 1000 MB: the next unit begins where rounding reaches it.
    let (size, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..999_500 => UNITS[0],
        999_500..999_500_000 => UNITS[1],
        _ => UNITS[2],
    };
    if unit != "GB" {
        return format!("{} {unit}", (bytes + size / 2) / size);
    }
    let tenths = bytes / (size / 10) + u64::from(bytes % (size / 10) >= size / 20);
    match tenths % 10 {
        0 => format!("{} GB", tenths / 10),
        tenth => format!("{}.{tenth} GB", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_decimal_units_as_in_the_window() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_500, "2 KB"),
            (98_200_000, "98 MB"),
            (999_700_000, "1 GB"),
            (1_000_000_000, "1 GB"),
            (4_949_999_999, "4.9 GB"),
            (4_950_000_000, "5 GB"),
            (11_400_000_000, "11.4 GB"),
        ] {
            assert_eq!(file_size(bytes), text);
        }
        assert!(file_size(u64::MAX).ends_with(" GB"));
    }
}
