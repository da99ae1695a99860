//! `POST /v1/summarize`: a text of any length in a few words. What the context does not hold is read piece by piece, and the notes
//! on the pieces are read as a text, until they fit.

use super::{
    ask::{
        ONLY_JSON, Reply, Session, TaskPrompt, TaskResult, Trail, no_answer, text_of, text_schema,
    },
    batch::{self, Items},
    message::Message,
    schema::{SummarizeAnswer, TaskMessage},
    stream::{self, Reporter},
};
use crate::Jobs;
use axum::{body::Body, extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{ops::RangeInclusive, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, bad_request,
    queue::{Setback, setback},
};
use tierbar_fetch::blocking;
use tierbar_http::{RequestHints, error::Failure, request::check_range};
use tierbar_inference::{Inference, body, hints::Hints};
use tierbar_tasks::{
    Task, count_words, fallback,
    pieces::{self, Room},
};
use tokio::time::sleep;
use utoipa::ToSchema;

const WORDS: RangeInclusive<u32> = 10..=2000;
pub(super) const USUAL_WORDS: u32 = 200;
/// Each level is a fraction of the one before: as much text as a request may bring needs fewer.
const MOST_LEVELS: u32 = 10;
/// A context that holds fewer tokens of a text, besides instructions and answer, makes notes longer than what they are of.
const LEAST_ROOM: u32 = 160;
/// Shorter pieces are no measure of how many bytes a token has: the instructions weigh too much.
const TELLING_BYTES: usize = 1000;
/// What a worker that ended, or a short pause, takes: so long is waited for the sake of the notes that are there.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
];

/// Messages to summarize: texts, images and sound.
#[derive(Deserialize, ToSchema)]
struct SummarizeRequest {
    /// A text, the parts of a message in OpenAI's or Anthropic's form, or a message.
    #[schema(value_type = Option<TaskMessage>)]
    text: Option<Value>,
    /// Instead of `text`: at most 256 of them.
    #[schema(value_type = Option<Vec<TaskMessage>>)]
    texts: Option<Vec<Value>>,
    /// Beside `text`: images in base64, as in Ollama's API.
    #[serde(default)]
    #[schema(required = false)]
    images: Vec<String>,
    /// About how many words the summary has. Default: 200.
    #[schema(minimum = 10, maximum = 2000)]
    words: Option<u32>,
    /// A tier, a chain, a model's id, or `auto`. Default: `primary`, or for images and sound a tier that takes them.
    model: Option<String>,
    /// Whether to answer as server-sent events: `progress`, and at the end `result` or `error`. For one text.
    #[serde(default)]
    stream: bool,
}

/// Summarizes a text of any length.
#[utoipa::path(
    post,
    path = "/v1/summarize",
    reach(Inference, Spends, Counts),
    request_body = SummarizeRequest,
    responses((status = 200, description = "The answer, or one for each text", content((SummarizeAnswer = "application/json"), ("text/event-stream")))),
)]
pub(super) async fn summarize(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    body: Body,
) -> Result<Response, Failure> {
    let wanted: SummarizeRequest = body::request(body).await?;
    let limit = checked_words(wanted.words, USUAL_WORDS)?;
    let images = &wanted.images;
    let items = Items::texts(wanted.text, wanted.texts, images)?;
    let model = wanted.model.as_deref();
    let session = |message: &Message, trail| {
        let media = message.modalities();
        Session::new(
            &jobs.inference,
            Task::Summarize,
            model,
            &media,
            &hints,
            trail,
        )
    };
    if wanted.stream {
        let Items::One(message) = items else {
            let message = "`stream` works with one text; leave it out with `texts`";
            return Err(bad_request(message).into());
        };
        // Before the stream begins, so that a wrong text has a status of its own.
        let message = Message::parse(&message, images)?;
        // The headers go out before the first model request: a chain's report is in the result.
        let session = session(&message, Trail::default());
        let work = |reporter| async move {
            Summary::new(session, limit, reporter)
                .summarize(&message)
                .await
        };
        return Ok(stream::events(Arc::clone(&jobs), Task::Summarize, work));
    }
    let one = |message: Value, trail| {
        let message = Message::parse(&message, images);
        let begun = message.map(|message| (session(&message, trail), message));
        async move {
            let (session, message) = begun?;
            of_message(session, &message, limit).await
        }
    };
    Ok(batch::answer(&jobs, Task::Summarize, items, one).await)
}

pub(super) fn checked_words(words: Option<u32>, usual: u32) -> Result<u32, Error> {
    check_range("words", words.unwrap_or(usual), WORDS)
}

/// # Errors
/// `Corrupt` if what a model wrote of a text is hardly shorter, both in bytes.
fn check_shorter(text: usize, written: usize) -> Result<(), Error> {
    if written * 10 <= text * 9 {
        return Ok(());
    }
    let message =
        format!("the model made {written} bytes of {text} bytes: it does not shorten the text");
    Err(Error::new(Code::Corrupt, message).hint("name a larger tier in `model`"))
}

