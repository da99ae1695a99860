//! The questions about one text to a model, and what they took.

use super::exam::SummaryExam;
use crate::exams::{has_failed, has_failed_or_begins, sorts_badly_or_begins};
use axum::{http::HeaderMap, response::Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};
use tierbar_chats::lenient;
use tierbar_core::{
    Code, Error, Modality, ModelId, TierId,
    lease::Purpose,
    status::{EngineKind, TierStatus},
};
use tierbar_inference::{
    Inference, ask::AnswerFailure, caller::Caller, content::MEDIA_BYTES, dispatch::QueuePermission,
    hints::Hints, media, request::Request, source::Source,
};
use tierbar_routing::leave_eligible;
use tierbar_tasks::{
    Task,
    saved::{TaskSavings, tokens_of},
};

/// The assumed context of a tier that is not on this machine, in tokens.
const USUAL_CONTEXT: u32 = 4096;

/// Tokens of an answer that may come a second time in a row.
const REPEATED: u32 = 8;

/// How often an answer in the background gives way before it counts as any other.
const GIVES_WAY: u32 = 2;

/// Where the answers about one text came from, for the headers of the response: the tiers that answered, in whose place, and whether the
/// request may wait. Shared by the code that asks and the code that writes the response.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    headers: HeaderMap,
    may_wait: bool,
}

impl Trail {
    /// Notes an answer or a refusal. What it does not name stays as it was, so that the response shows if one of many pieces was read by
    /// another tier.
    pub(super) fn note(&self, source: &Source, may_wait: bool) {
        let mut notes = self.0.lock();
        notes.headers.extend(source.headers());
        notes.may_wait = may_wait;
    }

    pub(super) fn write(&self, response: &mut Response) {
        let notes = self.0.lock();
        for (name, value) in &notes.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        if notes.may_wait {
            response.extensions_mut().insert(QueuePermission);
        }
    }
}

/// A prompt of a task. `system` has only our text; the user's text is in `user`, as data.
pub(super) struct TaskPrompt {
    pub(super) system: Cow<'static, str>,
    pub(super) user: Content,
    pub(super) schema: Value,
    pub(super) max_tokens: u32,
}

impl TaskPrompt {
    /// Returns the request in OpenAI's form, without a model. `held`: to the schema, and without thinking.
    pub(super) fn request(&self, held: bool) -> Value {
        let mut request = json!({
            "messages": [
                {"role": "system", "content": self.system},
                {"role": "user", "content": self.user.to_json()},
            ],
            "max_tokens": self.max_tokens,
            "temperature": 0,
        });
        if held {
            request["think"] = false.into();
            // A small model may go on with one sentence until its bound. Phrases and names may come again.
            request["dry_multiplier"] = 1.into();
            request["dry_allowed_length"] = REPEATED.into();
            request["dry_penalty_last_n"] = self.max_tokens.into();
            request["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": true, "schema": self.schema},
            });
        }
        request
    }
}

/// A user's message: a text, or parts in OpenAI's form with images and sound.
pub(super) enum Content {
    Text(String),
    Parts(Vec<Value>),
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Content {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Parts(parts) => parts.clone().into(),
        }
    }

    /// Bytes of its text; an image or a sound counts for as many as the relay charges for it.
    fn prompt_bytes(&self) -> usize {
        let bytes = |part: &Value| part["text"].as_str().map_or(MEDIA_BYTES, str::len);
        match self {
            Self::Text(text) => text.len(),
            Self::Parts(parts) => parts.iter().map(bytes).sum(),
        }
    }
}

pub(super) struct Reply {
    pub(super) text: String,
    /// It ran into `max_tokens`, or into the end of its context.
    pub(super) cut: bool,
    pub(super) prompt_tokens: u64,
    pub(super) prompt_bytes: usize,
}

/// Asks a model the questions about one text, and counts what they take.
pub(super) struct Session {
    inference: Arc<Inference>,
    model: String,
    hints: Hints,
    trail: Trail,
    /// Without a client, answers give way to those that clients wait for.
    pub(super) purpose: Purpose,
    /// The tier that answered last, and its model.
    who: Option<(TierId, Option<ModelId>)>,
    chain: Option<Value>,
    spent: TaskSavings,
    /// Bytes of all prompts, for the tokens of a part of them.
    prompt_bytes: usize,
}

