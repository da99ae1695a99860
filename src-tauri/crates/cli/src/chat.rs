//! `tierbar chat`: a conversation in the terminal, which the chat window shows too, or one question.

mod agent;
mod commands;
mod files;

use crate::{
    client::{self, Client, admin},
    costs, grades, output,
};
use agent::{AgentArgs, ConsentReply};
use commands::{COMMANDS, Completion, Input};
use futures_util::StreamExt;
use reqwest::{Method, Response};
use rustyline::{Editor, error::ReadlineError, history::DefaultHistory};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
    time::Duration,
};
use tierbar_chat::{
    AnswerFacts, Chat, ChatMessage, ChatSummary, ExpertReads, Finish, Role, TurnBegun, TurnEvent,
    agent::ConsentQuestion,
    branch,
    context::{CHOICES, ContextUse, LeftOut},
    thinking::{WithoutThinking, split},
};
use tierbar_core::{Code, Error, TierId, units::file_size};
use tierbar_routing::grade::GradeVerdict;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// A question of an agent is put if its answer does not follow within this time.
const ANSWERED_ALREADY: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("printed").args(["once", "list"])))]
pub(crate) struct Args {
    /// Tier that answers [default: auto, the smallest that can]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Ask one question without saving it, print the answer and exit; "-" reads the question from stdin
    #[arg(long, value_name = "PROMPT", conflicts_with_all = ["resume", "list"])]
    once: Option<String>,
    /// Continue the chat with this ID, and join its running answer
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    resume: Option<String>,
    /// What to do when the chat no longer fits the context: refuse to answer, or drop or summarize the oldest messages [default: the
    /// chat's last choice, or refuse]
    #[arg(long, value_name = "CHOICE", value_parser = ["refuse", "drop", "summarize"], conflicts_with_all = ["once", "list"])]
    when_full: Option<String>,
    /// Text, image or sound file to send with the first question; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "list")]
    file: Vec<PathBuf>,
    /// List saved chats with their IDs
    #[arg(long)]
    list: bool,
    /// Print the answer of --once, or the chats of --list, as JSON
    #[arg(long, requires = "printed")]
    json: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let agent = args.agent.options()?;
    let prompt = args.once.map(question).transpose()?;
    let client = Client::running_or_own(home).await?;
    let outcome = if args.list {
        list(&client, args.json).await
    } else if let Some(prompt) = prompt {
        ask_once(&client, args.tier, &prompt, &args.file, args.json).await
    } else {
        let begun = Begun {
            tier: args.tier,
            when_full: args.when_full,
            resume: args.resume,
            agent,
        };
        converse(&client, begun, &args.file).await
    };
    client.close().await;
    outcome
}

fn question(once: String) -> Result<String, Error> {
    let mut text = once;
    if text == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| {
                Error::new(
                    Code::BadRequest,
                    format!("the question on stdin cannot be read: {error}"),
                )
            })?;
    }
    if text.trim().is_empty() {
        return Err(Error::new(Code::BadRequest, "the question is empty"));
    }
    Ok(text)
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut listed = client.get(&admin(&["chats"], &[])).await?;
    if as_json {
        output::json(&listed["chats"]);
        return Ok(());
    }
    let chats: Vec<ChatSummary> = client::read(listed["chats"].take())?;
    if chats.is_empty() {
        output::line("There are no saved chats. Start one with: tierbar chat");
    }
    for chat in chats {
        let title = match chat.title.as_str() {
            "" => "New Chat",
            title => title,
        };
        let (day, _) = chat.updated_at.split_once('T').unwrap_or_default();
        output::line(&format!("{}  {day}  {title}", chat.id));
    }
    Ok(())
}

