//! The published memory bandwidth of Apple's chips.

const GB: u64 = 1_000_000_000;

/// A chip, the fewest GPU cores of the variant, and what Apple publishes, in GB/s. Of two variants, the larger comes first.
///
/// From the announcement of each chip (apple.com/newsroom: M1 Pro and Max on 2021-10-18, M1 Ultra on 2022-03-08, M2 on 2022-06-06, M2 Pro
/// and Max on 2023-01-17, M2 Ultra on 2023-06-05, M3 family on 2023-10-30, M4 on 2024-05-07, M4 Pro and Max on 2024-10-30, M3 Ultra on
/// 2025-03-05, M5 on 2025-10-15, M5 Pro and Max on 2026-03-03, MacBook Neo on 2026-03-04); of the M1, from that of the M2, which has "50
/// percent more". Of the smaller Max variants, from the technical specifications of the MacBook Pro.
const CHIPS: [(&str, usize, u64); 22] = [
    ("A18 Pro", 0, 60),
    ("M1", 0, 68),
    ("M1 Pro", 0, 200),
    ("M1 Max", 0, 400),
    ("M1 Ultra", 0, 800),
    ("M2", 0, 100),
    ("M2 Pro", 0, 200),
    ("M2 Max", 0, 400),
    ("M2 Ultra", 0, 800),
    ("M3", 0, 100),
    ("M3 Pro", 0, 150),
    ("M3 Max", 40, 400),
    ("M3 Max", 0, 300),
    ("M3 Ultra", 0, 819),
    ("M4", 0, 120),
    ("M4 Pro", 0, 273),
    ("M4 Max", 40, 546),
    ("M4 Max", 0, 410),
    ("M5", 0, 153),
    ("M5 Pro", 0, 307),
    ("M5 Max", 40, 614),
    ("M5 Max", 0, 460),
];

/// Returns the bytes per second for a processor by its brand, such as `Apple M4 Max`; of the smaller variant if the number of GPU
/// cores is unknown. `None` for others, among them the processor of a virtual Mac.
pub fn published_bandwidth(processor: &str, gpu_cores: Option<usize>) -> Option<u64> {
    let name = processor.trim().strip_prefix("Apple ")?;
    let cores = gpu_cores.unwrap_or(0);
    CHIPS
        .iter()
        .find(|(chip, least, _)| *chip == name && cores >= *least)
        .map(|(.., rate)| rate * GB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_has_the_bandwidth_of_its_variant() {
        for (processor, gpu_cores, rate) in [
            ("Apple M1", Some(8), Some(68)),
            ("Apple M4", None, Some(120)),
            ("Apple M3 Max", Some(30), Some(300)),
            ("Apple M3 Max", Some(40), Some(400)),
            ("Apple M4 Max", None, Some(410)),
            ("Apple M4 Max", Some(32), Some(410)),
            ("Apple M4 Max", Some(40), Some(546)),
            ("Apple M5", Some(10), Some(153)),
            ("Apple M5 Max", Some(32), Some(460)),
            ("Apple M5 Max", Some(40), Some(614)),
            ("Apple M1 (Virtual)", None, None),
            ("Apple M9", Some(10), None),
            ("Intel(R) Core(TM) i7-1068NG7 CPU @ 2.30GHz", None, None),
            ("", None, None),
        ] {
            let found = published_bandwidth(processor, gpu_cores);
            assert_eq!(found, rate.map(|rate| rate * GB), "{processor}");
        }
    }
}
