//! The processor of the machine that this runs on. The build script reads it, too.

#[cfg(target_os = "linux")]
#[path = "platform/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "platform/macos.rs"]
mod system;

/// A processor, as its system describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Processor {
    /// Such as `Apple M4`.
    pub(crate) name: String,
    /// The names of its optional instructions, on one line.
    pub(crate) instructions: String,
}

impl Processor {
    /// Returns the processor of this machine, or nothing if the system does not say.
    pub(crate) fn of_this_machine() -> Option<Self> {
        system::processor().map(|(name, instructions)| Self { name, instructions })
    }
}
