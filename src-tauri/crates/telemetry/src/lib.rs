//! The machine's memory readings, its bandwidths, and the memory of single processes.
//!
//! Reads only: nothing here decides. A [`Sampler`] belongs to one task, which calls [`Sampler::sample`] at its own
//! pace (a third of a millisecond on a Linux virtual machine). [`footprint`] has the kernel walk the process's
//! pages, there 20 ms for 2 GiB of anonymous memory: call it from a blocking context.

pub mod bandwidth;
mod growth;
mod platform;
mod sampler;
mod simulate;

pub use platform::footprint;
pub use sampler::{Reading, Sampler, machine_ram};
pub use simulate::{
    SIMULATE_METAL, SIMULATE_RAM, parse_size, simulated_ram, simulated_working_set, working_set,
};