/// Prints the answer to one question, which is not saved.
async fn ask_once(
    client: &Client,
    tier: Option<String>,
    prompt: &str,
    files: &[PathBuf],
    as_json: bool,
) -> Result<(), Error> {
    let model = tier.unwrap_or_else(|| TierId::AUTO.to_owned());
    let content = files::content(prompt, &files::read_all(files)?);
    let messages = json!([{"role": "user", "content": content}]);
    let body = json!({"model": model, "messages": messages, "stream": true});
    let mut shown = AnswerPrinter {
        gathers: as_json,
        ..AnswerPrinter::default()
    };
    let answered = tokio::select! {
        streamed = stream(client, &body, &mut shown) => streamed,
        // Dropping the stream closes the connection, which ends the generation.
        interrupted = tokio::signal::ctrl_c() => Err(match interrupted {
            Ok(()) => Error::new(Code::Cancelled, "the answer was stopped"),
            Err(error) => no_signals(error),
        }),
    };
    if !as_json {
        shown.end_line();
        return answered.map(drop);
    }
    let OnceAnswer {
        tier,
        model,
        reasoning,
        rate,
    } = answered?;
    let (thought, answer) = split(&shown.gathered);
    let reasoning = [reasoning.trim(), thought].join("\n");
    output::json(&json!({
        "tier": tier,
        "model": model,
        "answer": answer,
        "reasoning": reasoning.trim(),
        "tokens_per_second": rate,
    }));
    Ok(())
}

/// The facts of an answer beside its text.
struct OnceAnswer {
    tier: String,
    model: String,
    reasoning: String,
    /// `None` where the server reports none.
    rate: Option<f64>,
}

async fn stream(
    client: &Client,
    body: &Value,
    shown: &mut AnswerPrinter,
) -> Result<OnceAnswer, Error> {
    let path = "/v1/chat/completions";
    let response = client.send(Method::POST, path, Some(body)).await?;
    let mut streamed = OnceAnswer {
        tier: header(&response, "x-tierbar-tier"),
        model: header(&response, "x-tierbar-model"),
        reasoning: String::new(),
        rate: None,
    };
    let mut events = SseByteStream::new(response.bytes_stream());
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| broken_off(&error.to_string()))?;
        let Some(data) = event.data else { continue };
        if data == "[DONE]" {
            return Ok(streamed);
        }
        let chunk: Value = serde_json::from_str(&data)
            .map_err(|error| broken_off(&format!("an event that is not JSON, {error}")))?;
        if let Some(error) = Error::from_openai_body(&chunk) {
            return Err(error);
        }
        let delta = &chunk["choices"][0]["delta"];
        if let Some(piece) = delta["reasoning_content"].as_str() {
            streamed.reasoning.push_str(piece);
        }
        if let Some(piece) = delta["content"].as_str() {
            shown.add(piece);
        }
        if let Some(rate) = chunk["timings"]["predicted_per_second"].as_f64() {
            streamed.rate = Some(rate);
            let experts = serde_json::from_value(chunk["timings"]["experts"].clone());
            show_speed(&streamed.tier, rate, "", experts.ok());
        }
    }
    Err(broken_off("the connection ended"))
}

/// How a conversation begins.
struct Begun {
    tier: Option<String>,
    when_full: Option<String>,
    resume: Option<String>,
    agent: Option<Value>,
}

/// Has the host check an agent's folder before a chat begins with it: Tierbar's own data cannot be granted, for example.
async fn check_folder(client: &Client, agent: Option<&Value>) -> Result<(), Error> {
    if let Some(agent) = agent {
        let body = json!({"folder": agent["folder"]});
        client
            .post(&admin(&["agent", "folder"], &[]), &body)
            .await?;
    }
    Ok(())
}

/// Reads questions until the end of input. Each is a turn of a chat, which the host runs and stores.
async fn converse(client: &Client, begun: Begun, files: &[PathBuf]) -> Result<(), Error> {
    let Begun {
        tier,
        when_full,
        resume,
        agent,
    } = begun;
    check_folder(client, agent.as_ref()).await?;
    let mut conversation = Conversation {
        client,
        tier,
        when_full,
        chat: None,
        instructions: None,
        agent,
        files: files::read_all(files)?,
        starts_over: false,
    };
    if let Some(id) = resume {
        let chat: Chat = client::read(client.get(&admin(&["chats", &id], &[])).await?)?;
        let shown = chat.leaf.map(|leaf| branch(&chat.messages, leaf));
        if let Some(tier) = &conversation.tier {
            // From now on: the model of a turn answers it alone.
            let path = admin(&["chats", &id], &[]);
            client.patch(&path, &json!({"model": tier})).await?;
        }
        let turn = chat.summary.turn;
        for message in shown.unwrap_or_default() {
            // What a running turn writes is printed as it comes.
            let is_written =
                turn.is_some() && chat.leaf == Some(message.id) && message.answer.finish.is_none();
            if !is_written {
                show(message);
            }
        }
        conversation.chat = Some(id.clone());
        if let Some(turn) = turn {
            conversation.join(&id, &turn).await;
        }
    }
    let outcome = conversation.hold().await;
    if let Some(id) = conversation.chat
        && std::io::stdin().is_terminal()
    {
        output::error_line(&format!(
            "Continue this chat with: tierbar chat --resume {id}"
        ));
    }
    outcome
}

