//! How full a chat's context is, and which messages a prompt leaves out once it is full.

use super::{ChatMessage, Part, Role};
use serde::{Deserialize, Serialize};
use tierbar_tasks::delimited::delimited;

/// The hint of a refused turn that has messages to leave out.
pub const CHOICES: &str =
    "leave out or summarize the oldest messages, or set a larger context for the tier";

const NEARLY_FULL: u64 = 80;
/// What a message takes beside its text, in bytes: the template's words around it.
const AROUND_A_MESSAGE: usize = 24;
/// What an image or a sound takes, in bytes of text: some hundred tokens.
const MEDIUM: usize = 1024;
/// How often messages are left out by estimate. Then all but the last question are.
const ESTIMATES: u32 = 3;

/// What happens to a chat that its model's context does not hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// The turn fails with `context_length_exceeded`.
    #[default]
    Refuse,
    /// The oldest questions are left out with their answers.
    Drop,
    /// The oldest questions and answers are replaced by a summary that the model writes.
    Summarize,
}

/// How much of its context an answer has used, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextUse {
    pub prompt_tokens: u64,
    /// Those of the answer, with its reasoning.
    pub answer_tokens: u64,
    /// What the context holds.
    pub context_tokens: u64,
}

impl ContextUse {
    /// Returns the part of the context that is used, in percent, rounded down.
    pub fn percent(&self) -> u64 {
        let used = self.prompt_tokens.saturating_add(self.answer_tokens);
        used.saturating_mul(100) / self.context_tokens.max(1)
    }

    /// Returns whether the next questions may find no room.
    pub fn is_nearly_full(&self) -> bool {
        self.percent() >= NEARLY_FULL
    }
}

/// What a prompt was without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = LeftOut)]
pub struct ContextOmission {
    /// How many of the oldest messages.
    pub messages: u32,
    /// The id of the last of them.
    pub through: u64,
    /// The summary in their place.
    #[schema(required = true)]
    pub summary: Option<String>,
    /// Whether the summary's sentences were chosen by rule, because the model summarizes badly.
    #[serde(default)]
    #[schema(required = true)]
    pub fallback: bool,
}

impl ContextOmission {
    /// Returns one sentence that says so.
    pub fn sentence(&self) -> String {
        let (messages, one) = match self.messages {
            1 => ("oldest message".to_owned(), true),
            many => (format!("oldest {many} messages"), false),
        };
        let by_rule = if self.fallback { " by rule" } else { "" };
        match (&self.summary, one) {
            (None, _) => format!("Answered without the {messages}."),
            (Some(_), true) => format!("The {messages} was summarized{by_rule}."),
            (Some(_), false) => format!("The {messages} were summarized{by_rule}."),
        }
    }
}

/// The part of a conversation that a prompt has: all system messages, and the newest exchanges. An exchange is a question with all
/// that follows it, up to the next question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Excerpt {
    conversation: Vec<ChatMessage>,
    /// The bytes of each message.
    sizes: Vec<usize>,
    /// Where each exchange begins.
    exchanges: Vec<usize>,
    /// How many of the oldest exchanges are left out.
    gone: usize,
    /// What is known of the messages that are left out.
    summary: Option<String>,
    /// Whether a rule wrote it.
    fallback: bool,
    /// Summaries of this conversation's beginning.
    known: Vec<ContextOmission>,
    estimates: u32,
}

impl Excerpt {
    /// All of a conversation that ends with a question. `known`: summaries of messages of this chat; those of other branches are
    /// ignored.
    pub fn new(conversation: Vec<ChatMessage>, known: Vec<ContextOmission>) -> Self {
        let size = |message: &ChatMessage| {
            let files = message.parts.iter().map(size_of_file);
            message.text().len() + files.sum::<usize>() + AROUND_A_MESSAGE
        };
        let sizes = conversation.iter().map(size).collect();
        let (mut exchanges, mut begun) = (vec![0], false);
        for (at, message) in conversation.iter().enumerate() {
            if begun && message.role == Role::User {
                exchanges.push(at);
            }
            begun |= message.role != Role::System;
        }
        Self {
            conversation,
            sizes,
            exchanges,
            known,
            ..Self::default()
        }
    }