impl Session {
    /// `wanted`: the model that the request names. Without one, and without a tier in a header, the task's usual tier if it has a
    /// model, else `auto`; for images and sound, a tier that takes them, if one is known to.
    pub(super) fn new(
        inference: &Arc<Inference>,
        task: Task,
        wanted: Option<&str>,
        media: &BTreeSet<Modality>,
        hints: &Hints,
        trail: Trail,
    ) -> Self {
        let usual = match task {
            Task::Triage => "fast",
            Task::Compress | Task::Summarize | Task::Brief => "primary",
        };
        let tiers = inference.tiers.snapshot();
        let has = |tier: &TierStatus| tier.id.as_str() == usual && tier.model.is_some();
        let takes = |tier: &&TierStatus| tier.model.is_some() && media::takes(tier, media);
        let fits = |tier: &TierStatus| has(tier) && media::takes(tier, media);
        let default = if hints.tier.is_some() {
            TierId::AUTO
        } else if !media.is_empty() && !tiers.iter().any(fits) {
            // Without one, the refusal says what the usual tier lacks.
            let other = tiers
                .iter()
                .find(takes)
                .or(tiers.iter().find(|tier| has(tier)));
            other.map_or(TierId::AUTO, |tier| tier.id.as_str())
        } else if tiers.iter().any(has) {
            usual
        } else {
            TierId::AUTO
        };
        let model = wanted.filter(|model| !model.is_empty());
        let model = model.unwrap_or(default).to_owned();
        Self {
            inference: Arc::clone(inference),
            model,
            // The answer is read here, and has nothing before it.
            hints: Hints {
                mark: Some(false),
                ..hints.clone()
            },
            trail,
            purpose: Purpose::Answer,
            who: None,
            chain: None,
            spent: TaskSavings::default(),
            prompt_bytes: 0,
        }
    }

    /// The context of the tier that is going to answer, as far as that is known: the smallest that it could be.
    pub(super) fn context_tokens(&self) -> u32 {
        let tiers = self.inference.tiers.snapshot();
        let mut tiers: Vec<_> = tiers.iter().filter(|tier| tier.model.is_some()).collect();
        let config = self.inference.services.config();
        let named = match &self.hints.tier {
            Some(tier) if self.model == TierId::AUTO => tier,
            _ => &self.model,
        };
        let has_model = |tier: &TierStatus| {
            let model = tier.model.as_ref();
            model.is_some_and(|model| model.as_str() == named)
        };
        let chain = self.hints.chain.as_deref().unwrap_or(named);
        let mut chains = config.chains.iter();
        if let Some((_, chain)) = chains.find(|(name, _)| name.as_str() == chain) {
            tiers.retain(|tier| chain.tiers().any(|step| *step == tier.id));
        } else if tiers.iter().any(|tier| tier.id.as_str() == named) {
            tiers.retain(|tier| tier.id.as_str() == named);
        } else if tiers.iter().any(|tier| has_model(tier)) {
            tiers.retain(|tier| has_model(tier));
        } else {
            leave_eligible(&mut tiers, |tier| {
                let elsewhere = tier.engine == EngineKind::Endpoint;
                (&tier.id, tier.state, elsewhere)
            });
        }
        let smallest = tiers.iter().map(|tier| tier.context_tokens).min();
        smallest.unwrap_or(USUAL_CONTEXT)
    }

    /// Asks a question. An answer that gave way is made again, and at last gives way no more, so that it ends.
    pub(super) async fn ask(&mut self, prompt: &TaskPrompt) -> Result<Reply, Error> {
        let purpose = self.purpose;
        for _ in 0..GIVES_WAY {
            match self.ask_once(prompt).await {
                Err(error) if error.code == Code::Cancelled && purpose == Purpose::Background => {}
                asked => return asked,
            }
        }
        self.purpose = Purpose::Answer;
        let asked = self.ask_once(prompt).await;
        self.purpose = purpose;
        asked
    }

    /// An engine that refuses the schema is asked again without one.
    async fn ask_once(&mut self, prompt: &TaskPrompt) -> Result<Reply, Error> {
        // A chain's error for its steps' refusals is ours.
        let refuses_form = |failed: &AnswerFailure| match failed.status {
            None => failed.error.code == Code::BadRequest,
            Some(status) => matches!(status, 400 | 422),
        };
        let mut answer = self.send(prompt, true).await;
        if answer.as_ref().is_err_and(refuses_form) {
            answer = self.send(prompt, false).await;
        }
        answer.map_err(|failed| match failed.status {
            None => failed.error,
            Some(status) => {
                let (model, words) = (&self.model, shortened(&failed.error.message));
                let message =
                    format!("the server of {model} refused the request ({status}): {words}");
                Error::new(Code::Unreachable, message)
            }
        })
    }

