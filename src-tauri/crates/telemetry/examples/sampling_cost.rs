//! What taking readings costs: `make bench-readings`.
//!
//! Takes one reading per second with all figures, as the host does while a window is open, and prints the share of one core
//! that this takes. Then takes readings back to back, for the time of one.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the pace is what is measured")]

use std::{
    thread,
    time::{Duration, Instant},
};
use tierbar_telemetry::{Sampler, cpu_ms};

const RUN: u32 = 2000;

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(30_u32);
    let mut sampler = Sampler::default();
    println!("{:#?}", sampler.sample());

    let mut spent = Vec::new();
    for _ in 0..seconds {
        thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        sampler.sample();
        spent.push(began.elapsed());
    }
    let total: Duration = spent.iter().sum();
    spent.sort_unstable();
    println!(
        "once a second for {seconds} s: {:.3} % of a core; median {:?}, longest {:?}",
        total.as_secs_f64() / f64::from(seconds) * 100.0,
        spent.get(spent.len() / 2).copied().unwrap_or_default(),
        spent.last().copied().unwrap_or_default()
    );

    let cpu = || cpu_ms(std::process::id()).unwrap_or(0);
    let (before, began) = (cpu(), Instant::now());
    for _ in 0..RUN {
        sampler.sample();
    }
    println!(
        "{RUN} in a row: {:.1} µs of CPU each, {:.1} µs each",
        (cpu() - before) as f64 * 1000.0 / f64::from(RUN),
        began.elapsed().as_secs_f64() * 1e6 / f64::from(RUN)
    );
}
