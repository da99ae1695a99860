//! What is printed below an answer: its speed, its wait, and how full its context is.

use crate::output;
use std::io::IsTerminal;
use tierbar_chats::{AnswerFacts, ExpertReads, context::ContextUse};
use tierbar_core::units::file_size;

pub(super) fn show_speed(tier: &str, rate: f64, wait: &str, experts: Option<ExpertReads>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let experts = experts.map_or_else(String::new, |reads| describe_reads(&reads));
    output::error_line(&format!("\n[{tier} · {rate:.1} tok/s{wait}{experts}]"));
}

/// The time to the first token and its parts, as in the chat window.
pub(super) fn describe_wait(answer: &AnswerFacts) -> String {
    let Some(first) = answer.time_to_first_token_ms else {
        return String::new();
    };
    let times = answer.times.unwrap_or_default();
    let seconds = |ms: f64| format!("{:.1} s", ms / 1000.0);
    let parts = [(times.load_ms, "load"), (times.prefill_ms, "prompt")];
    let parts = parts.into_iter().filter_map(|(ms, what)| {
        let ms = ms.filter(|ms| *ms >= 50.0)?;
        Some(format!("{what} {}", seconds(ms)))
    });
    let parts: Vec<_> = parts.collect();
    let first = seconds(first);
    match parts.as_slice() {
        [] => format!(" · {first} to first token"),
        parts => format!(" · {first} to first token ({})", parts.join(", ")),
    }
}

pub(super) fn describe_nearly_full(used: ContextUse) -> Option<String> {
    let tokens = used.prompt_tokens + used.answer_tokens;
    used.is_nearly_full().then(|| {
        format!(
            "The context is nearly full: {tokens} of {} tokens ({} %).",
            used.context_tokens,
            used.percent()
        )
    })
}

/// As the chat window has it below an answer.
fn describe_reads(reads: &ExpertReads) -> String {
    let mut text = String::new();
    if reads.read_bytes > 0 || reads.approximated.is_none() {
        let what = if reads.layers { "layers" } else { "experts" };
        let part = (reads.hit_rate * 100.0).floor();
        text = format!(" · {part} % of {what} in memory, {}", describe_bytes(reads));
    }
    if let Some(approximated) = reads.approximated {
        let part = (approximated.changed * 100.0).ceil();
        text += &format!(" · approximate: {part} % of experts replaced or left out");
    }
    text
}

fn describe_bytes(reads: &ExpertReads) -> String {
    // Older answers were stored without their number of tokens.
    let Some(read) = reads.read_bytes.checked_div(reads.tokens) else {
        return format!("{} read from disk", file_size(reads.read_bytes));
    };
    let read = file_size(read);
    match reads.wait_ms {
        Some(ms) => {
            let tokens = u32::try_from(reads.tokens).unwrap_or(u32::MAX);
            format!(
                "{read} read and {:.0} ms waited per token",
                ms / f64::from(tokens)
            )
        }
        None => format!("{read} read per token"),
    }
}
