//! The kernel's powercap counters of Intel's and AMD's processors. On most systems, only root may read them.

use super::read_line;
use crate::energy::PackageCounter;
use std::{fs, path::Path};

/// Returns the counter of each processor package; none where there is none, or it may not be read.
pub(crate) fn energy() -> Vec<PackageCounter> {
    read_packages(Path::new("/sys/class/powercap"))
}

/// A package's folder is `intel-rapl:0`; those of its parts, such as `intel-rapl:0:0`, are contained in it, and the domain `psys`
/// contains it.
fn read_packages(folder: &Path) -> Vec<PackageCounter> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let package = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix("intel-rapl:")?;
        if number.contains(':') {
            return None;
        }
        let file = |file: &str| read_line(&entry.path(), file);
        let figure = |name: &str| file(name)?.parse().ok();
        if !file("name")?.starts_with("package") {
            return None;
        }
        Some(PackageCounter {
            microjoules: figure("energy_uj")?,
            range: figure("max_energy_range_uj")?,
            name,
        })
    };
    entries.filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_without_their_parts() {
        let folder = tempfile::tempdir().unwrap();
        for (domain, name, energy) in [
            ("intel-rapl:0", "package-0\n", "12345\n"),
            ("intel-rapl:0:0", "core\n", "1000\n"),
            ("intel-rapl:1", "psys\n", "99999\n"),
            ("intel-rapl:2", "package-1\n", "not a number\n"),
        ] {
            let domain = folder.path().join(domain);
            fs::create_dir(&domain).unwrap();
            fs::write(domain.join("name"), name).unwrap();
            fs::write(domain.join("energy_uj"), energy).unwrap();
            fs::write(domain.join("max_energy_range_uj"), "262143328850\n").unwrap();
        }
        let package = PackageCounter {
            name: "intel-rapl:0".to_owned(),
            microjoules: 12345,
            range: 262_143_328_850,
        };
        assert_eq!(read_packages(folder.path()), [package]);
        assert!(read_packages(&folder.path().join("none")).is_empty());
    }
}
