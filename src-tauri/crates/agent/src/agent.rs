//! The agent's loop: a pure state machine. The model's step becomes an act, the act is decided about, what it found goes back to the
//! model as data, until the model answers or a limit is reached.
//!
//! There is no I/O here. The caller does what [`Output`] says and returns the result as [`Input`], with the time and a fresh random
//! text. An input that does not belong to what is open changes nothing.

mod exchange;
mod prompts;
#[cfg(test)]
mod tests;
mod wire;

pub use exchange::{
    ActResult, Bounds, FailedStep, Finish, Input, Message, MisplacedInput, ModelRequest, Moment,
    Output, Reply, Task, Way,
};

use crate::{
    calls::{Call, CallIntent, addresses, as_call, named_calls},
    consent::{Act, Change, Decision, Grant, Grants, PendingAct, PermittedAct, WebAddress, decide},
    marking::{mark, without_marks},
    text_choice::{self, Route},
};
use serde_json::Value;
use std::{collections::VecDeque, mem};
use tierbar_chats::thinking::without_thoughts;
use tierbar_core::json;

#[derive(Debug)]
enum State {
    New,
    /// The model answers for this purpose.
    Asked(Purpose),
    Preparing,
    Consent {
        pending: PendingAct,
        since: u64,
    },
    Doing(Act),
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Calls,
    /// `again`: the first answer could not be read.
    Route {
        again: bool,
    },
    Line(Route),
    Answer,
}

/// One turn of the agent.
#[derive(Debug)]
pub struct Agent {
    task: Task,
    state: State,
    messages: Vec<Message>,
    /// Calls of the last reply that are still to be done; the first one is open.
    calls: VecDeque<Call>,
    /// What the model wrote for a route, by text.
    line: Option<(Route, String)>,
    failed: Vec<FailedStep>,
    known: Vec<WebAddress>,
    /// What stands for each act that was carried out.
    done: Vec<String>,
    started: u64,
    waited: u64,
    tokens: u64,
    tokens_read: u64,
    acts: u64,
    refusals: u64,
    questions: u64,
    mistakes: u64,
    /// The limit that was reached.
    exhausted: Option<String>,
}

/// The longest answer of the model, in tokens.
const ANSWER_TOKENS: u64 = 8_192;
/// The longest answer to a choice, in tokens; a model that thinks has more.
const ROUTE_TOKENS: u64 = 16;
const ROUTE_TOKENS_WITHOUT_GRAMMAR: u64 = 256;

impl Agent {
    pub fn new(task: Task) -> Self {
        let known = addresses(&task.question);
        let messages = vec![Message::User(task.question.clone())];
        Self {
            task,
            state: State::New,
            messages,
            calls: VecDeque::new(),
            line: None,
            failed: Vec::new(),
            known,
            done: Vec::new(),
            started: 0,
            waited: 0,
            tokens: 0,
            tokens_read: 0,
            acts: 0,
            refusals: 0,
            questions: 0,
            mistakes: 0,
            exhausted: None,
        }
    }

    /// What was allowed so far, to be stored.
    pub fn grants(&self) -> &Grants {
        &self.task.grants
    }

    /// Replaces what was allowed, which a person may have revoked meanwhile.
    pub fn set_grants(&mut self, list: Vec<Grant>) {
        self.task.grants = Grants::new(list, &self.task.chat);
    }

    /// The steps that failed since the last call, to be shown.
    pub fn take_failed(&mut self) -> Vec<FailedStep> {
        mem::take(&mut self.failed)
    }

