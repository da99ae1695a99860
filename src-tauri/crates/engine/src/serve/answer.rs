//! OpenAI's response bodies: whole, and as server-sent events.

mod probabilities;

use super::{RunningJobs, reader::AnswerReader};
use crate::{
    generate::{AnswerSummary, FinishReason, JobEvent, ScoredPrompt, TokenReport},
    llama::{AnswerParser, Sampling},
};
use axum::{
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use probabilities::{TextProbabilities, chat_probabilities, probabilities_by_id};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::Error;
use tierbar_grammar::OfferedTools;

#[derive(Debug, Clone)]
pub(super) enum AnswerKind {
    Chat {
        /// Set if the answer may be more than text.
        parser: Option<Arc<AnswerParser>>,
        /// Whether a call has OpenAI's older form.
        function_call: bool,
        /// The functions whose calls may come as text.
        writable: Option<Arc<OfferedTools>>,
    },
    Completion,
}

/// The fields that every chunk of an answer repeats, and its counters.
#[derive(Debug)]
pub(super) struct Answer {
    kind: AnswerKind,
    id: String,
    created: u64,
    model: String,
    prompted: PromptReport,
    /// How many of the prompts' tokens were cached.
    cached_tokens: usize,
    /// Tokens of all ended choices.
    completion_tokens: usize,
    /// The client's stop strings. Those of the template are not reported.
    stops: Vec<String>,
    /// See [`sampling_report`].
    sampling: Value,
    /// The readers of a streamed chat's choices.
    readers: Vec<AnswerReader>,
    /// How many characters of tokens each choice of a streamed completion has reported.
    offsets: Vec<usize>,
    /// A stream ends with its usage, and its other chunks say that there is none yet.
    include_usage: bool,
}

/// What an answer says of its prompts.
#[derive(Debug)]
pub(super) struct PromptReport {
    /// What comes before each choice's text; empty for nothing.
    pub(super) echoes: Vec<String>,
    /// The alternatives to each token of an echo; `None` for no probabilities.
    pub(super) echoed_top: Option<usize>,
    /// The same for `prompt_logprobs`.
    pub(super) top: Option<usize>,
    /// Tokens of all prompts.
    pub(super) tokens: usize,
    /// Answers per prompt.
    pub(super) answers: usize,
}

/// The answer of one choice so far.
#[derive(Debug, Default)]
struct PartialChoice {
    text: String,
    scored: Option<ScoredPrompt>,
    reports: Vec<TokenReport>,
    summary: Option<AnswerSummary>,
}

impl Answer {
    pub(super) fn new(
        kind: AnswerKind,
        model: String,
        prompted: PromptReport,
        stops: Vec<String>,
        sampling: Value,
    ) -> Self {
        let prefix = match &kind {
            AnswerKind::Chat { .. } => "chatcmpl",
            AnswerKind::Completion => "cmpl",
        };
        let created = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        Self {
            kind,
            id: format!("{prefix}-{}", uuid::Uuid::new_v4().simple()),
            created,
            model,
            prompted,
            cached_tokens: 0,
            completion_tokens: 0,
            stops,
            sampling,
            readers: Vec::new(),
            offsets: Vec::new(),
            include_usage: false,
        }
    }

    /// Waits for the end and returns the whole body.
    pub(super) async fn whole(mut self, mut running: RunningJobs) -> Result<Value, Error> {
        let mut choices: Vec<PartialChoice> = Vec::new();
        while let Some((index, event)) = running.next().await {
            if choices.len() <= index {
                choices.resize_with(index + 1, PartialChoice::default);
            }
            let choice = &mut choices[index];
            match event {
                JobEvent::Prompt(scored) => choice.scored = Some(scored),
                JobEvent::Text { text, reports, .. } => {
                    choice.text.push_str(&text);
                    choice.reports.extend(reports);
                }
                JobEvent::Done(summary) => {
                    self.count(index, &summary);
                    choice.summary = Some(summary);
                }
                JobEvent::Saved(..) | JobEvent::Embedded(_) => {}
                JobEvent::Failed(error) => return Err(error),
            }
        }
        let timings = match &*choices {
            [only] => only.summary.as_ref().map(|summary| summary.timings),
            _ => None,
        };
        let choices = choices.into_iter().enumerate();
        let choices = choices.map(|(index, choice)| self.finished(index, choice));
        let mut body = self.body(false, choices.collect());
        body["usage"] = self.usage();
        body["sampling"] = self.sampling.take();
        if let Some(timings) = timings {
            body["timings"] = json!(timings);
        }
        Ok(body)
    }

    fn count(&mut self, index: usize, summary: &AnswerSummary) {
        self.completion_tokens += summary.timings.predicted_n;
        // Further answers to a prompt share the prefill of the first.
        if index.is_multiple_of(self.prompted.answers) {
            self.cached_tokens += summary.timings.cache_n;
        }
    }

    fn finished(&self, index: usize, choice: PartialChoice) -> Value {
        let finish = choice.summary.as_ref().map(|summary| summary.finish);
        let finished = match &self.kind {
            AnswerKind::Chat { .. } => {
                let mut reader = self.reader();
                reader.take(&choice.text, finish == Some(FinishReason::Length));
                let finish = finish.map(|finish| finish_reason_name(finish, reader.call_reason()));
                let logprobs = chat_probabilities(&choice.reports);
                one(index, ("message", reader.message()), logprobs, finish)
            }
            AnswerKind::Completion => {
                let echo = self.prompted.echoes.get(index).map_or("", String::as_str);
                let text = format!("{echo}{}", choice.text);
                let finish = finish.map(|finish| finish_reason_name(finish, None));
                let mut list = TextProbabilities::default();
                if let (Some(scored), Some(top)) = (&choice.scored, self.prompted.echoed_top) {
                    list.echo(scored, top);
                }
                list.add(&choice.reports, usize::MAX);
                let mut one = one(index, ("text", json!(text)), list.into(), finish);
                if let (Some(scored), Some(top)) = (&choice.scored, self.prompted.top) {
                    one["prompt_logprobs"] = probabilities_by_id(scored, top);
                }
                one
            }
        };
        match choice.summary {
            Some(summary) => self.with_stop(finished, &summary),
            None => finished,
        }
    }

    /// Adds the stop string or token that ended a choice, under vLLM's name.
    fn with_stop(&self, mut choice: Value, summary: &AnswerSummary) -> Value {
        if let Some(token) = summary.stop_token {
            choice["stop_reason"] = json!(token);
        }
        let stop = summary.stop.as_ref();
        if let Some(stop) = stop.filter(|stop| self.stops.contains(stop)) {
            choice["stop_reason"] = json!(stop);
        }
        choice
    }

    /// Answers with a stream of events. A failure before the first text is an error with its own status.
    pub(super) async fn stream(
        mut self,
        mut running: RunningJobs,
        include_usage: bool,
    ) -> Result<Response, Error> {
        let choices = running.left;
        self.include_usage = include_usage;
        if let AnswerKind::Chat { .. } = &self.kind {
            self.readers = (0..choices).map(|_| self.reader()).collect();
        }
        let first = match running.next().await {
            Some((_, JobEvent::Failed(error))) => return Err(error),
            first => first,
        };
        let cached = first.as_ref().map_or(0, |(_, event)| event.cached());
        let first = self.opening(choices, cached) + &self.events(first).0;
        let state = Some((self, running));
        let rest = stream::unfold(state, move |state| async move {
            let (mut answer, mut running) = state?;
            let (events, ended) = answer.events(running.next().await);
            Some((events, (!ended).then_some((answer, running))))
        });
        let events = stream::once(async { first }).chain(rest);
        let body = events.map(|events| Ok::<_, Infallible>(Bytes::from(events)));
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        Ok((headers, Body::from_stream(body)).into_response())
    }

    fn reader(&self) -> AnswerReader {
        match &self.kind {
            AnswerKind::Chat {
                parser,
                function_call,
                writable,
            } => AnswerReader::new(parser.clone(), *function_call, writable.clone()),
            AnswerKind::Completion => AnswerReader::new(None, false, None),
        }
    }

    /// Returns the first events of each choice. `cached`: how many of the prompt's tokens were.
    fn opening(&self, choices: usize, cached: usize) -> String {
        let begin = |index: usize| match &self.kind {
            AnswerKind::Chat { .. } => {
                let role = json!({"role": "assistant", "content": ""});
                let choice = one(index, ("delta", role), Value::Null, None);
                let mut body = self.body(true, vec![choice]);
                body["sampling"] = self.sampling.clone();
                // Anthropic's streams begin with them.
                body["prompt_tokens"] = json!(self.prompted.tokens);
                body["cached_tokens"] = json!(cached);
                event_data(&body)
            }
            // Its probabilities come with it.
            AnswerKind::Completion if self.prompted.echoed_top.is_some() => String::new(),
            AnswerKind::Completion => match self.prompted.echoes.get(index) {
                Some(echo) => {
                    let text = ("text", json!(echo));
                    self.chunk(one(index, text, Value::Null, None), None)
                }
                None => String::new(),
            },
        };
        (0..choices).map(begin).collect()
    }

    /// Returns the server-sent events of one engine event, and whether they end the stream. `None` means that all choices
    /// have ended.
    fn events(&mut self, event: Option<(usize, JobEvent)>) -> (String, bool) {
        let Some((index, event)) = event else {
            let mut events = String::new();
            if self.include_usage {
                let mut body = self.body(true, Vec::new());
                body["usage"] = self.usage();
                events += &event_data(&body);
            }
            return (events + "data: [DONE]\n\n", true);
        };
        match event {
            JobEvent::Prompt(scored) => (self.echo_event(index, &scored), false),
            JobEvent::Text { text, reports, .. } => {
                (self.text_event(index, &text, &reports), false)
            }
            JobEvent::Done(summary) => {
                self.count(index, &summary);
                (self.last(index, &summary), false)
            }
            JobEvent::Saved(..) | JobEvent::Embedded(_) => (String::new(), false),
            JobEvent::Failed(error) => {
                // What was held back is no call then.
                let all = 0..self.readers.len();
                let held: String = all.map(|index| self.left(index, true)).collect();
                (held + &event_data(&error.openai_body()), true)
            }
        }
    }

    fn echo_event(&mut self, index: usize, scored: &ScoredPrompt) -> String {
        let Some(top) = self.prompted.echoed_top else {
            return String::new();
        };
        let mut list = TextProbabilities::default();
        list.echo(scored, top);
        *self.offset(index) = list.offset;
        let echo = self.prompted.echoes.get(index).map_or("", String::as_str);
        self.chunk(one(index, ("text", json!(echo)), list.into(), None), None)
    }

    fn offset(&mut self, index: usize) -> &mut usize {
        if self.offsets.len() <= index {
            self.offsets.resize(index + 1, 0);
        }
        &mut self.offsets[index]
    }

    fn text_event(&mut self, index: usize, text: &str, reports: &[TokenReport]) -> String {
        let Some(reader) = self.readers.get_mut(index) else {
            let mut list = TextProbabilities::after(*self.offset(index));
            list.add(reports, usize::MAX);
            *self.offset(index) = list.offset;
            let text = ("text", json!(text));
            return self.chunk(one(index, text, list.into(), None), None);
        };
        let mut logprobs = chat_probabilities(reports);
        let mut deltas = reader.push(text);
        // Probabilities are sent even while the text waits.
        if deltas.is_empty() && !logprobs.is_null() {
            deltas.push(json!({}));
        }
        let chunk = |delta| {
            let choice = one(index, ("delta", delta), logprobs.take(), None);
            self.chunk(choice, None)
        };
        deltas.into_iter().map(chunk).collect()
    }

    fn last(&mut self, index: usize, summary: &AnswerSummary) -> String {
        if index >= self.readers.len() {
            let finish = Some(finish_reason_name(summary.finish, None));
            let choice = one(index, ("text", json!("")), Value::Null, finish);
            return self.chunk(self.with_stop(choice, summary), Some(summary));
        }
        let left = self.left(index, summary.finish == FinishReason::Length);
        let reason = self.readers[index].call_reason();
        let finish = Some(finish_reason_name(summary.finish, reason));
        let end = one(index, ("delta", json!({})), Value::Null, finish);
        left + &self.chunk(self.with_stop(end, summary), Some(summary))
    }

    /// The chunks of what was held back of a chat answer. `cut`: it was not at its end.
    fn left(&mut self, index: usize, cut: bool) -> String {
        let deltas = self.readers[index].finish(cut).into_iter();
        let choices = deltas.map(|delta| one(index, ("delta", delta), Value::Null, None));
        choices.map(|choice| self.chunk(choice, None)).collect()
    }

    fn chunk(&self, choice: Value, summary: Option<&AnswerSummary>) -> String {
        let mut body = self.body(true, vec![choice]);
        if let Some(summary) = summary {
            body["timings"] = json!(summary.timings);
        }
        event_data(&body)
    }

    /// Returns a whole answer or a chunk of one.
    fn body(&self, is_chunk: bool, choices: Vec<Value>) -> Value {
        let object = match (&self.kind, is_chunk) {
            (AnswerKind::Chat { .. }, true) => "chat.completion.chunk",
            (AnswerKind::Chat { .. }, false) => "chat.completion",
            (AnswerKind::Completion, _) => "text_completion",
        };
        let mut body = json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if self.include_usage {
            body["usage"] = Value::Null;
        }
        body
    }

    fn usage(&self) -> Value {
        let (prompt, completion) = (self.prompted.tokens, self.completion_tokens);
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        })
    }
}

/// The sampling values that are used, the model's own and the defaults among them. OpenAI's Responses API repeats these four.
pub(super) fn sampling_report(sampling: &Sampling) -> Value {
    // The shortest decimal of the value: 0.8, and not the 0.800000011920929 that its bits are.
    let number = |value: f32| value.to_string().parse::<f64>().unwrap_or_default();
    json!({
        "temperature": number(sampling.temperature),
        "top_p": number(sampling.top_p),
        "presence_penalty": number(sampling.presence_penalty),
        "frequency_penalty": number(sampling.frequency_penalty),
    })
}

fn one(
    index: usize,
    (key, content): (&str, Value),
    logprobs: Value,
    finish: Option<&str>,
) -> Value {
    json!({"index": index, key: content, "logprobs": logprobs, "finish_reason": finish})
}

/// `call`: the reason that an answer with a call has.
fn finish_reason_name(finish: FinishReason, call: Option<&'static str>) -> &'static str {
    match finish {
        FinishReason::Length => "length",
        FinishReason::Stop => call.unwrap_or("stop"),
    }
}

fn event_data(body: &Value) -> String {
    format!("data: {body}\n\n")
}