    /// The last answer before the question whose use of the context is known.
    pub fn last_answer(&self) -> Option<&ChatMessage> {
        let mut messages = self.conversation.iter();
        messages.rfind(|message| message.answer.context.is_some())
    }

    /// Leaves out what the last answer was without, so that the prompt begins as the last one did.
    pub fn resume(&mut self) {
        let left = self
            .last_answer()
            .and_then(|answer| answer.answer.left_out.as_ref());
        self.gone = left.map_or(0, |left| self.exchanges_through(left.through));
    }

    /// Returns the number of the prompt's tokens to expect, from the number that the last answer's prompt had.
    pub fn expected_tokens(&self) -> Option<u64> {
        let answer = self.last_answer()?;
        let place = self.place(answer.id)?;
        let left = answer.answer.left_out.as_ref();
        let gone = left.map_or(0, |left| self.exchanges_through(left.through));
        let summary = left.and_then(|left| left.summary.as_ref());
        let summary = summary.map_or(0, String::len);
        let before = self.size(gone, place) + summary;
        let mut now = self.size(self.gone, self.conversation.len());
        if self.gone == gone {
            now += summary;
        }
        let tokens = answer.answer.context?.prompt_tokens;
        Some(scale_tokens(tokens, now, before))
    }

    /// Leaves out the oldest exchanges, at least one, until about `target` tokens are left of a prompt that exceeds the context.
    /// Returns the number of tokens to expect; `None` if only the last question is left.
    pub fn shrink(&mut self, prompt_tokens: u64, target: u64) -> Option<u64> {
        let last = self.last_exchange();
        if self.gone >= last {
            return None;
        }
        let end = self.conversation.len();
        let now = self.size(self.gone, end) + self.summary.take().map_or(0, |text| text.len());
        self.estimates += 1;
        let expected = |gone| scale_tokens(prompt_tokens, self.size(gone, end), now);
        let mut fewer = self.gone + 1..last;
        let fits = fewer.find(|gone| self.estimates <= ESTIMATES && expected(*gone) <= target);
        let gone = fits.unwrap_or(last);
        let left = expected(gone);
        self.gone = gone;
        Some(left)
    }

    /// Takes a known summary of exactly what is left out. If there is none, returns the text to summarize: the longest known summary of
    /// a part, and the messages that it lacks.
    pub fn text_to_summarize(&mut self) -> Option<String> {
        let first = self.first_kept();
        if self.gone == 0 || self.summary.is_some() {
            return None;
        }
        let place =
            |known: &ContextOmission| self.place(known.through).filter(|place| *place < first);
        let known = self.known.iter();
        let known = known
            .filter_map(|known| Some((place(known)?, known.summary.clone()?, known.fallback)))
            .max_by_key(|(place, ..)| *place);
        let mut text = String::new();
        let mut rest = &self.conversation[..first];
        if let Some((place, summary, fallback)) = known {
            rest = &self.conversation[place + 1..first];
            if rest.iter().all(|message| !is_sent(message)) {
                self.set_summary(summary, fallback);
                return None;
            }
            text = earlier_summary(&summary);
        }
        for message in rest.iter().filter(|message| is_sent(message)) {
            let who = match message.role {
                Role::User => "User",
                Role::Assistant => "Assistant",
                Role::System => continue,
            };
            add_entry(&mut text, who, &message.text());
        }
        Some(text)
    }

    /// Has a summary stand for what is left out. `fallback`: a rule wrote it.
    pub fn set_summary(&mut self, summary: String, fallback: bool) {
        (self.summary, self.fallback) = (Some(summary), fallback);
    }