    async fn send(&mut self, prompt: &TaskPrompt, held: bool) -> Result<Reply, AnswerFailure> {
        let mut request = prompt.request(held);
        request["model"] = self.model.as_str().into();
        let request = Request {
            purpose: self.purpose,
            hints: self.hints.clone(),
            ..Request::chat(request)?
        };
        let answer = self.inference.ask(request, Caller::of_this_request());
        let whole = match answer.await {
            Ok(answer) => answer.gather().await,
            Err(failed) => Err(failed),
        };
        let whole = whole.inspect_err(|failed| self.trail.note(&failed.source, failed.may_wait))?;
        self.trail.note(&whole.source, false);
        if let Some(tier) = whole.source.tier {
            self.who = Some((tier, whole.source.model));
        }
        self.note_chain(whole.chain);
        let prompt_bytes = prompt.system.len() + prompt.user.prompt_bytes();
        self.prompt_bytes += prompt_bytes;
        self.spent.prompt_tokens += whole.usage.prompt_tokens;
        self.spent.completion_tokens += whole.usage.completion_tokens;
        Ok(Reply {
            text: whole.text,
            cut: whole.reason == "length",
            prompt_tokens: whole.usage.prompt_tokens,
            prompt_bytes,
        })
    }

    /// The last word counts, unless it would hide that another tier has answered before.
    fn note_chain(&mut self, rendered: Option<Value>) {
        let fell_back = |rendered: &Option<Value>| {
            let rendered = rendered.as_ref();
            rendered.is_some_and(|rendered| !rendered["fallback_from"].is_null())
        };
        if fell_back(&rendered) || !fell_back(&self.chain) {
            self.chain = rendered.or(self.chain.take());
        }
    }

    /// How many tokens a text of the user's is, as this model counts.
    pub(super) fn tokens_of(&self, bytes: usize) -> u64 {
        tokens_of(bytes, self.prompt_bytes, self.spent.prompt_tokens)
    }

    /// Whether the model that answered last is one of this machine, and known to sort messages badly. One that is not examined is, in the
    /// background.
    pub(super) async fn sorts_badly(&self) -> bool {
        match &self.who {
            Some((tier, _)) => sorts_badly_or_begins(&self.inference, tier).await,
            None => false,
        }
    }

    /// Whether the model that answered last, or is going to, is one of this machine, and known to summarize badly: then the task has no
    /// answer of a model. One that has answered and is not examined is, in the background.
    pub(super) async fn summarizes_badly(&mut self) -> bool {
        if let Some((tier, _)) = &self.who {
            let failed = has_failed_or_begins::<SummaryExam>(&self.inference, tier).await;
            if failed {
                self.who = None;
            }
            return failed;
        }
        let mut tiers = self.inference.tiers.snapshot().into_iter();
        let named = tiers.find(|tier| {
            let model = tier.model.as_ref();
            tier.id.as_str() == self.model
                || model.is_some_and(|model| model.as_str() == self.model)
        });
        match named {
            Some(tier) if self.hints.chain.is_none() => {
                has_failed::<SummaryExam>(&self.inference, &tier.id).await
            }
            // Who answers is not known before.
            _ => false,
        }
    }

    fn is_endpoint(&self, tier: &TierId) -> bool {
        let mut tiers = self.inference.tiers.snapshot().into_iter();
        tiers.any(|status| status.id == *tier && status.engine == EngineKind::Endpoint)
    }

    /// So many tokens need not go to a cloud; none are saved if what answered is a server elsewhere, which was sent them.
    /// `answer`: an object, to which the fields are added that every task's answer has.
    pub(super) fn done(mut self, mut answer: Value, saved_tokens: u64) -> TaskResult {
        let elsewhere = matches!(&self.who, Some((tier, _)) if self.is_endpoint(tier));
        let (tier, model) = self.who.take().unzip();
        self.spent.answers = 1;
        self.spent.saved_tokens = if elsewhere { 0 } else { saved_tokens };
        answer["tier"] = json!(tier);
        answer["model"] = json!(model);
        answer["usage"] = usage(&self.spent);
        answer["saved"] = self.spent.saved_tokens.into();
        if let Some(chain) = self.chain {
            answer["tierbar"] = chain;
        }
        TaskResult {
            answer,
            spent: self.spent,
        }
    }
}

/// One text's answer as JSON, and what it took.
pub(super) struct TaskResult {
    pub(super) answer: Value,
    pub(super) spent: TaskSavings,
}

/// In OpenAI's form.
pub(super) fn usage(spent: &TaskSavings) -> Value {
    json!({
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.prompt_tokens + spent.completion_tokens,
    })
}

/// The text of an answer, and whether it had to be cut to its last whole sentence.
pub(super) fn text_of(said: &Reply) -> Option<(String, bool)> {
    lenient::text(&said.text, "text", said.cut)
}

/// A schema of one text.
pub(super) fn text_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": false,
    })
}

/// Added to a question whose answer could not be read.
pub(super) const ONLY_JSON: &str = "\nAnswer with the JSON object alone.";

/// What a small model may say for want of anything better.
pub(super) fn no_answer(task: Task) -> Error {
    let message = format!("the model gave no answer that {task} can use, in two attempts");
    Error::new(Code::Corrupt, message).hint("name a larger tier in `model`")
}

/// The beginning of a refusal, for a message.
fn shortened(message: &str) -> String {
    const LONGEST: usize = 200;
    message.chars().take(LONGEST).collect()
}
