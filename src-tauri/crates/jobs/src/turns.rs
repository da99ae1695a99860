//! Turns of chats: a question and its answer, run by the host and followed by as many windows as there are.
//!
//! A turn is one task. It asks, keeps what comes as numbered events, appends it to the store about once a second, and stores the
//! whole message at its end. Followers read from where they are; a follower that leaves changes nothing. Only a stop, the end of the
//! chat or the end of the host ends a turn before its answer does.

mod attachments;
mod grants;
mod log;
mod prompt;
mod run;
mod runs;
mod undo;

use crate::Jobs;
use attachments::NewPart;
pub use attachments::hash_of;
use futures_util::{Stream, StreamExt, stream};
use grants::KeptGrants;
use log::Log;
use prompt::Prompt;
use run::{Acting, Consents};
pub use runs::{AgentAnswer, AgentRequest, AgentRunEvent, Run};
use serde_json::{Map, Value};
use std::{ops::Deref, path::Path, sync::Arc, time::Duration};
use tierbar_chats::{
    ChatMessage, ChatSummary, Role, StartedTurn, TurnEvent,
    agent::{AgentOptions, ConsentAnswer},
    context::{Excerpt, WhenFull},
};
use tierbar_core::{Code, Error, bad_request, home::from_home};
use tierbar_edge::keys::Weight;
use tierbar_fetch::blocking;
use tierbar_store::{NewTurn, Parent, RESTORABLE, Store};
use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// How long the events of a turn that has ended can still be read. Later followers get the stored message.
pub const KEPT: Duration = Duration::from_secs(60);

/// How often a chat is in memory at most: its messages, and the text that is made of them while it grows.
const CHAT_COPIES: usize = 3;

/// The same for a chat's files: as they are stored, and about twice in base64.
const FILE_COPIES: usize = 4;

/// What a question's options cannot say. An agent's tools are in `agent`, and a chat has one answer at a time.
const TURNS_OWN: [&str; 9] = [
    "add_generation_prompt",
    "continue_final_message",
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "n",
];

/// The turns that run, and those that have just ended.
#[derive(Debug, Default)]
pub struct Turns {
    turns: Mutex<Vec<Arc<Turn>>>,
    /// How often a chat has been created, changed or deleted, or a turn has begun or ended.
    revision: watch::Sender<u64>,
    tasks: TaskTracker,
    /// What was allowed to agents beyond once.
    grants: Arc<KeptGrants>,
}

impl Turns {
    /// Waits until the turns that run have stored what has arrived of their answers.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns a turn of a chat, or a run without one.
    async fn find(&self, id: &str, chat: Option<&str>) -> Option<Arc<Turn>> {
        let turns = self.turns.lock().await;
        let mut turns = turns.iter();
        let found = turns.find(|turn| turn.id == id && turn.chat.as_deref() == chat);
        found.map(Arc::clone)
    }

    async fn forget(&self, turn: &Arc<Turn>) {
        let mut turns = self.turns.lock().await;
        turns.retain(|kept| !Arc::ptr_eq(kept, turn));
    }
}

/// One turn.
#[derive(Debug, Default)]
pub struct Turn {
    pub id: String,
    /// `None`: a program's run of an agent, of which nothing is stored.
    chat: Option<String>,
    /// The message that it writes.
    answer: u64,
    log: Log,
    /// Ends it; the host's end does, too.
    stop: CancellationToken,
    /// Where the open question of its agent is answered.
    consents: Consents,
}

/// The question of a new turn, or the question to answer again.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnRequest {
    text: Option<String>,
    /// The question's files, which stand before its text.
    #[serde(default)]
    parts: Vec<NewPart>,
    /// The message before the question; `null` for a question that begins a branch of its own. Without the field, the last message of
    /// the shown branch.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    parent: Parent,
    /// What answers this once. Default: the chat's model; for an answer that is continued, the tier that began it.
    model: Option<String>,
    /// `parent` is an answer that ended before the model did, and is continued in the same message. Without `text`.
    #[serde(default, rename = "continue")]
    continues: bool,
    /// What happens, from now on, once the context does not hold the chat.
    when_full: Option<WhenFull>,
    /// Further fields of the request in OpenAI's form, such as `temperature` and `think`.
    #[serde(default)]
    options: Map<String, Value>,
    /// What the model may use to act before it answers. Without it, it only answers.
    pub agent: Option<AgentOptions>,
}