    /// The messages of this turn.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Takes what has happened, and returns what is next.
    ///
    /// # Errors
    /// [`MisplacedInput`]; nothing has changed then.
    pub fn step(&mut self, input: Input, at: Moment<'_>) -> Result<Output, MisplacedInput> {
        if matches!(self.state, State::Finished) {
            return Err(MisplacedInput::NotOpen);
        }
        if let Input::Stop = input {
            return Ok(self.finish(Finish::Stopped));
        }
        // An answer is checked before anything is changed.
        if let (Input::Answer(answer), State::Consent { pending, since }) = (&input, &self.state) {
            let (chat, grants) = (&self.task.chat, &mut self.task.grants);
            let permitted = pending.answer(answer, chat, grants, at.now)?;
            self.waited = self.waited.saturating_add(at.now.saturating_sub(*since));
            return Ok(match permitted {
                Some(permitted) => self.carry_out(permitted),
                None => self.refuse(at),
            });
        }
        let state = mem::replace(&mut self.state, State::Finished);
        match (input, state) {
            (Input::Begin, State::New) => {
                self.started = at.now;
                Ok(self.ask(at.now))
            }
            (Input::Reply(reply), State::Asked(purpose)) => {
                self.tokens = self.tokens.saturating_add(reply.tokens);
                self.tokens_read = self.tokens_read.saturating_add(reply.read);
                Ok(self.read_reply(reply, purpose, at))
            }
            (Input::Prepared(prepared), State::Preparing) => Ok(match prepared {
                Ok(change) => self.prepared(change, at),
                Err(why) => self.fail(&why, at),
            }),
            (Input::Done(done), State::Doing(act)) => {
                let text = match done {
                    Ok(found) => {
                        // A page's or a tool's addresses stay unknown, whatever the host says.
                        if let Act::Search { .. } = act {
                            self.known.extend(found.addresses);
                        }
                        found.text
                    }
                    Err(why) => format!("It failed: {why}"),
                };
                self.done.push(act.identity());
                Ok(self.observe(&text, at))
            }
            (_, state) => {
                self.state = state;
                Err(MisplacedInput::NotOpen)
            }
        }
    }

    fn finish(&mut self, how: Finish) -> Output {
        self.state = State::Finished;
        Output::Finish(how)
    }

    fn ask(&mut self, now: u64) -> Output {
        self.note_limits(now);
        let purpose = match self.task.way {
            _ if self.exhausted.is_some() => Purpose::Answer,
            Way::Calls => Purpose::Calls,
            Way::Text { .. } => {
                let routes = self.task.surroundings.routes();
                if routes == [Route::Chat] {
                    Purpose::Answer
                } else {
                    Purpose::Route { again: false }
                }
            }
        };
        self.ask_for(purpose)
    }

    fn ask_for(&mut self, purpose: Purpose) -> Output {
        let surroundings = &self.task.surroundings;
        let routes = surroundings.routes();
        let left = self.task.bounds.tokens.saturating_sub(self.tokens);
        let left = left.clamp(256, ANSWER_TOKENS);
        let mut ask = ModelRequest {
            system: prompts::system(surroundings),
            messages: self.messages.clone(),
            tools: Vec::new(),
            grammar: None,
            max_tokens: left,
            is_answer: false,
        };
        match purpose {
            Purpose::Calls => {
                ask.tools = surroundings.tools();
                // It may turn out to be one.
                ask.is_answer = true;
            }
            Purpose::Route { again } => {
                ask.system = text_choice::prompt(&routes);
                let Way::Text { grammar } = self.task.way else {
                    return self.ask_for(Purpose::Answer);
                };
                let mut question = text_choice::question(&routes);
                if again && !grammar {
                    question.push_str(prompts::ONE_WORD);
                }
                ask.messages.push(Message::User(question));
                ask.grammar = grammar.then(|| text_choice::grammar(&routes));
                ask.max_tokens = if grammar {
                    ROUTE_TOKENS
                } else {
                    ROUTE_TOKENS_WITHOUT_GRAMMAR
                };
            }
            Purpose::Line(route) => {
                let line = prompts::route_line(route);
                ask.messages.push(Message::User(line.to_owned()));
            }
            Purpose::Answer => {
                if let Some(limit) = &self.exhausted {
                    let note = prompts::answer_now(limit);
                    ask.messages.push(Message::User(note));
                }
                ask.is_answer = true;
            }
        }
        self.state = State::Asked(purpose);
        Output::Ask(ask)
    }

