//! What a turn sends: its conversation, or the part of it that the context holds.

use super::attachments::{self, Files, is_medium, with_files};
use serde_json::{Map, Value, json};
use tierbar_chats::{
    Part, Role,
    context::{CHOICES, Excerpt, WhenFull},
};
use tierbar_core::{
    Code, Error, TierId,
    status::{EngineKind, TierStatus},
};
use tierbar_inference::request::Request;

/// The question of a turn with what came before it.
pub(super) struct Prompt {
    pub(super) model: String,
    pub(super) when_full: WhenFull,
    /// The chat's system message; empty for none.
    pub(super) instructions: String,
    pub(super) excerpt: Excerpt,
    /// Further fields of the request.
    pub(super) options: Map<String, Value>,
    /// Whether images and sounds are sent, and not only named.
    pub(super) has_media: bool,
}

impl Prompt {
    /// # Errors
    /// `BadRequest` for an option of the wrong type.
    pub(super) fn request(&self, files: &Files) -> Result<Request, Error> {
        let parts = self.excerpt.files();
        let messages = with_files(self.excerpt.messages(), &parts, files, self.has_media);
        let messages = self.with_instructions(messages);
        request(&self.model, &messages, self.options.clone())
    }

    /// The messages before the question, in OpenAI's form, and the question's text.
    pub(super) fn before_question(&self) -> (Vec<Value>, String) {
        let messages = self.excerpt.messages().into_iter();
        let messages = messages.map(|(role, text)| (role, Value::from(text)));
        let mut messages = self.with_instructions(messages.collect());
        let question = match messages.pop() {
            Some((_, Value::String(text))) => text,
            _ => String::new(),
        };
        let earlier = messages
            .into_iter()
            .map(|(role, content)| json!({"role": role, "content": content}));
        (earlier.collect(), question)
    }

    /// The instructions stand before a system message that the chat has, in one with it: some templates take no second.
    fn with_instructions(&self, mut messages: Vec<(Role, Value)>) -> Vec<(Role, Value)> {
        let instructions = self.instructions.trim();
        if instructions.is_empty() {
            return messages;
        }
        match messages.first_mut() {
            Some((Role::System, Value::String(text))) => {
                *text = format!("{instructions}\n\n{text}");
            }
            _ => messages.insert(0, (Role::System, instructions.into())),
        }
        messages
    }

    /// The hashes of the files of the messages that are sent.
    pub(super) fn files(&self) -> Vec<String> {
        let parts = self.excerpt.files();
        let places = attachments::choose_files(&parts, self.has_media).into_iter();
        let files = places.filter_map(|(at, number)| parts[at][number].file());
        files.map(|file| file.sha256.clone()).collect()
    }

    /// Has images and sounds named in place of sent, if only messages before the question have any: a tier that does not take them
    /// would refuse each further question. Returns whether that changes the request.
    pub(super) fn name_earlier_media(&mut self) -> bool {
        let messages = self.excerpt.messages();
        let question = messages.iter().rposition(|(role, _)| *role == Role::User);
        let parts = self.excerpt.files();
        let (earlier, asked) = parts.split_at(question.unwrap_or_default().min(parts.len()));
        let has_media = |parts: &[Vec<Part>]| parts.iter().flatten().any(is_medium);
        let changes = self.has_media && has_media(earlier) && !has_media(asked);
        self.has_media &= !changes;
        changes
    }

    /// Leaves messages out before anything is sent, as far as the last answer of the same tier shows that they find no room. Returns
    /// the tier.
    pub(super) fn leave_out_early(&mut self, tiers: &[TierStatus]) -> Option<String> {
        if self.when_full == WhenFull::Refuse {
            return None;
        }
        let answer = &self.excerpt.last_answer()?.answer;
        let (tier, used) = (answer.tier.clone()?, answer.context?);
        let names = [Some(TierId::AUTO), Some(&*tier), answer.model.as_deref()];
        if !names.contains(&Some(self.model.as_str())) {
            return None;
        }
        let now = tiers.iter().find(|status| status.id.as_str() == tier)?;
        let context = match now.engine {
            // What it holds is not configured here.
            EngineKind::Endpoint => used.context_tokens,
            EngineKind::Embedded | EngineKind::Command => now.context_tokens.into(),
        };
        // A larger context may hold what the last one did not.
        if context <= used.context_tokens {
            self.excerpt.resume();
        }
        let expected = self.excerpt.expected_tokens()?;
        if expected > context - context / 8 {
            self.excerpt.shrink(expected, self.target(context));
        }
        Some(tier)
    }

