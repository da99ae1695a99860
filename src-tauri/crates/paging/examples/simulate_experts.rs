//! What caches of experts would have read. `simulate_experts TRACE HELD…`, with a worker's `--expert-trace` and numbers of
//! experts that fit, prints a line of JSON for each: the experts that ours reads, one that evicts what was used longest ago, one
//! that evicts what was used least, and the least that any could read. Without arguments, it prints a table of the traces that the
//! tests have: what ours reads, by what the better one of the second and the third does.

#![expect(clippy::print_stdout, reason = "the results")]

use std::{env, error::Error, fs};
use tierbar_paging::{EvictionPolicy, Trace, belady, least_frequent, least_recent, simulate};

#[path = "../src/simulate/traces.rs"]
mod traces;

/// Percent of all experts.
const SHARES: [u64; 6] = [10, 20, 25, 40, 60, 80];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let Some(path) = arguments.next() else {
        print_table();
        return Ok(());
    };
    let trace = Trace::parse(&fs::read_to_string(path)?)?;
    for held in arguments {
        let held: u64 = held.parse()?;
        println!(
            r#"{{"held": {held}, "ours": {}, "least_recent": {}, "least_frequent": {}, "belady": {}}}"#,
            simulate(&trace, held, EvictionPolicy::LeastLikely).misses,
            least_recent(&trace, held).misses,
            least_frequent(&trace, held).misses,
            belady(&trace, held).misses
        );
    }
    Ok(())
}

fn print_table() {
    println!(
        "| held | {} |",
        SHARES.map(|share| format!("{share} %")).join(" | ")
    );
    println!("|---|{}", "---|".repeat(SHARES.len()));
    for (name, trace) in traces::all() {
        let row = SHARES.map(|share| {
            let held = trace.experts() as u64 * share / 100;
            let ours = simulate(&trace, held, EvictionPolicy::LeastLikely).misses;
            let recent = least_recent(&trace, held).misses;
            let better = recent.min(least_frequent(&trace, held).misses);
            format!("{:.2}", ours as f64 / better as f64)
        });
        println!("| {name} | {} |", row.join(" | "));
    }
}