    fn note_limits(&mut self, now: u64) {
        let bounds = &self.task.bounds;
        let seconds = now.saturating_sub(self.started).saturating_sub(self.waited);
        let counted = [
            (self.acts, bounds.acts, "steps"),
            (self.tokens, bounds.tokens, "tokens"),
            (self.tokens_read, bounds.read, "tokens read"),
            (seconds, bounds.seconds, "s"),
            (self.refusals, bounds.refusals, "refusals by the user"),
            (self.questions, bounds.questions, "questions to the user"),
            (
                self.mistakes,
                bounds.mistakes,
                "steps in a row that came to nothing",
            ),
        ];
        let reached = counted.into_iter().find(|(count, most, _)| count >= most);
        if let Some((_, most, what)) = reached {
            self.exhausted
                .get_or_insert_with(|| format!("{most} {what}"));
        }
    }

    fn read_reply(&mut self, reply: Reply, purpose: Purpose, at: Moment<'_>) -> Output {
        let text = without_marks(without_thoughts(&reply.text));
        let text = text.trim().to_owned();
        match purpose {
            Purpose::Answer => self.answered(text),
            Purpose::Calls if reply.calls.is_empty() => {
                let tools = self.task.surroundings.tools();
                let written = named_calls(&reply.text, &tools);
                if written.is_empty() {
                    return self.answered(text);
                }
                let ids = self.messages.len()..;
                let calls = ids.zip(written).map(|(id, (name, arguments))| Call {
                    id: format!("written-{id}"),
                    name,
                    arguments,
                });
                self.begin_calls(String::new(), calls.collect(), at)
            }
            Purpose::Calls => self.begin_calls(text, reply.calls, at),
            Purpose::Route { again } => {
                let routes = self.task.surroundings.routes();
                match text_choice::parse(&reply.text, &routes) {
                    Some(Route::Chat) => self.ask_for(Purpose::Answer),
                    Some(route) => self.ask_for(Purpose::Line(route)),
                    None if !again => self.ask_for(Purpose::Route { again: true }),
                    None => {
                        self.mistakes += 1;
                        self.note_limits(at.now);
                        match self.exhausted {
                            Some(_) => self.ask_for(Purpose::Answer),
                            None => self.ask_for(Purpose::Route { again: true }),
                        }
                    }
                }
            }
            Purpose::Line(route) => {
                self.messages.push(Message::Assistant {
                    text: format!("{}: {text}", route.as_str()),
                    calls: Vec::new(),
                });
                let surroundings = &self.task.surroundings;
                let wanted = surroundings.read_line(route, &reply.text, &self.known);
                self.line = Some((route, text));
                self.take(wanted, at)
            }
        }
    }

    fn begin_calls(&mut self, text: String, calls: Vec<Call>, at: Moment<'_>) -> Output {
        self.calls = calls.clone().into();
        self.messages.push(Message::Assistant { text, calls });
        self.next_call(at)
    }

    fn answered(&mut self, text: String) -> Output {
        if text.is_empty() {
            let limit = self.exhausted.clone();
            let limit = limit.unwrap_or_else(|| "an empty answer".to_owned());
            return self.finish(Finish::Exhausted(limit));
        }
        self.messages.push(Message::Assistant {
            text: text.clone(),
            calls: Vec::new(),
        });
        self.finish(Finish::Answered(text))
    }