impl Turn {
    /// The bytes of its text and reasoning so far.
    pub fn size(&self) -> usize {
        self.log.size()
    }

    /// Stops the turn, and waits until what has arrived of its answer is stored.
    async fn end(&self) {
        self.stop.cancel();
        self.log.wait_for_end().await;
    }
}

impl Jobs {
    /// Begins a turn of a chat. `memory`: what the question takes, in bytes.
    ///
    /// # Errors
    /// `Conflict` with the turn's id if the chat has one that runs; `Overloaded` while too many requests are in progress; those of [`Store::open_turn`].
    #[expect(
        clippy::too_many_lines,
        reason = "checks in the order in which they must fail, each before the next is taken"
    )]
    pub async fn begin_turn(
        self: &Arc<Self>,
        chat: &str,
        question: TurnRequest,
        memory: usize,
    ) -> Result<StartedTurn, Error> {
        let parts = question.parts;
        let attachments = if parts.is_empty() {
            Vec::new()
        } else {
            // Decoding and hashing take long: off the threads that serve, and before other turns wait.
            let read = move || attachments::read(parts);
            blocking("reading the question's files", read).await?
        };
        // Held until the turn is registered, so that two questions at once do not both begin.
        let mut turns = self.turns.turns.lock().await;
        if let Some(running) = running_turn(&turns, chat) {
            let message = "this chat already has a running turn";
            let error = Error::new(Code::Conflict, message).detail("turn", running.id.as_str());
            return Err(error.hint("follow that turn, or stop it first"));
        }
        let mut options = question.options;
        if let Some(field) = TURNS_OWN.iter().find(|field| options.contains_key(**field)) {
            let message = format!("options.{field} cannot be set: the turn sets it");
            return Err(bad_request(message));
        }
        // Before anything is stored, so that what is refused leaves no question behind.
        prompt::request("", Vec::new(), options.clone())?;
        // A question of files alone is one.
        let files_alone = || (!attachments.is_empty()).then(String::new);
        let text = question.text.or_else(files_alone);
        let acting = match question.agent {
            None => None,
            Some(_) if question.continues || !attachments.is_empty() => {
                let error = bad_request("\"agent\" takes neither \"continue\" nor \"parts\"");
                return Err(error.hint("put the files into the agent's folder"));
            }
            Some(options) => Some(Acting::prepare(options, chat, self).await?),
        };
        let most = self.inference.services.config().server.requests_at_once;
        // Files become base64 in a request, and its body.
        let files = self.store.attachments_size(chat).await?;
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let files = files.min(attachments::SENT_BYTES);
        let memory = memory.saturating_add(files.saturating_mul(FILE_COPIES));
        let weight = self.charge_chat(chat, memory).await?;
        let admitted = self.keys.enter(None, weight, most.into())?;
        let mut model = question.model;
        let begun = if question.continues {
            if text.is_some() {
                let error = bad_request("\"continue\" takes neither \"text\" nor \"parts\"");
                return Err(error.hint("leave \"continue\" out to ask a question"));
            }
            prompt::continue_last_message(&mut options);
            let begun = self.begun_answer(chat, question.parent, &mut model);
            Some(begun.await?)
        } else {
            None
        };
        let new = NewTurn {
            id: Uuid::new_v4().to_string(),
            text,
            attachments,
            parent: question.parent,
            model,
            when_full: question.when_full,
            continues: question.continues,
        };
        let id = new.id.clone();
        let opened = self.store.open_turn(chat, new).await?;
        let turn = Arc::new(Turn {
            id: id.clone(),
            chat: Some(chat.to_owned()),
            answer: opened.answer,
            stop: self.inference.closing.child_token(),
            ..Turn::default()
        });
        turns.push(Arc::clone(&turn));
        drop(turns);
        let mut asked = opened.conversation.iter();
        let question = asked.rfind(|message| message.role == Role::User).cloned();
        // What this turn asks for comes before what the chat has.
        let mut fields = opened.chat.settings.options();
        fields.extend(options);
        let prompt = Prompt {
            model: opened.model,
            when_full: opened.chat.when_full,
            instructions: opened.chat.settings.instructions.clone(),
            excerpt: Excerpt::new(opened.conversation, opened.summaries),
            options: fields,
            has_media: true,
        };
        self.note_chat_change();
        let jobs = Arc::clone(self);
        self.turns.tasks.spawn(async move {
            run::run(&jobs, &turn, prompt, begun, acting, admitted).await;
            jobs.note_chat_change();
            tokio::spawn(async move {
                let closing = &jobs.inference.closing;
                let _closing = closing.run_until_cancelled(sleep(KEPT)).await;
                jobs.turns.forget(&turn).await;
            });
        });
        let question =
            question.ok_or_else(|| Error::new(Code::Internal, "the turn has no question"))?;
        Ok(StartedTurn {
            id: id.clone(),
            chat: ChatSummary {
                turn: Some(id),
                ..opened.chat
            },
            question,
            answer: opened.answer,
        })
    }

    /// Returns the answer that a turn continues, and sets the tier that does.
    ///
    /// # Errors
    /// Those of [`Store::unfinished_answer`]; `BadRequest` for a tier that cannot continue it.
    async fn begun_answer(
        &self,
        chat: &str,
        parent: Parent,
        model: &mut Option<String>,
    ) -> Result<ChatMessage, Error> {
        let answer = self.store.unfinished_answer(chat, parent).await?;
        let named = model.as_ref().or(answer.answer.tier.as_ref());
        let tiers = self.inference.tiers.snapshot();
        let tier = prompt::tier_that_continues(named.map(String::as_str), &tiers)?;
        *model = Some(tier);
        Ok(answer)
    }

    /// Returns the share of a chat that is read, and of `more` bytes beside it.
    ///
    /// # Errors
    /// `Overloaded` while there is no room for it.
    pub async fn charge_chat(&self, chat: &str, more: usize) -> Result<Weight, Error> {
        let size = usize::try_from(self.store.chat_size(chat).await?).unwrap_or(usize::MAX);
        self.charge(size.saturating_mul(CHAT_COPIES).saturating_add(more))
    }

    /// Returns the share of an answer of so many bytes that is read while it is written.
    ///
    /// # Errors
    /// `Overloaded` while there is no room for it.
    pub fn charge_answer(&self, size: usize) -> Result<Weight, Error> {
        self.charge(size.saturating_mul(CHAT_COPIES))
    }

    /// Returns the share of a file that is read, before its first byte.
    pub fn weigh_file(&self) -> Weight {
        self.keys.weigh(None).of_the_owner()
    }

    fn charge(&self, memory: usize) -> Result<Weight, Error> {
        let mut weight = self.weigh_file();
        weight.grow(memory)?;
        Ok(weight)
    }

    /// A turn that runs or has just ended.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn turn(&self, chat: &str, id: &str) -> Result<Arc<Turn>, Error> {
        self.turns.find(id, Some(chat)).await.ok_or_else(|| {
            let error = Error::new(Code::NotFound, "this turn is not running");
            error.hint("read the chat; its messages are saved")
        })
    }

    /// Stops a turn and waits until what has arrived of its answer is stored. One that has ended stays as it is.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn stop_turn(&self, chat: &str, id: &str) -> Result<(), Error> {
        let turn = match self.turn(chat, id).await {
            Ok(turn) => turn,
            Err(gone) => {
                let stored = self.store.answer_of_turn(chat, id).await?;
                return stored.map(|_| ()).ok_or(gone);
            }
        };
        turn.end().await;
        Ok(())
    }

    /// Answers the open question of a turn's agent.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if no question is open; `BadRequest` for another question, or a scope that it does not offer.
    pub async fn answer_consent(
        &self,
        chat: &str,
        id: &str,
        answer: ConsentAnswer,
    ) -> Result<(), Error> {
        let turn = self.turn(chat, id).await?;
        turn.consents.answer(answer).await
    }

    /// Returns the real path of a folder for an agent, which is what a person then agrees to.
    ///
    /// # Errors
    /// `BadRequest` for one that an agent cannot use; `Internal` if there is no sandbox.
    pub async fn agent_folder(&self, folder: &str) -> Result<String, Error> {
        let given = from_home(folder, tierbar_nofollow::home());
        let real = blocking("a look at the agent's folder", move || {
            Ok(given.canonicalize().ok().filter(|_| given.is_absolute()))
        });
        let real = real.await?;
        let real = real.as_deref().and_then(Path::to_str);
        let place = run::open_folder(real.unwrap_or(folder), self).await?;
        let path = place.folder.path().to_str().map(str::to_owned);
        path.ok_or_else(|| {
            let message = format!(
                "the name of {} is not valid UTF-8",
                place.folder.path().display()
            );
            bad_request(message).hint("rename the folder, or enter another path")
        })
    }

    /// Stops the turn of a chat that is about to be deleted, if one runs.
    pub async fn stop_turns_of(&self, chat: &str) {
        let running = running_turn(&self.turns.turns.lock().await, chat).map(Arc::clone);
        if let Some(turn) = running {
            turn.end().await;
        }
    }

    /// Erases deleted chats once they can no longer be restored. What is not erased before the end of the host, a
    /// later start erases.
    pub fn erase_deleted_chats_later(self: &Arc<Self>) {
        let jobs = Arc::clone(self);
        tokio::spawn(async move {
            // The clock that says so is another than the one that waits.
            let wait = sleep(RESTORABLE + Duration::from_secs(5));
            let closing = &jobs.inference.closing;
            if closing.run_until_cancelled(wait).await.is_none() {
                return;
            }
            if let Err(error) = jobs.store.erase_deleted_chats().await {
                tracing::warn!("deleted chats cannot be erased: {error}");
            }
        });
    }

    /// Counts a change of the chats, for those who show them.
    pub fn note_chat_change(&self) {
        self.turns.revision.send_modify(|revision| *revision += 1);
    }

    /// Returns the number of changes of the chats, as it changes.
    pub fn watch_chats(&self) -> watch::Receiver<u64> {
        self.turns.revision.subscribe()
    }

    /// The id of the turn that a chat runs.
    pub async fn running_turn(&self, chat: &str) -> Option<String> {
        let turns = self.turns.turns.lock().await;
        running_turn(&turns, chat).map(|turn| turn.id.clone())
    }

    /// Adds to each chat the turn that it runs.
    pub async fn note_turns(&self, chats: &mut [ChatSummary]) {
        let turns = self.turns.turns.lock().await;
        for chat in chats {
            chat.turn = running_turn(&turns, &chat.id).map(|turn| turn.id.clone());
        }
    }
}

/// Returns the events after the one with this number as they come, the text of neighbours joined, each with its number. What holds the
/// turn is dropped with them.
pub fn follow(
    turn: impl Deref<Target = Turn> + Send + Sync,
    after: u64,
) -> impl Stream<Item = (u64, TurnEvent)> + Send {
    let following = (turn, after, false);
    let batches = stream::unfold(following, |(turn, after, has_ended)| async move {
        if has_ended {
            return None;
        }
        turn.log.wait_after(after).await;
        let (events, has_ended) = turn.log.after(after);
        let after = events.last().map_or(after, |(number, _)| *number);
        Some((stream::iter(events), (turn, after, has_ended)))
    });
    batches.flatten()
}

fn running_turn<'a>(turns: &'a [Arc<Turn>], chat: &str) -> Option<&'a Arc<Turn>> {
    let mut turns = turns.iter();
    turns.find(|turn| turn.chat.as_deref() == Some(chat) && !turn.log.has_ended())
}
