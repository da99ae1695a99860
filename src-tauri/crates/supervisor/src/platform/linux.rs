//! Linux: `/proc/cpuinfo`. On Arm, it gives numbers in place of a name.

use std::fs;

pub(crate) fn processor() -> Option<(String, String)> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |wanted: &[&str]| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| wanted.contains(&name.trim()))
            .map(|(_, value)| value.trim().to_owned())
    };
    let instructions = value(&["flags", "Features"])?;
    let name = value(&["model name", "CPU part"]).unwrap_or_else(|| "unnamed".to_owned());
    Some((name, instructions))
}
