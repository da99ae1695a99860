//! A conversation in the terminal: its questions, and what its commands do.

mod turns;

use super::{
    Args, agent,
    commands::{self, COMMANDS, Completion, Input},
    files,
    printer::show,
};
use crate::{
    agent::undo_in_chat,
    client::{self, Client, admin_path},
    confirm::no_terminal,
    costs, grades, output,
};
use rustyline::{Editor, error::ReadlineError, history::DefaultHistory};
use serde_json::{Value, json};
use std::io::IsTerminal;
use tierbar_chats::{Chat, Role, branch, thinking::WithoutThinking};
use tierbar_core::{Error, ModelKind, TierId, bad_request, chain::ChainStatus};
use tierbar_routing::grade::GradeVerdict;

/// Holds a conversation until the end of input. Each question is a turn of a chat, which the host runs and stores.
pub(super) async fn hold(client: &Client, args: Args, agent: Option<Value>) -> Result<(), Error> {
    check_folder(client, agent.as_ref()).await?;
    let mut conversation = Conversation {
        client,
        tier: args.tier,
        when_full: args.when_full,
        chat: None,
        instructions: None,
        agent,
        files: files::read_all(&args.file).await?,
        starts_over: false,
    };
    if let Some(id) = args.resume {
        let chat: Chat = client::read_answer(client.get(&admin_path(&["chats", &id], &[])).await?)?;
        let shown = chat.leaf.map(|leaf| branch(&chat.messages, leaf));
        if let Some(tier) = &conversation.tier {
            // From now on: the model of a turn answers it alone.
            let path = admin_path(&["chats", &id], &[]);
            client.patch(&path, &json!({"model": tier})).await?;
        }
        let turn = chat.summary.turn.clone();
        for message in shown.unwrap_or_default() {
            // What a running turn writes is printed as it comes.
            let is_written =
                turn.is_some() && chat.leaf == Some(message.id) && message.answer.finish.is_none();
            if !is_written {
                show(message);
                if let Some(failure) = chat.failure_of(message) {
                    output::error_line(&failure);
                }
            }
        }
        conversation.chat = Some(id.clone());
        if let Some(turn) = turn {
            conversation.join(&id, &turn).await;
        }
    }
    let outcome = conversation.read_lines().await;
    if let Some(id) = conversation.chat
        && std::io::stdin().is_terminal()
    {
        output::error_line(&format!(
            "Continue this chat with: tierbar chat --resume {id}"
        ));
    }
    outcome
}

