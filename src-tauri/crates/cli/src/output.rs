//! Writing for people: results to stdout, everything else to stderr. A reader that has gone ends the program quietly.

use std::io::{self, Write};
use tierbar_core::{
    Error,
    fit::{LineKind, SpeedEstimate},
};

/// Writes to stdout and flushes, so that words appear as they come.
pub(crate) fn write(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if written.is_err() {
        // `tierbar models | head`: nobody reads on, and there is nobody to tell.
        std::process::exit(0);
    }
}

pub(crate) fn line(text: &str) {
    write(&format!("{text}\n"));
}

/// A line beside the results.
pub(crate) fn error_line(text: &str) {
    let _nobody_reads = writeln!(io::stderr().lock(), "{text}");
}

pub(crate) fn error(error: &Error) {
    error_line(&format!("error: {}", error.message));
    if let Some(hint) = &error.hint {
        error_line(&format!("  {hint}"));
    }
}

/// A question, whose answer is typed behind it.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody_reads = stderr.write_all(text.as_bytes());
    let _nobody_reads = stderr.flush();
}

/// A range of speeds, with as many digits as it means.
pub(crate) fn speeds(SpeedEstimate { low, high, .. }: SpeedEstimate) -> String {
    let digits = |rate: f64| {
        if rate < 10.0 {
            format!("{rate:.1}")
        } else {
            format!("{rate:.0}")
        }
    };
    format!("{}–{} tok/s", digits(low), digits(high))
}

/// A line of a plan.
pub(crate) fn line_name(line: LineKind) -> &'static str {
    match line {
        LineKind::DenseWeights => "Dense weights",
        LineKind::Embeddings => "Embeddings",
        LineKind::PagedWeights => "Weights read from the disk",
        LineKind::ResidentExperts => "Experts in memory",
        LineKind::PagedExperts => "Experts read from the disk",
        LineKind::KvCache => "KV cache",
        LineKind::ComputeBuffers => "Compute buffers",
        LineKind::Checkpoints => "Context checkpoints",
        LineKind::DraftModel => "Draft model",
        LineKind::Command => "What the command takes",
        LineKind::Projector => "Media projector",
        LineKind::Embedder => "Slot for an embedding model",
        LineKind::App => "Tierbar's windows",
    }
}