    /// Returns what is left out, if anything is.
    pub fn left_out(&self) -> Option<ContextOmission> {
        let left = self.conversation[..self.first_kept()].iter();
        let left = left.filter(|message| message.role != Role::System);
        let through = left.clone().next_back()?.id;
        let messages = left.filter(|message| is_sent(message)).count();
        Some(ContextOmission {
            messages: u32::try_from(messages).unwrap_or(u32::MAX),
            through,
            summary: self.summary.clone(),
            fallback: self.summary.is_some() && self.fallback,
        })
    }

    /// Returns whether there are messages before the last question that could be left out.
    pub fn can_shrink(&self) -> bool {
        self.gone < self.last_exchange()
    }

    /// Returns the messages of the prompt, each with its text. That of the first question begins with the summary.
    pub fn texts(&self) -> impl Iterator<Item = (&ChatMessage, String)> {
        let mut summary = self.summary.as_deref();
        self.sent().map(move |message| {
            let text = message.text();
            let summary = match message.role {
                Role::User => summary.take(),
                Role::System | Role::Assistant => None,
            };
            let text = match summary {
                Some(summary) => format!("{}\n\n{text}", summary_note(summary)),
                None => text,
            };
            (message, text)
        })
    }

    /// Returns the messages of the prompt as they are stored.
    pub fn sent(&self) -> impl Iterator<Item = &ChatMessage> {
        let first = self.first_kept();
        let all = self.conversation.iter().enumerate();
        let kept =
            all.filter(move |(place, message)| *place >= first || message.role == Role::System);
        kept.map(|(_, message)| message)
            .filter(|message| is_sent(message))
    }

    fn last_exchange(&self) -> usize {
        self.exchanges.len().saturating_sub(1)
    }

    /// The place of the first message that is not left out, but for system messages.
    fn first_kept(&self) -> usize {
        self.exchanges.get(self.gone).copied().unwrap_or_default()
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.conversation
            .iter()
            .position(|message| message.id == id)
    }

    /// How many exchanges there are up to the one with this message, short of the last; 0 for a message of another branch.
    fn exchanges_through(&self, id: u64) -> usize {
        let Some(place) = self.place(id) else {
            return 0;
        };
        let through = self.exchanges.partition_point(|begins| *begins <= place);
        through.min(self.last_exchange())
    }

    /// The bytes of the messages before `end` without the oldest exchanges.
    fn size(&self, gone: usize, end: usize) -> usize {
        let first = self.exchanges.get(gone).copied().unwrap_or_default();
        let messages = self.conversation.iter().zip(&self.sizes).enumerate();
        let kept = messages
            .take(end)
            .filter(|(place, (message, _))| *place >= first || message.role == Role::System);
        kept.map(|(_, (_, size))| size).sum()
    }
}

/// Adds an entry to the text from which a model summarizes a conversation.
pub fn add_entry(text: &mut String, who: &str, said: &str) {
    // No copy of what may be megabytes.
    text.extend([who, ": ", said, "\n\n"]);
}

/// Returns the first entry of such a text, if what came before was summarized already.
pub fn earlier_summary(summary: &str) -> String {
    format!("Summary of what came before:\n{summary}\n\n")
}

/// Returns what the user's message has in the place of a conversation that was summarized.
pub fn summary_note(summary: &str) -> String {
    format!(
        "Summary of our conversation so far:\n{}",
        delimited(summary)
    )
}

/// An answer of nothing is not sent: some templates refuse it.
fn is_sent(message: &ChatMessage) -> bool {
    message.role != Role::Assistant || !message.text().is_empty()
}

/// The bytes of text that a part's file counts for.
fn size_of_file(part: &Part) -> usize {
    match part {
        Part::File { file } => usize::try_from(file.bytes).unwrap_or(usize::MAX),
        Part::Image { .. } | Part::Audio { .. } => MEDIUM,
        _ => 0,
    }
}

/// `tokens` of `of` bytes, for `bytes` of them.
fn scale_tokens(tokens: u64, bytes: usize, of: usize) -> u64 {
    let scaled = u128::from(tokens) * bytes as u128 / of.max(1) as u128;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
