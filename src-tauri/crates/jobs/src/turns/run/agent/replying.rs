//! What the model of an agent replies, and what of it is shown as it comes.

use crate::turns::run::{AnswerWriter, Ending, pace::Pace};
use serde_json::{Map, Value};
use std::{mem, ops::ControlFlow, time::Instant};
use tierbar_agent::{
    agent::{ModelRequest, Reply},
    calls::{Call, GrowingText},
    marking::WithoutMarks,
};
use tierbar_chats::{
    Finish,
    repetition::Repetition,
    thinking::{UnopenedEnd, WithoutThinking},
};
use tierbar_inference::{
    ask::{Event, ToolCall},
    request::Request,
};

/// One reply's text on its way to the person.
#[derive(Debug, Default)]
pub(super) struct ShownReply {
    /// Whether it is for the person.
    is_answer: bool,
    /// Those that are offered.
    tools: Vec<Value>,
    /// What is held may be a call instead.
    may_be_call: bool,
    /// Some servers leave what the model thinks in the text.
    thinking: WithoutThinking,
    unopened: UnopenedEnd,
    marks: WithoutMarks,
    thought_marks: WithoutMarks,
    has_begun: bool,
    /// What looks like a call so far.
    held: String,
    growing: GrowingText,
    held_end: Repetition,
}

impl ShownReply {
    pub(super) fn for_request(request: &ModelRequest) -> Self {
        Self {
            is_answer: request.is_answer,
            tools: request.tools.clone(),
            may_be_call: !request.tools.is_empty(),
            ..Self::default()
        }
    }
}

impl AnswerWriter {
    /// Asks the model, and shows its answer as it comes if it is for the person. What looks like a call is held back: it is shown
    /// by [`Self::release`] once it turns out to be the answer.
    pub(super) async fn reply(
        &mut self,
        fields: Map<String, Value>,
        shown: &mut ShownReply,
    ) -> Result<Reply, Ending> {
        let request = Request::streamed_chat(fields).map_err(Ending::Failed)?;
        // What was before was the work of tools, and the time in which a person was asked.
        self.pace = Pace::new(Instant::now());
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut reply = Reply::default();
        let streamed = self.stream(request, |turn, event| {
            let ending = match event {
                Event::Finished { .. } => return ControlFlow::Break(None),
                Event::ToolCall(part) => {
                    if let Some(call) = ToolCall::of(&mut calls, part.index) {
                        call.add(part);
                    }
                    None
                }
                Event::Text(text) => {
                    reply.text.push_str(&text);
                    turn.show_text(shown, &text)
                }
                Event::Reasoning(thought) => turn.show_thought(shown, &thought),
                Event::Usage(usage) => {
                    reply.tokens = usage.completion_tokens;
                    reply.read = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
                    turn.take(Event::Usage(usage))
                }
                event => turn.take(event),
            };
            ending.map_or(ControlFlow::Continue(()), |ending| {
                ControlFlow::Break(Some(ending))
            })
        });
        let streamed = streamed.await;
        let thought = shown.thinking.end_of_thought();
        let thought = shown.thought_marks.push(&thought) + &shown.thought_marks.end();
        if !thought.is_empty() {
            let _ended = self.take(Event::Reasoning(thought));
        }
        let last = shown.marks.push(&shown.thinking.end()) + &shown.marks.end();
        let (words, behind) = shown.unopened.push(&last);
        shown.held += &words;
        shown.held += &behind.unwrap_or_else(|| shown.unopened.end());
        self.note_thinking(false);
        // Beside a call, and where the reply broke off, it is no call.
        if streamed.is_err() || !calls.is_empty() {
            self.release(shown);
        }
        streamed?;
        reply.calls = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| Call {
                id: call.id.unwrap_or_else(|| format!("call-{at}")),
                name: call.name,
                arguments: call.arguments,
            })
            .collect();
        Ok(reply)
    }

    /// Shows more of a reply, unless it is not for the person or may be a call. How the turn ends, if it does.
    fn show_text(&mut self, shown: &mut ShownReply, text: &str) -> Option<Ending> {
        if !shown.is_answer {
            return None;
        }
        let (thought, answer) = shown.thinking.divide(text);
        if let Some(ending) = self.show_thought(shown, &thought) {
            return Some(ending);
        }
        if !thought.is_empty() || shown.thinking.is_thinking() {
            shown.unopened.stop();
        }
        let answer = shown.marks.push(&answer);
        if answer.is_empty() {
            return None;
        }
        let (words, behind) = shown.unopened.push(&answer);
        shown.held += &words;
        if let Some(behind) = behind {
            if let Some(ending) = self.release(shown) {
                return Some(ending);
            }
            // What follows the end of thoughts may be a call again.
            shown.held = behind;
            shown.may_be_call = !shown.tools.is_empty();
        }
        shown.may_be_call =
            shown.may_be_call && shown.growing.may_begin_call(&shown.held, &shown.tools);
        if !shown.may_be_call {
            return self.release(shown);
        }
        self.note_token();
        let repeats = shown.held_end.push(&answer);
        repeats.then_some(Ending::Answered(Finish::Repetition))
    }

    /// Shows more of what the model thinks.
    fn show_thought(&mut self, shown: &mut ShownReply, thought: &str) -> Option<Ending> {
        let thought = shown.thought_marks.push(thought);
        if thought.is_empty() {
            return None;
        }
        self.take(Event::Reasoning(thought))
    }

    /// Shows what was held back of a reply.
    pub(super) fn release(&mut self, shown: &mut ShownReply) -> Option<Ending> {
        let text = mem::take(&mut shown.held);
        if text.is_empty() || !shown.is_answer {
            return None;
        }
        let text = if mem::replace(&mut shown.has_begun, true) {
            text
        } else {
            self.apart(text)
        };
        self.take(Event::Text(text))
    }

    /// The text with a blank line before it, if something was shown already.
    fn apart(&self, text: String) -> String {
        let (before, _) = self.turn.log.content_from((0, 0));
        if before.is_empty() {
            text
        } else {
            format!("\n\n{text}")
        }
    }

    pub(super) fn show(&mut self, text: &str) {
        let text = self.apart(text.to_owned());
        let _ended = self.take(Event::Text(text));
    }
}
