//! What the machine is: its system and its processor.

use crate::platform;
use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// A machine, in the words of its system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Such as `macOS 26.1`.
    pub system: String,
    pub processor: String,
    /// All cores, with those of hyper-threading.
    pub cores: usize,
    /// Physical performance cores; without a difference, all physical cores.
    pub fast_cores: Option<usize>,
    /// Of Apple's GPU.
    pub gpu_cores: Option<usize>,
}

/// Reads it. Blocking.
pub fn hardware() -> Hardware {
    let read = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let known = System::new_with_specifics(read).ok();
    let cores = known.as_ref().map_or(&[][..], System::cpus);
    let name = System::name().unwrap_or_else(|_| std::env::consts::OS.to_owned());
    // A system calls itself Darwin where its users know macOS.
    let name = if name == "Darwin" { "macOS" } else { &name };
    let version = System::os_version().unwrap_or_default();
    let processor = cores.first().map(|core| core.brand().trim().to_owned());
    Hardware {
        system: format!("{name} {version}").trim_end().to_owned(),
        processor: processor.unwrap_or_default(),
        cores: cores.len(),
        fast_cores: fast_cores(),
        gpu_cores: platform::gpu_cores(),
    }
}

/// Returns the number of physical performance cores; without a difference, of all physical cores: hyper-threads of one core share
/// its arithmetic units.
pub fn fast_cores() -> Option<usize> {
    platform::performance_cores().or_else(|| System::physical_core_count().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_a_system_and_cores() {
        let found = super::hardware();
        assert!(
            !found.system.is_empty() && !found.processor.is_empty(),
            "{found:?}"
        );
        assert!(found.cores >= found.fast_cores.unwrap_or(1), "{found:?}");
        assert!(found.fast_cores != Some(0), "{found:?}");
    }
}