/// Has the host check an agent's folder before a chat begins with it: Tierbar's own data cannot be granted, for example.
async fn check_folder(client: &Client, agent: Option<&Value>) -> Result<(), Error> {
    if let Some(agent) = agent {
        let body = json!({"folder": agent["folder"]});
        client.post("/tierbar/v1/agent/folder", &body).await?;
    }
    Ok(())
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
    /// Reads questions and commands until the end of input.
    async fn read_lines(&mut self) -> Result<(), Error> {
        let mut editor = Editor::<Completion, DefaultHistory>::new().map_err(no_terminal)?;
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
            let (returned, line) = read.await.map_err(no_terminal)?;
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
                        output::write_error(&error);
                    }
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
                Err(error) => return Err(no_terminal(error)),
            }
        }
    }

    /// The names that `/model` completes; none if they cannot be read.
    async fn models(&self) -> Vec<String> {
        let mut names = vec![TierId::AUTO.to_owned()];
        if let Ok(mut tiers) = self.client.tiers().await {
            tiers.retain(|tier| tier.kind == ModelKind::Chat);
            names.extend(tiers.into_iter().map(|tier| tier.id.to_string()));
        }
        let chains = self.client.list("/tierbar/v1/chains", "chains");
        let chains: Vec<ChainStatus> = chains.await.unwrap_or_default();
        names.extend(chains.into_iter().map(|chain| chain.name.to_string()));
        names
    }

    /// Sends a message or runs a command.
    async fn take(&mut self, line: &str) -> Result<(), Error> {
        let (name, argument) = match commands::parse(line) {
            Input::Message(text) => return self.ask(&text).await,
            Input::Command(name, argument) => (name, argument),
            Input::Surplus(name, takes) => {
                let error = bad_request(format!("/{name} does not take these words"));
                let form = format!("/{name} {takes}");
                let form = form.trim_end();
                let hint = format!("type {form}, or // to begin a message with a slash");
                return Err(error.hint(hint));
            }
            Input::Unknown(name) => {
                let error = bad_request(format!("there is no command /{name}"));
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
            "undo" => {
                let force = argument == "force";
                return undo_in_chat(self.client, self.begun()?, force).await;
            }
            "file" => {
                let file = files::read(&files::path_as_typed(&argument)).await?;
                self.files.push(file);
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
            "improve" => return grades::list(self.client, false).await,
            "clear" => {
                self.starts_over = true;
                output::error_line("The next question starts over. Earlier messages are kept.");
            }
            _ => {
                for (name, argument, help) in COMMANDS {
                    let usage = format!("/{name} {argument}");
                    output::write_line(&format!("{usage:22} {help}"));
                }
            }
        }
        Ok(())
    }

    /// Lets the model act in a folder from now on, or only answer.
    async fn act_in(&mut self, folder: &str) -> Result<(), Error> {
        if folder.is_empty() {
            if self.agent.take().is_none() {
                let error = bad_request("/agent needs a folder");
                return Err(
                    error.hint("type its path, such as ~/project, or . for the current one")
                );
            }
            output::error_line("The model can no longer act in a folder.");
            return Ok(());
        }
        let agent = agent::in_folder(self.agent.as_ref(), files::path_as_typed(folder))?;
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
            let error = bad_request("/model needs a name");
            return Err(error.hint(format!("choose one of {}", self.models().await.join(", "))));
        }
        if let Some(chat) = &self.chat {
            let path = admin_path(&["chats", chat], &[]);
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
                Some(_) => self.fetch_chat().await?.summary.settings.instructions,
                None => self.instructions.clone().unwrap_or_default(),
            };
            output::write_line(match known.trim() {
                "" => "There are no instructions.",
                known => known,
            });
            return Ok(());
        }
        let text = if text == "\"\"" { String::new() } else { text };
        match &self.chat {
            Some(chat) => {
                let path = admin_path(&["chats", chat], &[]);
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
        let chat = self.fetch_chat().await?;
        let last = chat.messages.iter().find(|last| Some(last.id) == chat.leaf);
        let printed = last.map(|last| WithoutThinking::default().push(&last.text()));
        let printed = printed.map_or(0, |printed| printed.len());
        self.begin(&json!({"continue": true}), printed).await
    }

    /// Grades the answer that was printed last.
    async fn grade(&self, verdict: GradeVerdict, why: String) -> Result<(), Error> {
        let path = self.path_of_grade().await?;
        let grade = json!({"verdict": verdict, "why": why});
        self.client.put(&path, &grade).await?;
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
        let chat = self.fetch_chat().await?;
        let last = chat.messages.iter().find(|last| Some(last.id) == chat.leaf);
        let answer = last.filter(|last| last.role == Role::Assistant);
        let answer = answer.filter(|_| !self.starts_over).ok_or_else(|| {
            let error = bad_request("there is no answer to grade");
            error.hint("ask a question first, or answer the last one with /retry")
        })?;
        let (id, message) = (&chat.summary.id, answer.id.to_string());
        let parts = ["chats", id, "messages", &message, "grade"];
        Ok(admin_path(&parts, &[]))
    }

    /// The id of the chat, if it has begun.
    fn begun(&self) -> Result<&str, Error> {
        self.chat.as_deref().ok_or_else(|| {
            let error = bad_request("this chat has no messages yet");
            error.hint("ask a question first")
        })
    }

    /// The chat as it is stored.
    async fn fetch_chat(&self) -> Result<Chat, Error> {
        let chat = self.begun()?;
        client::read_answer(self.client.get(&admin_path(&["chats", chat], &[])).await?)
    }
}