    /// Leaves out messages of a prompt that the context did not hold. Returns whether a smaller one is worth a try.
    pub(super) fn leave_out(&mut self, refused: &Error) -> bool {
        let figure = |name| refused.details.get(name).and_then(Value::as_u64);
        let figures = figure("prompt_tokens").zip(figure("context_tokens"));
        // Without figures, it is taken to be twice as long as it may be.
        let (prompt, context) = figures.unwrap_or((2048, 1024));
        let Some(left) = self.excerpt.shrink(prompt, self.target(context)) else {
            return false;
        };
        if left >= context {
            // The question alone is too long: a summary would be written for nothing.
            self.when_full = WhenFull::Drop;
        }
        true
    }

    /// The size of a prompt that leaves room for an answer, and for the summary that it gets.
    fn target(&self, context: u64) -> u64 {
        match self.when_full {
            WhenFull::Refuse | WhenFull::Drop => context - context / 4,
            WhenFull::Summarize => context - context / 4 - context / 8,
        }
    }

    /// The error of a prompt that the context does not hold, with what its user can choose.
    pub(super) fn refusal(&self, error: Error) -> Error {
        if error.code == Code::ContextExceeded
            && self.when_full == WhenFull::Refuse
            && self.excerpt.can_shrink()
        {
            return error.hint(CHOICES);
        }
        error
    }
}

/// Returns the tier that continues an answer. Only Tierbar's own engine is known to go on with a message where it ends: other servers
/// may begin it again.
///
/// # Errors
/// `BadRequest` for a tier behind another server, and for one that does not exist.
pub(super) fn tier_that_continues(
    name: Option<&str>,
    tiers: &[TierStatus],
) -> Result<String, Error> {
    let name = name.unwrap_or_default();
    let is_named = |tier: &&TierStatus| {
        tier.id.as_str() == name || tier.model.as_ref().is_some_and(|id| id.as_str() == name)
    };
    match tiers.iter().find(is_named) {
        Some(tier) if tier.engine == EngineKind::Embedded => Ok(tier.id.to_string()),
        Some(tier) => {
            let message = format!(
                "the {} tier is served by another program, which may begin the answer again instead of continuing it",
                tier.id
            );
            let error = Error::new(Code::BadRequest, message);
            Err(error.hint("ask for another answer instead"))
        }
        None => {
            let message = format!("there is no tier \"{name}\" to continue the answer");
            let error = Error::new(Code::BadRequest, message);
            Err(error.hint("name a tier as \"model\", or ask for another answer"))
        }
    }
}

/// Has the model go on with the last message, which is its own. It cannot think first: thoughts come before an answer.
pub(super) fn continue_last_message(options: &mut Map<String, Value>) {
    options.insert("continue_final_message".to_owned(), true.into());
    options.insert("think".to_owned(), false.into());
}

/// A conversation as a request.
///
/// # Errors
/// `BadRequest` for an option of the wrong type.
pub(super) fn request(
    model: &str,
    messages: &[(Role, Value)],
    options: Map<String, Value>,
) -> Result<Request, Error> {
    let messages = messages
        .iter()
        .map(|(role, content)| json!({"role": role, "content": content}));
    let mut chat = options;
    chat.insert("model".to_owned(), model.into());
    chat.insert("messages".to_owned(), messages.collect::<Value>());
    Request::streamed_chat(chat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{ModelId, TierId, TierState, status::TierStatus};

    fn tier(id: &str, model: Option<&str>, state: TierState) -> TierStatus {
        TierStatus {
            model: model.map(|model| ModelId(model.to_owned())),
            ..TierStatus::new(TierId::new(id).unwrap(), state)
        }
    }

    #[test]
    fn only_the_own_engine_continues_an_answer() {
        let mut tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("cloud", None, TierState::Ready),
        ];
        tiers[1].engine = EngineKind::Endpoint;
        let continues = |name| tier_that_continues(name, &tiers).ok();
        assert_eq!(continues(Some("fast")).as_deref(), Some("fast"));
        assert_eq!(continues(Some("small")).as_deref(), Some("fast"));
        assert_eq!(continues(Some("cloud")), None);
        assert_eq!(continues(Some("gone")), None);
        assert_eq!(continues(None), None);
    }
}