/// How many words the notes on a piece may have, and as a bound that few reach, tokens: about an eighth and a fourth of the piece.
fn notes_of(context: u32) -> (u32, u32) {
    let words = (context / 20).clamp(20, 300);
    (words, (words * 3 + 64).min(context / 3))
}

/// Summarizes the oldest messages of a chat in as many words as suit the context of its model, a tier or a model's id. Returns the
/// summary, and whether a rule wrote it.
///
/// # Errors
/// Why there is no summary: `ContextExceeded` if the context is too small for one, `Corrupt` if the model writes none.
pub(crate) async fn of_chat(
    inference: &Arc<Inference>,
    model: &str,
    text: &str,
) -> Result<(String, bool), Error> {
    let (hints, trail) = (Hints::default(), Trail::default());
    let message = Message::of_text(text);
    let answered = of_conversation(inference, model, &hints, trail, &message).await?;
    let summary = answered.answer["summary"].as_str();
    let fallback = answered.answer["fallback"] == true;
    Ok((summary.unwrap_or_default().to_owned(), fallback))
}

/// As [`of_chat`], with what the answer of [`summarize`] has beside the summary.
pub(super) async fn of_conversation(
    inference: &Arc<Inference>,
    model: &str,
    hints: &Hints,
    trail: Trail,
    message: &Message,
) -> Result<TaskResult, Error> {
    let (model, media) = (Some(model), message.modalities());
    let session = Session::new(inference, Task::Summarize, model, &media, hints, trail);
    let (words, _) = notes_of(session.context_tokens());
    of_message(session, message, words).await
}

pub(super) async fn of_message(
    session: Session,
    message: &Message,
    words: u32,
) -> Result<TaskResult, Error> {
    let summary = Summary::new(session, words, Reporter::silent());
    summary.summarize(message).await
}

/// A summary that is being made.
struct Summary {
    session: Session,
    limit: u32,
    reporter: Reporter,
    /// Pieces that were read, of the source and of notes.
    pieces: usize,
    /// Answers that ran into their bound, of which the whole sentences were used.
    cut: usize,
}

impl Summary {
    fn new(session: Session, limit: u32, reporter: Reporter) -> Self {
        Self {
            session,
            limit,
            reporter,
            pieces: 0,
            cut: 0,
        }
    }

    /// A model that gives nothing usable of a text, or is known to summarize badly, is replaced by a rule.
    async fn summarize(mut self, source: &Message) -> Result<TaskResult, Error> {
        let is_text = source.media().next().is_none();
        if is_text && self.session.summarizes_badly().await {
            return self.by_rule(source).await;
        }
        let made = self.by_model(source).await;
        let made = made.and_then(|made| self.check_length(source, &made.0).map(|()| made));
        // Who answers for `auto` or a chain is known only now.
        let is_distrusted = is_text && made.is_ok() && self.session.summarizes_badly().await;
        match made {
            Err(error) if error.code == Code::Corrupt && is_text => self.by_rule(source).await,
            Ok(_) if is_distrusted => self.by_rule(source).await,
            made => {
                let (summary, levels) = made?;
                Ok(self.finish(source, summary, levels))
            }
        }
    }

    async fn by_rule(self, source: &Message) -> Result<TaskResult, Error> {
        let (text, limit) = (source.text(), self.limit as usize);
        let chosen = move || Ok(fallback::summary(&text, limit));
        let summary = blocking("choosing sentences", chosen).await?;
        Ok(self.finish(source, summary, 0))
    }

    /// Returns the summary, and the rounds that it took.
    async fn by_model(&mut self, source: &Message) -> Result<(String, u32), Error> {
        let context = self.session.context_tokens();
        let answer_tokens = (self.limit * 3 + 64).min(context / 2);
        let (_, note_tokens) = notes_of(context);
        let mut room = Room::new(self.room(context, answer_tokens.max(note_tokens))?);
        let mut text = source.text();
        let mut levels = 1;
        if source.media().next().is_some() {
            match self.with_media(source, &room, answer_tokens).await? {
                Some(summary) => return Ok((summary, levels)),
                None => text = self.noted_media(source, context, text).await?,
            }
            levels += 1;
        }
        for level in 0..MOST_LEVELS {
            let last = text.len() <= room.bytes();
            self.report(1, "summarizing");
            if last {
                let whole = Message::of_text(&text);
                match self.ask(&whole, self.limit, answer_tokens).await {
                    Ok((summary, _)) => return Ok((summary, level + levels)),
                    Err(error) if error.code != Code::ContextExceeded => return Err(error),
                    // It has more tokens than its bytes let expect.
                    Err(error) if !room.too_long() => return Err(error),
                    Err(_) => {}
                }
            }
            let notes = self.notes(&text, &mut room, context).await?;
            check_shorter(text.len(), notes.len())?;
            text = notes;
        }
        let message = format!("the text is still too long after {MOST_LEVELS} rounds of notes");
        Err(Error::new(Code::Corrupt, message).hint("name a tier with a larger context in `model`"))
    }

