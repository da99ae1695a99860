//! What a turn sends: its conversation, or the part of it that the context holds.

use super::attachments::{self, Files, is_medium};
use serde_json::{Map, Value, json};
use tierbar_chats::{
    ChatMessage, Part, Role,
    context::{CHOICES, Excerpt, WhenFull},
};
use tierbar_core::{
    Code, Error, TierId, bad_request,
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
    pub(super) fn request(&self, files: &Files) -> Result<Request, Error> {
        let sent = attachments::choose_files(&self.parts(), self.has_media);
        let messages = self.messages(|at, parts, text| {
            let is_sent = |number| sent.contains(&(at, number));
            attachments::content(text, parts, files, is_sent)
        });
        request(&self.model, messages, self.options.clone())
    }

    /// The messages before the question, in OpenAI's form, and the question's text.
    pub(super) fn before_question(&self) -> (Vec<Value>, String) {
        let mut messages = self.messages(|_, _, text| text.into());
        let question = messages.pop().map(|mut last| last["content"].take());
        let question = match question {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        (messages, question)
    }

    /// The messages in OpenAI's form. `content` makes the content of each from its place, parts and text. The instructions stand before a
    /// system message that the chat has, in one with it: some templates take no second.
    fn messages(&self, content: impl Fn(usize, &[Part], String) -> Value) -> Vec<Value> {
        let texts = self.excerpt.texts().enumerate();
        let mut messages: Vec<_> = texts
            .map(|(at, (message, text))| {
                let mut sent = json!({"role": message.role});
                sent["content"] = content(at, &message.parts, text);
                sent
            })
            .collect();
        let instructions = self.instructions.trim();
        if instructions.is_empty() {
            return messages;
        }
        let first = messages
            .first_mut()
            .filter(|first| first["role"] == "system");
        match first.map(|first| &mut first["content"]) {
            Some(Value::String(text)) => *text = format!("{instructions}\n\n{text}"),
            _ => messages.insert(0, json!({"role": Role::System, "content": instructions})),
        }
        messages
    }

    /// The parts of each message that is sent.
    fn parts(&self) -> Vec<&[Part]> {
        let sent = self.excerpt.sent();
        sent.map(|message| message.parts.as_slice()).collect()
    }

    /// The hashes of the files of the messages that are sent.
    pub(super) fn files(&self) -> Vec<String> {
        let parts = self.parts();
        let places = attachments::choose_files(&parts, self.has_media).into_iter();
        let files = places.filter_map(|(at, number)| parts[at][number].file());
        files.map(|file| file.sha256.clone()).collect()
    }

    /// Has images and sounds named in place of sent, if only messages before the question have any: a tier that does not take them
    /// would refuse each further question. Returns whether that changes the request.
    pub(super) fn name_earlier_media(&mut self) -> bool {
        let sent: Vec<_> = self.excerpt.sent().collect();
        let question = sent.iter().rposition(|message| message.role == Role::User);
        let (earlier, asked) = sent.split_at(question.unwrap_or_default());
        let has_media = |messages: &[&ChatMessage]| {
            let mut parts = messages.iter().flat_map(|message| &message.parts);
            parts.any(is_medium)
        };
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
    let (message, hint) = match tiers.iter().find(is_named) {
        Some(tier) if tier.engine == EngineKind::Embedded => return Ok(tier.id.to_string()),
        Some(tier) => (
            format!(
                "the {} tier is served by another program, which may begin the answer again instead of continuing it",
                tier.id
            ),
            "ask for another answer instead",
        ),
        None => (
            format!("there is no tier \"{name}\" to continue the answer"),
            "name a tier as \"model\", or ask for another answer",
        ),
    };
    Err(bad_request(message).hint(hint))
}

/// Has the model go on with the last message, which is its own. It cannot think first: thoughts come before an answer.
pub(super) fn continue_last_message(options: &mut Map<String, Value>) {
    options.insert("continue_final_message".to_owned(), true.into());
    options.insert("think".to_owned(), false.into());
}

pub(super) fn request(
    model: &str,
    messages: Vec<Value>,
    options: Map<String, Value>,
) -> Result<Request, Error> {
    let mut chat = options;
    chat.insert("model".to_owned(), model.into());
    chat.insert("messages".to_owned(), messages.into());
    Request::streamed_chat(chat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_chats::{AnswerFacts, text_parts};
    use tierbar_core::{ModelId, TierId, TierState, status::TierStatus};

    fn tier(id: &str, model: Option<&str>, state: TierState) -> TierStatus {
        TierStatus {
            model: model.map(|model| ModelId(model.to_owned())),
            ..TierStatus::new(TierId::new(id).unwrap(), state)
        }
    }

    #[test]
    fn instructions_and_a_system_message_are_one() {
        let before_question = |roles: &[Role]| {
            let messages = (1..).zip(roles).map(|(id, role)| ChatMessage {
                id,
                parent: None,
                role: *role,
                parts: text_parts(id.to_string()),
                answer: AnswerFacts::default(),
            });
            let prompt = Prompt {
                model: String::new(),
                when_full: WhenFull::Refuse,
                instructions: " Be brief. ".into(),
                excerpt: Excerpt::new(messages.collect(), Vec::new()),
                options: Map::new(),
                has_media: false,
            };
            prompt.before_question()
        };
        let system = |text: &str| vec![json!({"role": "system", "content": text})];
        let joined = (system("Be brief.\n\n1"), "2".to_owned());
        assert_eq!(before_question(&[Role::System, Role::User]), joined);
        let alone = (system("Be brief."), "1".to_owned());
        assert_eq!(before_question(&[Role::User]), alone);
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