    /// Turns to the first call that is still to be done, or to the model.
    fn next_call(&mut self, at: Moment<'_>) -> Output {
        self.note_limits(at.now);
        match (self.calls.front(), &self.exhausted) {
            (None, _) => self.ask(at.now),
            // Each call needs its answer, also where nothing is done any more.
            (Some(_), Some(limit)) => {
                let text = format!("Not done: the limit of {limit} is reached.");
                self.observe(&text, at)
            }
            (Some(call), None) => {
                let wanted = self.task.surroundings.read_call(call, &self.known);
                self.take(wanted, at)
            }
        }
    }

    /// Takes what the model wants, if it could be read.
    fn take(&mut self, wanted: Result<CallIntent, String>, at: Moment<'_>) -> Output {
        match wanted {
            Ok(CallIntent::Act(act)) => self.decide(act, at),
            Ok(prepare) => {
                self.state = State::Preparing;
                Output::Prepare(prepare)
            }
            Err(why) => self.fail(&format!("This could not be read: {why}"), at),
        }
    }

    fn prepared(&mut self, change: Change, at: Moment<'_>) -> Output {
        match self.task.surroundings.folder.clone() {
            Some(folder) => self.decide(Act::Write { folder, change }, at),
            None => self.observe("this chat has no folder", at),
        }
    }

    fn decide(&mut self, act: Act, at: Moment<'_>) -> Output {
        let identity = act.identity();
        let times = self.done.iter().filter(|done| **done == identity).count();
        if times as u64 >= self.task.bounds.repeats {
            let text = format!("This was done {times} times already, and is not done again.");
            return self.fail(&text, at);
        }
        let (general, grants) = (self.task.general, &self.task.grants);
        match decide(act, general, grants, at.now, at.id.to_owned()) {
            Decision::Allowed(permitted) => self.carry_out(permitted),
            Decision::Ask(pending) => {
                self.mistakes = 0;
                self.questions += 1;
                let question = pending.question().clone();
                self.state = State::Consent {
                    pending,
                    since: at.now,
                };
                Output::Consent(question)
            }
            Decision::Refused(why) => self.fail(&format!("Not done: {why}"), at),
        }
    }

    fn carry_out(&mut self, permitted: PermittedAct) -> Output {
        self.mistakes = 0;
        self.acts += 1;
        self.state = State::Doing(permitted.act().clone());
        Output::Do(permitted)
    }

    fn refuse(&mut self, at: Moment<'_>) -> Output {
        self.refusals += 1;
        // Not marked as data, which the model is told not to follow.
        let call = self.calls.pop_front();
        self.answer_call(call, prompts::REFUSED.to_owned(), at)
    }

    /// Notes that the open step comes to nothing, says so to the model, and goes on.
    fn fail(&mut self, why: &str, at: Moment<'_>) -> Output {
        self.mistakes += 1;
        let (tool, arguments) = self.open_step();
        self.failed.push(FailedStep {
            tool,
            arguments,
            why: why.to_owned(),
        });
        self.observe(why, at)
    }

    /// Returns the open step: the name of its tool, as the model has called it or could have, and the arguments.
    pub fn open_step(&self) -> (String, Value) {
        match (self.calls.front(), &self.line) {
            (Some(call), _) => {
                let arguments = json::read(call.arguments.as_bytes());
                let arguments = arguments.unwrap_or_else(|_| call.arguments.as_str().into());
                (call.name.trim().to_owned(), arguments)
            }
            (None, Some((route, text))) => as_call(*route, text),
            (None, None) => (String::new(), Value::Null),
        }
    }

    /// Gives the model what came of its open call, and goes on.
    fn observe(&mut self, text: &str, at: Moment<'_>) -> Output {
        let call = self.calls.pop_front();
        let tool = call.as_ref().map_or("the step", |call| call.name.as_str());
        let text = mark(tool, text, at.nonce);
        self.answer_call(call, text, at)
    }

    fn answer_call(&mut self, call: Option<Call>, text: String, at: Moment<'_>) -> Output {
        self.messages.push(Message::Observation {
            call: call.map(|call| call.id),
            text,
        });
        self.next_call(at)
    }
}
