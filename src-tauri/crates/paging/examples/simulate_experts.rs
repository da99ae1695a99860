//! What caches of experts would have read: `simulate_experts TRACE HELD…`, with a worker's `--expert-trace` and numbers of
//! experts that fit. Prints a line of JSON for each: the experts that are read with two policies, and the least that any
//! could read.

#![expect(clippy::print_stdout, reason = "the results")]

use std::{env, error::Error, fs};
use tierbar_paging::{EvictionPolicy, Trace, belady, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: simulate_experts TRACE HELD…")?;
    let trace = Trace::parse(&fs::read_to_string(path)?)?;
    for held in arguments {
        let held: u64 = held.parse()?;
        let often = EvictionPolicy::LeastFrequent {
            half_life_tokens: 64.0,
        };
        println!(
            r#"{{"held": {held}, "least_recent": {}, "least_frequent": {}, "belady": {}}}"#,
            simulate(&trace, held, EvictionPolicy::LeastRecent).misses,
            simulate(&trace, held, often).misses,
            belady(&trace, held).misses
        );
    }
    Ok(())
}