struct Conversation<'a> {
    client: &'a Client,
    tier: Option<String>,
    when_full: Option<String>,
    /// The id of the chat; `None` until the first question.
    chat: Option<String>,
    /// Those of the chat that the next question begins.
    instructions: Option<String>,
    /// What the agent of each turn may use, if there is one.
    agent: Option<Value>,
    /// The files of the next question.
    files: Vec<Value>,
    /// The next question begins a branch of its own.
    starts_over: bool,
}

impl Conversation<'_> {
    async fn hold(&mut self) -> Result<(), Error> {
        let mut editor: Editor<Completion, DefaultHistory> = Editor::new().map_err(|error| {
            Error::new(
                Code::Internal,
                format!("the terminal cannot be read: {error}"),
            )
        })?;
        if std::io::stdin().is_terminal() {
            let models = self.models().await;
            editor.set_helper(Some(Completion { models }));
            output::error_line(
                "Type a question. Ctrl-C stops an answer, /quit exits, /help lists the commands.",
            );
        }
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let line = editor.readline("> ");
                (editor, line)
            });
            let (returned, line) = read.await.map_err(|error| {
                Error::new(
                    Code::Internal,
                    format!("the terminal's reader failed: {error}"),
                )
            })?;
            editor = returned;
            match line {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) if commands::quits(&line) => return Ok(()),
                Ok(line) => {
                    let _full = editor.add_history_entry(&line);
                    let asked = self.take(&line).await;
                    // A script learns of a refused question from the exit status.
                    if !std::io::stdin().is_terminal() {
                        asked?;
                    } else if let Err(error) = asked {
                        output::error(&error);
                    }
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
                Err(error) => {
                    return Err(Error::new(
                        Code::Internal,
                        format!("the terminal cannot be read: {error}"),
                    ));
                }
            }
        }
    }

    /// The names that `/model` completes; none if they cannot be read.
    async fn models(&self) -> Vec<String> {
        let mut names = vec![TierId::AUTO.to_owned()];
        for (path, list, name) in [("status", "tiers", "id"), ("chains", "chains", "name")] {
            if let Ok(answer) = self.client.get(&admin(&[path], &[])).await {
                let listed = answer[list].as_array().into_iter().flatten();
                let answers = |entry: &&Value| {
                    let kind = entry["kind"].as_str();
                    kind.is_none_or(|kind| kind == "chat")
                };
                let listed = listed.filter(answers);
                let found = listed.filter_map(|entry| entry[name].as_str());
                names.extend(found.map(str::to_owned));
            }
        }
        names
    }

    /// Sends a message or runs a command.
    async fn take(&mut self, line: &str) -> Result<(), Error> {
        let (name, argument) = match commands::read(line) {
            Input::Message(text) => return self.ask(&text).await,
            Input::Command(name, argument) => (name, argument),
            Input::Unknown(name) => {
                let message = format!("there is no command /{name}");
                let error = Error::new(Code::BadRequest, message);
                let hint = "type /help for the commands, or // to begin a message with a slash";
                return Err(error.hint(hint));
            }
        };
        match name {
            "new" => {
                (self.chat, self.instructions) = (None, None);
                output::error_line("The next question begins a new chat.");
            }
            "model" => return self.choose(argument).await,
            "agent" => return self.act_in(&argument).await,
            "file" => {
                self.files.push(files::read(&files::typed(&argument))?);
                output::error_line("The file will be sent with the next question.");
            }
            "instructions" => return self.instruct(argument).await,
            "retry" => {
                self.begun()?;
                let again = json!({"model": self.tier, "agent": self.agent});
                return self.begin(&again, 0).await;
            }
            "continue" => return self.go_on().await,
            "good" => return self.grade(GradeVerdict::Good, argument).await,
            "bad" => return self.grade(GradeVerdict::Bad, argument).await,
            "ungrade" => return self.ungrade().await,
            "cost" => return costs::show(self.client).await,
            "improve" => return grades::show(self.client).await,
            "clear" => {
                self.starts_over = true;
                output::error_line("The next question starts over. Earlier messages are kept.");
            }
            _ => {
                for (name, argument, help) in COMMANDS {
                    let usage = format!("/{name} {argument}");
                    output::line(&format!("{usage:22} {help}"));
                }
            }
        }
        Ok(())
    }

    /// Lets the model act in a folder from now on, or only answer.
    async fn act_in(&mut self, folder: &str) -> Result<(), Error> {
        if folder.is_empty() {
            if self.agent.take().is_none() {
                let error = Error::new(Code::BadRequest, "/agent needs a folder");
                return Err(
                    error.hint("type its path, such as ~/project, or . for the current one")
                );
            }
            output::error_line("The model can no longer act in a folder.");
            return Ok(());
        }
        let agent = agent::in_folder(self.agent.as_ref(), files::typed(folder))?;
        check_folder(self.client, agent.as_ref()).await?;
        self.agent = agent;
        output::error_line(&format!(
            "From now on, the model can read files in {folder}, and asks before it runs a command or changes a file."
        ));
        Ok(())
    }

    /// Has another tier or chain answer, from now on.
    async fn choose(&mut self, name: String) -> Result<(), Error> {
        if name.is_empty() {
            let error = Error::new(Code::BadRequest, "/model needs a name");
            return Err(error.hint(format!("choose one of {}", self.models().await.join(", "))));
        }
        if let Some(chat) = &self.chat {
            let path = admin(&["chats", chat], &[]);
            self.client.patch(&path, &json!({"model": name})).await?;
        }
        output::error_line(&format!("From now on, {name} answers."));
        self.tier = Some(name);
        Ok(())
    }

    /// Sets the chat's instructions, or prints them.
    async fn instruct(&mut self, text: String) -> Result<(), Error> {
        if text.is_empty() {
            let known = match &self.chat {
                Some(_) => self.read().await?.summary.settings.instructions,
                None => self.instructions.clone().unwrap_or_default(),
            };
            let known = known.trim();
            output::line(if known.is_empty() {
                "There are no instructions."
            } else {
                known
            });
            return Ok(());
        }
        let text = if text == "\"\"" { String::new() } else { text };
        match &self.chat {
            Some(chat) => {
                let path = admin(&["chats", chat], &[]);
                let fields = json!({"instructions": text});
                self.client.patch(&path, &fields).await?;
            }
            None => self.instructions = Some(text),
        }
        output::error_line("The next answers follow these instructions.");
        Ok(())
    }

    /// Continues the last answer, and prints what is added to it.
    async fn go_on(&mut self) -> Result<(), Error> {
        let chat = self.read().await?;
        let last = chat.messages.iter().find(|last| Some(last.id) == chat.leaf);
        let printed = last.map_or(0, |last| split(&last.text()).1.len());
        self.begin(&json!({"continue": true}), printed).await
    }

    /// Grades the answer that was printed last.
    async fn grade(&self, verdict: GradeVerdict, why: String) -> Result<(), Error> {
        let path = self.path_of_grade().await?;
        let grade = json!({"verdict": verdict, "why": why});
        self.client.send(Method::PUT, &path, Some(&grade)).await?;
        let word = match verdict {
            GradeVerdict::Good => "good",
            GradeVerdict::Bad => "bad",
        };
        output::error_line(&format!(
            "The last answer is graded as {word}. Undo with /ungrade."
        ));
        Ok(())
    }

    async fn ungrade(&self) -> Result<(), Error> {
        self.client.delete(&self.path_of_grade().await?).await?;
        output::error_line("The last answer has no grade.");
        Ok(())
    }

    /// Where the grade of the last answer is. It is the last message that is shown: none before it is meant.
    async fn path_of_grade(&self) -> Result<String, Error> {
        let chat = self.read().await?;
        let last = chat.messages.iter().find(|last| Some(last.id) == chat.leaf);
        let answer = last.filter(|last| last.role == Role::Assistant);
        let answer = answer.filter(|_| !self.starts_over).ok_or_else(|| {
            let error = Error::new(Code::BadRequest, "there is no answer to grade");
            error.hint("ask a question first, or answer the last one with /retry")
        })?;
        let (id, message) = (&chat.summary.id, answer.id.to_string());
        Ok(admin(&["chats", id, "messages", &message, "grade"], &[]))
    }

    /// The id of the chat, if it has begun.
    fn begun(&self) -> Result<&str, Error> {
        self.chat.as_deref().ok_or_else(|| {
            let error = Error::new(Code::BadRequest, "this chat has no messages yet");
            error.hint("ask a question first")
        })
    }

    /// The chat as it is stored.
    async fn read(&self) -> Result<Chat, Error> {
        let chat = self.begun()?;
        client::read(self.client.get(&admin(&["chats", chat], &[])).await?)
    }

    /// Asks one question and prints the answer as it comes.
    async fn ask(&mut self, text: &str) -> Result<(), Error> {
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
    async fn begin(&mut self, question: &Value, printed: usize) -> Result<(), Error> {
        // From here on, a Ctrl-C does not end the command and leave the turn running.
        let mut interrupts = signal(SignalKind::interrupt()).map_err(no_signals)?;
        let chat = self.chat().await?;
        let turns = admin(&["chats", &chat, "turns"], &[]);
        let turn: TurnBegun = client::read(self.client.post(&turns, question).await?)?;
        // A question that is refused keeps them for the next try.
        self.files.clear();
        self.starts_over = false;
        self.print(&chat, &turn.id, printed, &mut interrupts).await
    }

    /// Prints the answer of a turn that runs already. Its error is not that of a question asked here.
    async fn join(&self, chat: &str, turn: &str) {
        let printed = match signal(SignalKind::interrupt()).map_err(no_signals) {
            Ok(mut interrupts) => self.print(chat, turn, 0, &mut interrupts).await,
            Err(error) => Err(error),
        };
        if let Err(error) = printed {
            output::error(&error);
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
                let path = admin(&["chats", chat, "turns", turn], &[]);
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
        let made = self.client.post(&admin(&["chats"], &[]), &body).await?;
        let chat: ChatSummary = client::read(made)?;
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
                let path = admin(&["chats", chat, "turns", turn], &[]);
                self.client.delete(&path).await?;
                return Ok(());
            }
        };
        let path = admin(&["chats", chat, "turns", turn, "consent"], &[]);
        let answer = json!({"id": question.id, "allow": allow});
        match self.client.post(&path, &answer).await {
            Err(error)
                if matches!(
                    error.code,
                    Code::Conflict | Code::BadRequest | Code::NotFound
                ) =>
            {
                output::error(&error);
                Ok(())
            }
            answered => answered.map(drop),
        }
    }

    async fn follow(&self, chat: &str, turn: &str, shown: &mut AnswerPrinter) -> Result<(), Error> {
        let path = admin(&["chats", chat, "turns", turn, "events"], &[]);
        let response = self.client.send(Method::GET, &path, None).await?;
        let mut events = SseByteStream::new(response.bytes_stream());
        // One that is answered already is followed by its answer at once.
        let mut open: Option<ConsentQuestion> = None;
        loop {
            let event = if open.is_some() {
                timeout(ANSWERED_ALREADY, events.next()).await
            } else {
                Ok(events.next().await)
            };
            let event = match (event, open.take()) {
                (Ok(Some(event)), question) => {
                    open = question;
                    event
                }
                (Ok(None), _) => break,
                (Err(_), Some(question)) => {
                    shown.end_line();
                    self.answer(chat, turn, &question).await?;
                    continue;
                }
                (Err(_), None) => continue,
            };
            let event = event.map_err(|error| broken_off(&error.to_string()))?;
            let Some(data) = event.data else { continue };
            let event: TurnEvent = serde_json::from_str(&data)
                .map_err(|error| broken_off(&format!("an event that is not JSON, {error}")))?;
            if let Some(error) = event.to_error() {
                return Err(with_choices(error));
            }
            match event {
                TurnEvent::Text { text, .. } => shown.add(&text),
                TurnEvent::Finished { message } => {
                    let left_out = message.answer.left_out.as_ref();
                    let left_out = left_out.map(LeftOut::sentence);
                    let nearly_full = message.answer.context.and_then(describe_nearly_full);
                    let finish = message.answer.finish;
                    let repeats = (finish == Some(Finish::Repetition))
                        .then(|| "Stopped: the answer repeated itself.".to_owned());
                    for note in left_out.into_iter().chain(nearly_full).chain(repeats) {
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
        Err(broken_off("the connection ended"))
    }
}

/// Prints an answer as it comes, and keeps how far it got.
#[derive(Default)]
struct AnswerPrinter {
    ends_within_a_line: bool,
    /// The bytes at the beginning that were printed before.
    printed: usize,
    /// Reasoning is not printed, also not what a server leaves in the text.
    answer: WithoutThinking,
    /// The text is kept as it came, and not printed.
    gathers: bool,
    gathered: String,
}

impl AnswerPrinter {
    fn add(&mut self, text: &str) {
        if self.gathers {
            self.gathered.push_str(text);
            return;
        }
        let text = self.answer.push(text);
        self.print(&text);
    }

    fn print(&mut self, text: &str) {
        let before = self.printed.min(text.len());
        self.printed -= before;
        let text = text.get(before..).unwrap_or(text);
        if text.is_empty() {
            return;
        }
        output::write(text);
        self.ends_within_a_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        let rest = self.answer.end();
        self.print(&rest);
        if std::mem::take(&mut self.ends_within_a_line) {
            output::line("");
        }
    }
}

fn show(message: &ChatMessage) {
    let text = message.text();
    match message.role {
        Role::User => output::line(&format!("> {text}")),
        Role::Assistant => output::line(split(&text).1),
        Role::System => {}
    }
}

fn show_speed(tier: &str, rate: f64, wait: &str, experts: Option<ExpertReads>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let experts = experts.map_or_else(String::new, |reads| describe_reads(&reads));
    output::error_line(&format!("\n[{tier} · {rate:.1} tok/s{wait}{experts}]"));
}

/// The time to the first token and its parts, as in the chat window.
fn describe_wait(answer: &AnswerFacts) -> String {
    let Some(first) = answer.time_to_first_token_ms else {
        return String::new();
    };
    let times = answer.times.unwrap_or_default();
    let seconds = |ms: f64| format!("{:.1} s", ms / 1000.0);
    let parts = [(times.load_ms, "load"), (times.prefill_ms, "prompt")];
    let parts = parts.into_iter().filter_map(|(ms, what)| {
        let ms = ms.filter(|ms| *ms >= 50.0)?;
        Some(format!("{what} {}", seconds(ms)))
    });
    let parts: Vec<_> = parts.collect();
    let first = seconds(first);
    match parts.as_slice() {
        [] => format!(" · {first} to first token"),
        parts => format!(" · {first} to first token ({})", parts.join(", ")),
    }
}

fn describe_nearly_full(used: ContextUse) -> Option<String> {
    let tokens = used.prompt_tokens + used.answer_tokens;
    used.is_nearly_full().then(|| {
        format!(
            "The context is nearly full: {tokens} of {} tokens ({} %).",
            used.context_tokens,
            used.percent()
        )
    })
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

/// As the chat window has it below an answer.
fn describe_reads(reads: &ExpertReads) -> String {
    let mut text = String::new();
    if reads.read_bytes > 0 || reads.approximated.is_none() {
        let what = if reads.layers { "layers" } else { "experts" };
        let part = (reads.hit_rate * 100.0).floor();
        text = format!(" · {part} % of {what} in memory, {}", describe_bytes(reads));
    }
    if let Some(approximated) = reads.approximated {
        let part = (approximated.changed * 100.0).ceil();
        text += &format!(" · approximate: {part} % of experts replaced or left out");
    }
    text
}

fn describe_bytes(reads: &ExpertReads) -> String {
    // Older answers were stored without their number of tokens.
    let Some(read) = reads.read_bytes.checked_div(reads.tokens) else {
        return format!("{} read from disk", file_size(reads.read_bytes));
    };
    let read = file_size(read);
    match reads.wait_ms {
        Some(ms) => {
            let tokens = u32::try_from(reads.tokens).unwrap_or(u32::MAX);
            format!(
                "{read} read and {:.0} ms waited per token",
                ms / f64::from(tokens)
            )
        }
        None => format!("{read} read per token"),
    }
}

fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

fn no_signals(error: std::io::Error) -> Error {
    Error::new(Code::Internal, format!("Ctrl-C cannot be handled: {error}"))
}

fn broken_off(reason: &str) -> Error {
    Error::new(
        Code::WorkerCrashed,
        format!("the answer was interrupted: {reason}"),
    )
}
