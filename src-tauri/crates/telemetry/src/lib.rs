//! The machine's memory readings and the memory of single processes.
//!
//! Reads only: nothing here decides. A [`Sampler`] belongs to one task, which calls [`Sampler::sample`] at its own
//! pace. Readings take well under a millisecond, but [`footprint`] walks a process's mappings in the kernel, which
//! for a large worker may take some milliseconds: call it from a blocking context.

mod growth;
mod platform;
mod sampler;
mod simulate;

pub use platform::footprint;
pub use sampler::{Reading, Sampler, machine_ram};
pub use simulate::{SIMULATE_RAM, parse_size, simulated_ram};
