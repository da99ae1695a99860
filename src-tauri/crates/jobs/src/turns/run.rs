//! One turn, from its request to the stored message.

mod agent;
mod figures;
mod pace;

pub(super) use agent::{Acting, Consents, open_folder};

use super::{Turn, attachments::Files, prompt::Prompt};
use crate::{Jobs, storing::until_stored, tasks::summary_of_chat};
use futures_util::{FutureExt, StreamExt};
use pace::Pace;
use std::{
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_chats::{
    AnswerFacts, ChatMessage, Finish, Part, Role, TurnEvent, TurnFailure, TurnStage, answer_parts,
    context::WhenFull, repetition::Repetition, thinking::WithoutThinking,
};
use tierbar_core::{Code, Error, bad_request, status::TierStatus};
pub(super) use tierbar_edge::keys::AdmittedRequest;
use tierbar_inference::{
    ask::{Event, Stage, Usage},
    caller::Caller,
    metrics::trace::of_route,
    request::Request,
};
use tokio::time::{MissedTickBehavior, interval};

/// What the list of requests calls a turn, which has no request of its own while it runs.
const ROUTE: &str = "/tierbar/v1/chats/{id}/turns";
/// The same for a run without a chat.
const RUN_ROUTE: &str = "/v1/agent";
/// How often what has arrived is stored: the most that a host that is killed loses.
const STORED_EVERY: Duration = Duration::from_secs(1);

/// How a turn's answer ended.
enum Ending {
    Answered(Finish),
    Failed(Error),
}

/// Runs the turn to its last event, whatever happens. What has arrived before a panic is stored as broken off. `begun`: the answer
/// that it continues; `acting`: what its agent acts with, if it has one.
pub(super) async fn run(
    jobs: &Arc<Jobs>,
    turn: &Arc<Turn>,
    prompt: Prompt,
    begun: Option<ChatMessage>,
    acting: Option<Acting>,
    admitted: AdmittedRequest,
) {
    let mut writing = AnswerWriter {
        jobs: Arc::clone(jobs),
        turn: Arc::clone(turn),
        facts: AnswerFacts::default(),
        pace: Pace::new(Instant::now()),
        stage: None,
        stored: (0, 0),
        continued: None,
        asked: Instant::now(),
        tiers: Vec::new(),
        usage: Usage::default(),
        inline_thinking: WithoutThinking::default(),
        thinks_since: None,
        text_end: Repetition::default(),
        reasoning_end: Repetition::default(),
        steps: Vec::new(),
    };
    if let Some(answer) = begun {
        writing.go_on_from(answer);
    }
    let panicked = || {
        let message = "the turn broke off because of a bug in Tierbar";
        Error::new(Code::Internal, message)
    };
    // What a panic leaves of these is only added to.
    let answering = async {
        match acting {
            Some(acting) => writing.act(&prompt, acting).await,
            None => writing.answer(prompt).await,
        }
    };
    let route = match turn.chat {
        Some(_) => ROUTE,
        None => RUN_ROUTE,
    };
    let answering = AssertUnwindSafe(of_route(route.to_owned(), answering));
    let ending = answering.catch_unwind().await;
    let ending = ending.unwrap_or_else(|_| Ending::Failed(panicked()));
    // Before the last event, so the client can retry immediately.
    drop(admitted);
    let ended = AssertUnwindSafe(writing.end(ending)).catch_unwind();
    if ended.await.is_err() {
        turn.log.push(TurnEvent::failed(panicked(), None, None));
    }
}

/// An answer on its way into the store.
struct AnswerWriter {
    jobs: Arc<Jobs>,
    turn: Arc<Turn>,
    facts: AnswerFacts,
    /// Of the turn; of an agent's, since the model was last asked.
    pace: Pace,
    stage: Option<TurnStage>,
    /// Bytes of text and of reasoning that are stored.
    stored: (usize, usize),
    /// What is known of the answer that it continues.
    continued: Option<AnswerFacts>,
    /// When the last attempt began, and the tiers as they were then.
    asked: Instant,
    tiers: Vec<TierStatus>,
    /// What the engine has counted and measured.
    usage: Usage,
    inline_thinking: WithoutThinking,
    /// Since when the model thinks, if it does.
    thinks_since: Option<Instant>,
    /// The ends of what this turn has added to the text and to the reasoning.
    text_end: Repetition,
    reasoning_end: Repetition,
    /// What its agent has done: calls and results, before the text.
    steps: Vec<Part>,
}

impl AnswerWriter {
    /// Has the turn's events begin with what an answer has already.
    fn go_on_from(&mut self, answer: ChatMessage) {
        for part in answer.parts {
            match part {
                Part::Reasoning { text } => {
                    self.stored.1 += text.len();
                    self.turn.log.push(TurnEvent::Reasoning {
                        text,
                        tokens: 0,
                        decode_ms: 0,
                    });
                }
                Part::Text { text } => {
                    self.stored.0 += text.len();
                    self.inline_thinking.push(&text);
                    self.turn.log.push(TurnEvent::Text {
                        text,
                        tokens: 0,
                        decode_ms: 0,
                    });
                }
                // A turn writes no others.
                _ => {}
            }
        }
        let times = answer.answer.times;
        if let Some(thinking_ms) = times.and_then(|times| times.thinking_ms) {
            self.times().thinking_ms = Some(thinking_ms);
        }
        self.continued = Some(answer.answer);
    }

    /// Asks, and again with fewer messages if the context does not hold them and the chat allows it. Each try has fewer, so that
    /// the last one has the question alone. A request that is refused is sent once more without the images and sounds of earlier
    /// messages.
    async fn answer(&mut self, mut prompt: Prompt) -> Ending {
        let tiers = self.jobs.inference.tiers.snapshot();
        // What summarizes, if that is before anything has answered.
        self.facts.tier = prompt.leave_out_early(&tiers);
        loop {
            if let Err(ending) = self.note_left_out(&mut prompt).await {
                return ending;
            }
            let error = match self.attempt(&prompt).await {
                Ending::Failed(error) => error,
                answered @ Ending::Answered(_) => return answered,
            };
            // What it asks is text: the tier may take that, if not the images before it.
            let is_refused = error.code == Code::BadRequest && !self.pace.has_begun();
            if is_refused && prompt.name_earlier_media() {
                continue;
            }
            let again = error.code == Code::ContextExceeded
                && !self.pace.has_begun()
                && prompt.when_full != WhenFull::Refuse;
            if !again || !prompt.leave_out(&error) {
                return Ending::Failed(prompt.refusal(error));
            }
        }
    }

    /// Reports which messages the prompt is without, after their summary is written if the chat wants one.
    async fn note_left_out(&mut self, prompt: &mut Prompt) -> Result<(), Ending> {
        if prompt.when_full == WhenFull::Summarize
            && let Some(text) = prompt.excerpt.text_to_summarize()
        {
            self.note_stage(TurnStage::Summarize);
            let model = self.facts.tier.as_ref().unwrap_or(&prompt.model);
            let summary = summary_of_chat(&self.jobs.inference, model, &text);
            let summary = self.unless_stopped(summary).await?;
            let (summary, fallback) =
                summary.map_err(|error| Ending::Failed(not_summarized(error)))?;
            prompt.excerpt.set_summary(summary, fallback);
        }
        let left_out = prompt.excerpt.left_out();
        if left_out != self.facts.left_out
            && let Some(left_out) = left_out
        {
            self.facts.left_out = Some(left_out.clone());
            self.turn.log.push(TurnEvent::LeftOut { left_out });
        }
        Ok(())
    }

    /// Waits for `work`, unless the turn is stopped or Tierbar quits first.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Ending> {
        let done = self.turn.stop.run_until_cancelled(work).await;
        done.ok_or_else(|| self.stopped())
    }

    /// How a turn ends that was stopped.
    fn stopped(&self) -> Ending {
        match self.jobs.inference.closing.is_cancelled() {
            true => Ending::Failed(shutting_down()),
            false => Ending::Answered(Finish::Stopped),
        }
    }

    async fn attempt(&mut self, prompt: &Prompt) -> Ending {
        let hashes = prompt.files();
        let files = if hashes.is_empty() {
            Ok(Files::new())
        } else {
            self.jobs.store.attachments(hashes).await
        };
        let request = match files.and_then(|files| prompt.request(&files)) {
            Ok(request) => request,
            Err(error) => return Ending::Failed(error),
        };
        let answered = self.stream(request, |turn, event| match turn.take(event) {
            Some(ending) => ControlFlow::Break(Some(ending)),
            None => ControlFlow::Continue(()),
        });
        let answered = answered.await;
        answered.map_or_else(|ending| ending, |()| Ending::Answered(Finish::Stop))
    }

    /// Sends a request and hands each event of its answer to `take`, until that breaks or the answer ends. What has arrived is stored
    /// every second meanwhile.
    ///
    /// # Errors
    /// How the turn ends: with what `take` breaks with, or because it was stopped, Tierbar quits, or no answer begins.
    async fn stream(
        &mut self,
        request: Request,
        mut take: impl FnMut(&mut Self, Event) -> ControlFlow<Option<Ending>>,
    ) -> Result<(), Ending> {
        let inference = &self.jobs.inference;
        self.tiers = inference.tiers.snapshot();
        self.asked = Instant::now();
        // The host owns the task, which outlives the client's connection.
        let asked = inference.ask(request, Caller::default());
        let asked = self.unless_stopped(asked).await?;
        let mut answer = asked.map_err(|failed| {
            self.facts_of(failed.source);
            Ending::Failed(failed.error)
        })?;
        let mut store = interval(STORED_EVERY);
        store.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.turn.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(self.stopped()),
                // A disk that takes nothing now may take the whole message later.
                _ = store.tick() => self.try_to_store().await,
                event = answer.next() => {
                    let Some(event) = event else { return Ok(()) };
                    if let ControlFlow::Break(ending) = take(self, event) {
                        return ending.map_or(Ok(()), Err);
                    }
                }
            }
        }
    }

    /// Stores what has arrived, or logs why that fails.
    async fn try_to_store(&mut self) {
        if let Err(error) = self.store_so_far().await {
            tracing::warn!("an answer cannot be stored for now: {error}");
        }
    }

    /// How the turn ends, if the event is the answer's last.
    fn take(&mut self, event: Event) -> Option<Ending> {
        match event {
            Event::Started(source) => self.note_source(source),
            Event::Progress(Stage::Load) => self.note_stage(TurnStage::Load),
            Event::Progress(Stage::Prefill) => self.note_stage(TurnStage::Prefill),
            // Thoughts come before an answer: this model begins it again.
            Event::Reasoning(_) if self.continued.is_some() && !self.pace.has_begun() => {
                return Some(Ending::Failed(not_continued()));
            }
            Event::Reasoning(text) => {
                let (tokens, decode_ms) = self.note_token();
                self.note_thinking(true);
                let repeats = self.reasoning_end.push(&text);
                self.turn.log.push(TurnEvent::Reasoning {
                    text,
                    tokens,
                    decode_ms,
                });
                return repeats.then_some(Ending::Answered(Finish::Repetition));
            }
            Event::Text(text) => {
                let (tokens, decode_ms) = self.note_token();
                self.inline_thinking.push(&text);
                self.note_thinking(self.inline_thinking.is_thinking());
                let repeats = self.text_end.push(&text);
                self.turn.log.push(TurnEvent::Text {
                    text,
                    tokens,
                    decode_ms,
                });
                return repeats.then_some(Ending::Answered(Finish::Repetition));
            }
            Event::Usage(usage) => {
                self.usage = usage;
                self.facts.experts = usage.experts;
                self.facts.context = usage.context();
            }
            Event::Finished { reason, .. } => {
                return Some(Ending::Answered(match reason.as_str() {
                    "length" => Finish::Length,
                    _ => Finish::Stop,
                }));
            }
            Event::Failed(failed) => {
                // Once an answer has begun, its tier is already known.
                if !self.pace.has_begun() {
                    self.facts_of(failed.source);
                }
                return Some(Ending::Failed(failed.error));
            }
            // A chain's report is in the source; an agent's calls are read before, and a chat asks for no probabilities.
            Event::Chain(_)
            | Event::Passed(_)
            | Event::Model(_)
            | Event::Sampling(_)
            | Event::ToolCall(_)
            | Event::LogProbs(_) => {}
        }
        None
    }

    fn parts(&self) -> Vec<Part> {
        let (text, reasoning) = self.turn.log.content_from((0, 0));
        let mut parts = self.steps.clone();
        parts.extend(answer_parts(text, reasoning));
        parts
    }

    async fn store_so_far(&mut self) -> Result<(), Error> {
        let (text, reasoning) = self.turn.log.content_from(self.stored);
        let stored = (self.stored.0 + text.len(), self.stored.1 + reasoning.len());
        if stored == self.stored {
            return Ok(());
        }
        let (store, pieces) = (&self.jobs.store, answer_parts(text, reasoning));
        let appended = store.append_answer(&self.turn.id, pieces, self.facts.clone());
        appended.await?;
        self.stored = stored;
        Ok(())
    }

    /// Stores the whole message and ends the turn's events with it.
    async fn end(&mut self, ending: Ending) {
        let (finish, error) = match ending {
            Ending::Answered(finish) => (finish, None),
            Ending::Failed(error) => (Finish::Error, Some(error)),
        };
        self.note_thinking(false);
        self.facts.finish = Some(finish);
        self.facts.failure = error.as_ref().map(TurnFailure::from);
        // An answer to which nothing was added stays as it was.
        let broke_off = matches!(finish, Finish::Stopped | Finish::Error);
        if let Some(before) = self.continued.take_if(|_| broke_off)
            && !self.pace.has_begun()
        {
            self.facts = before;
        }
        self.note_speed(finish);
        let stored = self.store_whole(finish).await;
        let is_unstored = matches!(&stored, Err(error) if error.code == Code::Storage);
        let tier = self.facts.tier.clone();
        let last = match (stored, error) {
            (Ok(answer), Some(error)) => TurnEvent::failed(error, tier, answer),
            (Ok(Some(message)), None) => TurnEvent::Finished { message },
            // Stopped before the first token: nothing is stored.
            (Ok(None), None) => TurnEvent::Finished {
                message: self.message(),
            },
            // What went wrong with the answer itself comes first.
            (Err(_), Some(error)) | (Err(error), None) => {
                TurnEvent::failed(error, tier, Some(self.message()))
            }
        };
        self.turn.log.push(last);
        if is_unstored {
            // Its client knows. What has arrived is in memory alone, and a full disk may have room again.
            let this = &*self;
            let store = || async move { this.store_whole(finish).await.map(drop) };
            until_stored(&self.jobs.inference.closing, "an answer", store).await;
        }
    }

    /// The stored message; `None` if nothing was worth storing or the chat is gone.
    async fn store_whole(&self, finish: Finish) -> Result<Option<ChatMessage>, Error> {
        let (turn, parts) = (&self.turn.id, self.parts());
        let broke_off = matches!(finish, Finish::Stopped | Finish::Error);
        if parts.is_empty() && broke_off {
            let failure = self.facts.failure.clone();
            self.jobs.store.discard_answer(turn, failure).await?;
            return Ok(None);
        }
        let written = self
            .jobs
            .store
            .write_answer(turn, parts, self.facts.clone());
        written.await
    }

    /// The answer as it would be stored.
    fn message(&self) -> ChatMessage {
        ChatMessage {
            id: self.turn.answer,
            parent: None,
            role: Role::Assistant,
            parts: self.parts(),
            answer: self.facts.clone(),
        }
    }
}

/// The host waits for no answer: another server's may take long.
fn shutting_down() -> Error {
    Error::new(
        Code::ShuttingDown,
        "Tierbar was quit before the answer was whole",
    )
    .hint("ask again")
}

fn not_continued() -> Error {
    let message = "this model thinks before each answer, so it cannot continue one";
    bad_request(message).hint("ask for another answer instead")
}

/// The chat's user may choose something else.
fn not_summarized(error: Error) -> Error {
    if !matches!(error.code, Code::ContextExceeded | Code::Corrupt) {
        return error;
    }
    Error {
        message: format!(
            "the oldest messages cannot be summarized: {}",
            error.message
        ),
        code: Code::ContextExceeded,
        ..error
    }
    .hint("leave them out instead, or choose a tier with a larger context")
}
