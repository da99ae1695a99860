//! Log probabilities, in the shapes of OpenAI and of vLLM.

use crate::generate::{Candidate, ScoredPrompt, TokenReport};
use serde_json::{Map, Value, json};

/// Returns probabilities in the shape of OpenAI's chats.
pub(super) fn chat_probabilities(reports: &[TokenReport]) -> Value {
    if reports.is_empty() {
        return Value::Null;
    }
    let entry = |report: &TokenReport| {
        let mut entry = candidate_report(&report.chosen);
        entry["top_logprobs"] = report.top.iter().map(candidate_report).collect();
        entry
    };
    json!({"content": reports.iter().map(entry).collect::<Vec<_>>()})
}

/// Probabilities in the shape of OpenAI's completions: a list for each part.
#[derive(Debug, Default)]
pub(super) struct TextProbabilities {
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<usize>,
    /// The characters of all tokens so far.
    pub(super) offset: usize,
}

impl TextProbabilities {
    /// Those of a part of a text that follows so many characters of tokens.
    pub(super) fn after(offset: usize) -> Self {
        Self {
            offset,
            ..Self::default()
        }
    }

    /// Adds an echoed prompt, whose first token has no probability.
    pub(super) fn echo(&mut self, scored: &ScoredPrompt, top: usize) {
        self.push(&scored.first, None, Value::Null);
        self.add(&scored.reports, top);
    }

    pub(super) fn add(&mut self, reports: &[TokenReport], top: usize) {
        for report in reports {
            let chosen = &report.chosen;
            // The likeliest of those that read alike, and the chosen one, as in OpenAI's and vLLM's answers.
            let mut by_text = Map::new();
            let shown = report.top.iter().take(top);
            let chosen_too = (top > 0 && !report.top.is_empty()).then_some(chosen);
            for one in shown.chain(chosen_too) {
                by_text
                    .entry(candidate_text(one))
                    .or_insert_with(|| json!(one.log_probability));
            }
            self.push(chosen, Some(chosen.log_probability), by_text.into());
        }
    }

    fn push(&mut self, token: &Candidate, logprob: Option<f32>, top: Value) {
        let text = candidate_text(token);
        self.text_offset.push(self.offset);
        self.offset += text.chars().count();
        self.tokens.push(text);
        self.token_logprobs.push(logprob);
        self.top_logprobs.push(top);
    }
}

impl From<TextProbabilities> for Value {
    fn from(list: TextProbabilities) -> Self {
        if list.tokens.is_empty() {
            return Self::Null;
        }
        json!({
            "tokens": list.tokens,
            "token_logprobs": list.token_logprobs,
            "top_logprobs": list.top_logprobs,
            "text_offset": list.text_offset,
        })
    }
}

/// Returns the probabilities of a prompt in the shape of vLLM's `prompt_logprobs`: for each token but the first, the chosen one
/// and its alternatives by their ids.
pub(super) fn probabilities_by_id(scored: &ScoredPrompt, top: usize) -> Value {
    let entry = |one: &Candidate, rank: usize| {
        let shown = json!({"logprob": one.log_probability, "rank": rank, "decoded_token": candidate_text(one)});
        (one.token.to_string(), shown)
    };
    let token = |report: &TokenReport| {
        let mut all = Map::from_iter([entry(&report.chosen, report.rank)]);
        for (one, rank) in report.top.iter().take(top).zip(1..) {
            let (id, shown) = entry(one, rank);
            all.entry(id).or_insert(shown);
        }
        Value::Object(all)
    };
    let rest = scored.reports.iter().map(token);
    std::iter::once(Value::Null).chain(rest).collect()
}

fn candidate_report(one: &Candidate) -> Value {
    json!({"token": candidate_text(one), "logprob": one.log_probability, "bytes": one.bytes})
}

fn candidate_text(one: &Candidate) -> String {
    String::from_utf8_lossy(&one.bytes).into_owned()
}
