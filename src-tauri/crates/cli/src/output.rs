//! Output for people: results to stdout, everything else to stderr. A closed stdout ends the program quietly.

use std::io::{self, Write};
use tierbar_core::{
    Error,
    fit::{LineKind, SpeedEstimate},
};

/// Writes to stdout and flushes, so that an answer appears as it streams.
pub(crate) fn write(text: &str) {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if written.is_err() {
        // `tierbar models | head` closes the pipe, which is not an error.
        std::process::exit(0);
    }
}

pub(crate) fn line(text: &str) {
    write(&format!("{text}\n"));
}

/// Writes a line to stderr.
pub(crate) fn error_line(text: &str) {
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

pub(crate) fn error(error: &Error) {
    error_line(&format!("error: {}", error.message));
    if let Some(hint) = &error.hint {
        error_line(&format!("  {hint}"));
    }
}

/// Writes a question without a line break.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _closed = stderr.write_all(text.as_bytes());
    let _closed = stderr.flush();
}

/// Formats a range of speeds with its significant digits.
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

/// Returns the name of a line of a plan.
pub(crate) fn line_name(line: LineKind) -> &'static str {
    match line {
        LineKind::DenseWeights => "Dense weights",
        LineKind::Embeddings => "Embeddings",
        LineKind::PagedWeights => "Weights read from disk",
        LineKind::ResidentExperts => "Experts in memory",
        LineKind::PagedExperts => "Experts read from disk",
        LineKind::KvCache => "KV cache",
        LineKind::ComputeBuffers => "Compute buffers",
        LineKind::Checkpoints => "Context checkpoints",
        LineKind::DraftModel => "Draft model",
        LineKind::Command => "Command",
        LineKind::Projector => "Media projector",
        LineKind::Embedder => "Reserved for embeddings",
        LineKind::App => "Tierbar's windows",
    }
}
