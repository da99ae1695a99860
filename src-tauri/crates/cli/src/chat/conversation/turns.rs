//! Turns of a conversation: each is begun, followed while its answer is printed, and stopped by Ctrl-C.

use super::Conversation;
use crate::{
    chat::{
        agent::{self, ConsentReply},
        broken_off,
        facts::{describe_nearly_full, describe_wait, show_speed},
        printer::AnswerPrinter,
    },
    client::{self, admin_path},
    confirm::no_signals,
    output,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tierbar_chats::{
    ChatSummary, Finish, StartedTurn, TurnEvent,
    agent::ConsentQuestion,
    context::{CHOICES, ContextOmission},
};
use tierbar_core::{Code, Error};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// A question of an agent is put if its answer does not follow within this time.
const ANSWERED_ALREADY: Duration = Duration::from_millis(300);

impl Conversation<'_> {
    /// Asks one question and prints the answer as it comes.
    pub(super) async fn ask(&mut self, text: &str) -> Result<(), Error> {
        let mut question = json!({"text": text, "model": self.tier, "when_full": self.when_full});
        if self.starts_over {
            question["parent"] = Value::Null;
        }
        if let Some(agent) = &self.agent {
            question["agent"] = agent.clone();
        }
        if !self.files.is_empty() {
            question["parts"] = self.files.clone().into();
        }
        self.begin(&question, 0).await
    }

    /// Begins a turn and prints its answer as it comes, after so many bytes of it. Ctrl-C stops the turn; what has come is stored.
    pub(super) async fn begin(&mut self, question: &Value, printed: usize) -> Result<(), Error> {
        // From here on, a Ctrl-C does not end the command and leave the turn running.
        let mut interrupts = signal(SignalKind::interrupt()).map_err(no_signals)?;
        let chat = self.chat().await?;
        let turns = admin_path(&["chats", &chat, "turns"], &[]);
        let turn: StartedTurn = client::read_answer(self.client.post(&turns, question).await?)?;
        // A question that is refused keeps them for the next try.
        self.files.clear();
        self.starts_over = false;
        self.print(&chat, &turn.id, printed, &mut interrupts).await
    }

    /// Prints the answer of a turn that runs already. Its error is not that of a question asked here.
    pub(super) async fn join(&self, chat: &str, turn: &str) {
        let printed = match signal(SignalKind::interrupt()).map_err(no_signals) {
            Ok(mut interrupts) => self.print(chat, turn, 0, &mut interrupts).await,
            Err(error) => Err(error),
        };
        if let Err(error) = printed {
            output::write_error(&error);
        }
    }

    /// Prints the answer of a turn as it comes, after so many bytes of it. Ctrl-C stops the turn.
    async fn print(
        &self,
        chat: &str,
        turn: &str,
        printed: usize,
        interrupts: &mut Signal,
    ) -> Result<(), Error> {
        let mut shown = AnswerPrinter {
            printed,
            ..AnswerPrinter::default()
        };
        let mut following = Box::pin(self.follow(chat, turn, &mut shown));
        let ended = tokio::select! {
            ended = &mut following => ended,
            _ = interrupts.recv() => {
                let path = admin_path(&["chats", chat, "turns", turn], &[]);
                self.client.delete(&path).await?;
                following.as_mut().await
            }
        };
        drop(following);
        shown.end_line();
        ended
    }

    /// The chat's id; the chat is made with its first question.
    async fn chat(&mut self) -> Result<String, Error> {
        if let Some(chat) = &self.chat {
            return Ok(chat.clone());
        }
        let body = json!({"model": self.tier, "instructions": self.instructions});
        let made = self.client.post("/tierbar/v1/chats", &body).await?;
        let chat: ChatSummary = client::read_answer(made)?;
        Ok(self.chat.insert(chat.id).clone())
    }

    /// Asks the person what the agent asks, and sends the answer. One that was given elsewhere meanwhile counts.
    async fn answer(
        &self,
        chat: &str,
        turn: &str,
        question: &ConsentQuestion,
    ) -> Result<(), Error> {
        let allow = match agent::ask(question).await? {
            ConsentReply::Scope(scope) => Some(scope),
            ConsentReply::No => None,
            ConsentReply::Stop => {
                let path = admin_path(&["chats", chat, "turns", turn], &[]);
                self.client.delete(&path).await?;
                return Ok(());
            }
        };
        let path = admin_path(&["chats", chat, "turns", turn, "consent"], &[]);
        let answer = json!({"id": question.id, "allow": allow});
        match self.client.post(&path, &answer).await {
            Err(error)
                if matches!(
                    error.code,
                    Code::Conflict | Code::BadRequest | Code::NotFound
                ) =>
            {
                output::write_error(&error);
                Ok(())
            }
            answered => answered.map(drop),
        }
    }

    async fn follow(&self, chat: &str, turn: &str, shown: &mut AnswerPrinter) -> Result<(), Error> {
        let path = admin_path(&["chats", chat, "turns", turn, "events"], &[]);
        let mut events = self.client.events(Method::GET, &path, None).await?;
        // One that is answered already is followed by its answer at once.
        let mut open: Option<ConsentQuestion> = None;
        loop {
            let event = if open.is_some() {
                timeout(ANSWERED_ALREADY, events.next()).await
            } else {
                Ok(events.next().await)
            };
            let event = match (event, open.take()) {
                (Ok(event), question) => {
                    open = question;
                    event.map_err(broken_off)?
                }
                (Err(_), Some(question)) => {
                    shown.end_line();
                    self.answer(chat, turn, &question).await?;
                    continue;
                }
                (Err(_), None) => continue,
            };
            let Some(event) = event else {
                return Err(broken_off("the connection ended"));
            };
            let event: TurnEvent = serde_json::from_value(event.data)
                .map_err(|error| broken_off(format!("an event that is not valid: {error}")))?;
            if let Some(error) = event.to_error() {
                return Err(with_choices(error));
            }
            match event {
                TurnEvent::Text { text, .. } => shown.add(&text),
                TurnEvent::Finished { message } => {
                    let left_out = message.answer.left_out.as_ref();
                    let left_out = left_out.map(ContextOmission::sentence);
                    let nearly_full = message.answer.context.and_then(describe_nearly_full);
                    let ending = match message.answer.finish {
                        Some(Finish::Repetition) => Some("Stopped: the answer repeated itself."),
                        Some(Finish::NoStep) => Some("Answered without using a tool."),
                        _ => None,
                    };
                    let ending = ending.map(str::to_owned);
                    for note in left_out.into_iter().chain(nearly_full).chain(ending) {
                        shown.end_line();
                        output::error_line(&note);
                    }
                    let wait = describe_wait(&message.answer);
                    let tier = message.answer.tier.unwrap_or_default();
                    if let Some(rate) = message.answer.decode_tokens_per_second {
                        show_speed(&tier, rate, &wait, message.answer.experts);
                    }
                    return Ok(());
                }
                TurnEvent::ToolCall {
                    name, arguments, ..
                } => {
                    shown.end_line();
                    agent::show_step(&name, &arguments);
                }
                TurnEvent::ToolResult { text, failed, .. } => agent::show_result(&text, failed),
                TurnEvent::Consent { question } => open = Some(question),
                TurnEvent::ConsentAnswered { .. } => open = None,
                TurnEvent::Progress { .. }
                | TurnEvent::LeftOut { .. }
                | TurnEvent::Started { .. }
                | TurnEvent::Reasoning { .. }
                | TurnEvent::Failed { .. } => {}
            }
        }
    }
}

/// The host's hint names choices that this command has an option for.
fn with_choices(error: Error) -> Error {
    if error.hint.as_deref() == Some(CHOICES) {
        return error.hint(
            "continue the chat with --when-full drop or --when-full summarize, or set a larger context for the tier",
        );
    }
    error
}