    /// # Errors
    /// `Corrupt` for a summary of more words than requested that is hardly shorter than its source.
    fn check_length(&self, source: &Message, summary: &str) -> Result<(), Error> {
        if count_words(summary) <= self.limit as usize || source.media().next().is_some() {
            return Ok(());
        }
        check_shorter(source.len(), summary.len())
    }

    fn report(&self, left: usize, doing: &str) {
        self.reporter.report(self.pieces, self.pieces + left, doing);
    }

    /// The summary of text, images and sound at once, unless the context does not hold them together.
    async fn with_media(
        &mut self,
        source: &Message,
        room: &Room,
        tokens: u32,
    ) -> Result<Option<String>, Error> {
        if source.len() > room.bytes() {
            return Ok(None);
        }
        self.report(1, "summarizing");
        match self.ask(source, self.limit, tokens).await {
            Ok((summary, _)) => Ok(Some(summary)),
            // How many tokens an image has, only its model knows.
            Err(error) if error.code == Code::ContextExceeded => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes on each image and sound, with the text behind them.
    async fn noted_media(
        &mut self,
        source: &Message,
        context: u32,
        text: String,
    ) -> Result<String, Error> {
        let (note_words, note_tokens) = notes_of(context);
        let mut notes = String::new();
        let count = source.media().count();
        for (index, medium) in source.media().enumerate() {
            self.report(count - index + 1, "reading");
            let one = Message::of_medium(medium.clone());
            let (note, _) = self.ask(&one, note_words, note_tokens).await?;
            notes.push_str(&format!("{note}\n\n"));
        }
        Ok(notes + &text)
    }

    /// Notes on all of a text, piece by piece.
    async fn notes(&mut self, text: &str, room: &mut Room, context: u32) -> Result<String, Error> {
        let (note_words, note_tokens) = notes_of(context);
        let mut notes = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = pieces::first(rest, room.bytes());
            if piece.trim().is_empty() {
                rest = after;
                continue;
            }
            let left = rest.len().div_ceil(room.bytes());
            self.report(left + 1, "reading");
            let message = Message::of_text(piece);
            match self.ask(&message, note_words, note_tokens).await {
                Ok((note, said)) => {
                    if piece.len() >= TELLING_BYTES {
                        room.counted(said.prompt_bytes, said.prompt_tokens);
                    }
                    notes += &note;
                    notes += "\n\n";
                    rest = after;
                }
                Err(error) if error.code == Code::ContextExceeded && room.too_long() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(notes)
    }

    /// Asks, and once there are notes that would be lost, again after what passes.
    async fn ask(
        &mut self,
        message: &Message,
        limit: u32,
        tokens: u32,
    ) -> Result<(String, Reply), Error> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let asked = self.ask_now(message, limit, tokens).await;
            let Err(error) = &asked else { return asked };
            let passes = self.pieces > 0 && setback(error.code) != Setback::Final;
            let Some(pause) = pauses.next().filter(|_| passes) else {
                return asked;
            };
            sleep(pause).await;
        }
    }

    async fn ask_now(
        &mut self,
        message: &Message,
        limit: u32,
        tokens: u32,
    ) -> Result<(String, Reply), Error> {
        for again in ["", ONLY_JSON] {
            let prompt = TaskPrompt {
                system: message.instructions(include_str!("prompts/summarize.md")),
                user: message.between(&format!("In at most {limit} words:"), again),
                schema: text_schema(),
                max_tokens: tokens,
            };
            let said = self.session.ask(&prompt).await?;
            if let Some((text, cut)) = text_of(&said) {
                self.pieces += 1;
                self.cut += usize::from(cut);
                return Ok((text, said));
            }
        }
        Err(no_answer(Task::Summarize))
    }

    /// Tokens of a text that the context holds beside instructions and answer.
    fn room(&self, context: u32, answer_tokens: u32) -> Result<usize, Error> {
        let instructions = include_str!("prompts/summarize.md").len() / 3 + 64;
        let instructions = u32::try_from(instructions).unwrap_or(u32::MAX);
        let room = context
            .saturating_sub(answer_tokens)
            .saturating_sub(instructions);
        if room >= LEAST_ROOM {
            return Ok(room as usize);
        }
        let message = format!(
            "a context of {context} tokens has too little room for text beside a summary of {} words",
            self.limit
        );
        Err(Error::new(Code::ContextExceeded, message)
            .hint("ask for fewer words, or name a tier with a larger context in `model`")
            .detail("context_tokens", context))
    }

    fn finish(self, source: &Message, summary: String, levels: u32) -> TaskResult {
        let saved = self
            .session
            .tokens_of(source.len().saturating_sub(summary.len()));
        let answer = json!({
            "words": count_words(&summary),
            "summary": summary,
            "pieces": self.pieces,
            "levels": levels,
            "fallback": levels == 0,
            "cut": self.cut,
        });
        self.session.done(answer, saved)
    }
}
