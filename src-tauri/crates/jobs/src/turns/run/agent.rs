//! A turn in which the model acts. `tierbar_agent::agent` decides what is next; here it gets its model, its tools and its person.

mod acting;
mod consents;
mod replying;
mod shelf;

pub(in crate::turns) use acting::{Acting, open_folder};
pub(in crate::turns) use consents::Consents;

use super::{AnswerWriter, Ending, Prompt};
use crate::{
    mcp::Servers,
    turns::{
        grants::{KeptGrants, now},
        undo::keep_former_content,
    },
};
use acting::read_document;
use consents::misplaced;
use replying::ShownReply;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_agent::{
    agent::{ActResult, Agent, Finish as End, Input, MisplacedInput, Moment, Output},
    calls::CallIntent,
    consent::{Act, PermittedAct},
};
use tierbar_chats::{
    Finish, Part, TurnEvent,
    agent::{
        AgentTier, AgentWay, ConsentAnswer, ConsentQuestion, measured_way, result_part, way_of,
    },
};
use tierbar_core::{Code, Error, ModelKind};
use tierbar_fetch::blocking;
use tierbar_inference::Inference;
use tierbar_sandbox::Stop;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// As much of a result is kept in the message, in characters. The model may have read more.
const KEPT_CHARACTERS: usize = 16_000;

/// A step's arguments, as the message keeps them.
fn describe(act: &Act) -> Value {
    match act {
        Act::Command { line, network, .. } => json!({"command": line, "network": network}),
        Act::Read {
            path, from_line, ..
        } if *from_line > 1 => json!({"path": path, "from_line": from_line}),
        Act::Read { path, .. } => json!({"path": path}),
        Act::Write { change, .. } => json!({"path": change.path, "diff": change.diff}),
        Act::Search { words, .. } | Act::Documents { words, .. } => json!({"query": words}),
        Act::Page { address, .. } => json!({"url": address.url().as_str()}),
        Act::Tool { arguments, .. } => arguments.clone(),
    }
}

/// The agent with the random texts of each step.
struct SteppedAgent {
    agent: Agent,
    grants: Arc<KeptGrants>,
}

impl SteppedAgent {
    fn step(&mut self, input: Input) -> Result<Output, MisplacedInput> {
        let (nonce, id) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4());
        let moment = Moment {
            now: now(),
            nonce: &nonce,
            id: &id.to_string(),
        };
        // Held for the whole step, so that what is revoked neither counts in it nor comes back with it.
        let mut kept = self.grants.list.lock();
        self.agent.set_grants(kept.clone());
        let stepped = self.agent.step(input, moment);
        let grants = self.agent.grants().list();
        if grants != kept.as_slice() {
            *kept = grants.to_vec();
        }
        stepped
    }
}

impl AnswerWriter {
    /// Runs the agent to its answer.
    pub(super) async fn act(&mut self, prompt: &Prompt, mut acting: Acting) -> Ending {
        let (earlier, question) = prompt.before_question();
        let thinks = prompt.options.get("think").and_then(Value::as_bool);
        let way = match acting.options.way {
            AgentWay::Auto => way_by_model(&self.jobs.inference, &prompt.model, thinks).await,
            chosen => chosen,
        };
        // A word and a line have no room for the arguments of a server's tool.
        if way == AgentWay::Calls
            && let Err(ending) = self.connect(&mut acting).await
        {
            return ending;
        }
        let mut stepping = SteppedAgent {
            agent: Agent::new(acting.task(question, way)),
            grants: Arc::clone(&acting.grants),
        };
        // What has answered first goes on: one turn never loads a second model.
        let mut model = prompt.model.clone();
        let mut next = stepping.step(Input::Begin);
        let mut shown = ShownReply::default();
        let mut sought_consent = false;
        let may_think = thinks.unwrap_or_else(|| {
            let config = self.jobs.inference.services.config();
            config.tiers.values().any(|tier| tier.thinking)
        });
        loop {
            for failed in stepping.agent.take_failed() {
                let id = self.begin_step(&failed.tool, &failed.arguments);
                self.end_step(id, failed.why, true);
            }
            let output = match next {
                Ok(output) => output,
                Err(error) => return lost_place(&error),
            };
            let done = match output {
                Output::Ask(ask) => {
                    shown = ShownReply::for_request(&ask);
                    let mut fields = prompt.options.clone();
                    fields.extend(ask.fields(&earlier));
                    if !ask.tools.is_empty() && !may_think {
                        // The likeliest step, as it is measured.
                        fields.entry("temperature").or_insert(0.into());
                    }
                    fields.insert("model".to_owned(), model.as_str().into());
                    let reply = self.reply(fields, &mut shown).await;
                    if let Some(tier) = &self.facts.tier {
                        model.clone_from(tier);
                    }
                    reply.map(Input::Reply)
                }
                Output::Prepare(wanted) => prepare_change(&acting, wanted).await,
                Output::Consent(question) => {
                    sought_consent = true;
                    let answered = if acting.is_attended {
                        self.consent(question, &mut stepping).await
                    } else {
                        self.refuse(question, &mut stepping)
                    };
                    match answered {
                        Ok(output) => {
                            next = Ok(output);
                            continue;
                        }
                        Err(ending) => Err(ending),
                    }
                }
                Output::Do(permitted) => {
                    let (tool, _) = stepping.agent.open_step();
                    self.perform(&acting, &tool, permitted).await
                }
                Output::Finish(End::Answered(_)) => {
                    self.release(&mut shown);
                    let has_acted = sought_consent || !self.steps.is_empty();
                    return Ending::Answered(if has_acted {
                        Finish::Stop
                    } else {
                        Finish::NoStep
                    });
                }
                Output::Finish(End::Stopped) => return Ending::Answered(Finish::Stopped),
                Output::Finish(End::Exhausted(limit)) => {
                    self.show(&format!("The agent reached its limit: {limit}."));
                    return Ending::Answered(Finish::Length);
                }
            };
            self.try_to_store().await;
            match done {
                Ok(input) => next = stepping.step(input),
                Err(ending) => return ending,
            }
        }
    }

    /// Connects the MCP servers. One that cannot be used is shown as a step that has failed.
    async fn connect(&mut self, acting: &mut Acting) -> Result<(), Ending> {
        if acting.wanted.is_empty() {
            return Ok(());
        }
        let inference = &self.jobs.inference;
        let services = inference.services.as_ref();
        let opening = Servers::open(&acting.wanted, services, &inference.secrets);
        let (servers, failed) = self.unless_stopped(opening).await?;
        acting.servers = servers;
        for (server, error) in failed {
            let id = self.begin_step("connect", &json!({"server": server}));
            self.end_step(id, error.to_text(": "), true);
        }
        Ok(())
    }

    /// Shows and keeps what a step does; its id.
    fn begin_step(&mut self, name: &str, arguments: &Value) -> String {
        // Each has its result by then.
        let id = format!("step-{}", self.steps.len() / 2 + 1);
        let (name, arguments) = (name.to_owned(), arguments.to_string());
        self.turn.log.push(TurnEvent::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
        self.steps.push(Part::ToolCall {
            id: id.clone(),
            name,
            arguments,
        });
        id
    }

    /// Shows and keeps what a step has found.
    fn end_step(&mut self, id: String, text: String, failed: bool) {
        self.steps.push(result_part(&id, &text, failed));
        self.turn
            .log
            .push(TurnEvent::ToolResult { id, text, failed });
    }

    /// Refuses what cannot be asked.
    fn refuse(
        &self,
        question: ConsentQuestion,
        stepping: &mut SteppedAgent,
    ) -> Result<Output, Ending> {
        let id = question.id.clone();
        self.turn.log.push(TurnEvent::Consent { question });
        self.turn.log.push(TurnEvent::ConsentAnswered {
            id: id.clone(),
            allow: None,
        });
        let refusal = ConsentAnswer { id, allow: None };
        let stepped = stepping.step(Input::Answer(refusal));
        stepped.map_err(|error| lost_place(&error))
    }

    /// Asks the person and waits for an answer that counts, however long that takes.
    async fn consent(
        &mut self,
        question: ConsentQuestion,
        stepping: &mut SteppedAgent,
    ) -> Result<Output, Ending> {
        // Open before it is announced, so that an answer finds it.
        let mut answers = self.turn.consents.open();
        self.turn.log.push(TurnEvent::Consent { question });
        let outcome = loop {
            let (answer, reply) = match self.unless_stopped(answers.recv()).await {
                Ok(Some(delivered)) => delivered,
                // Its sender lives as long as this question is open.
                Ok(None) => break Err(self.stopped()),
                Err(ending) => break Err(ending),
            };
            match stepping.step(Input::Answer(answer.clone())) {
                Ok(output) => {
                    if let Err(error) = stepping.grants.store(&self.jobs.store).await {
                        tracing::warn!("what was allowed ends when Tierbar quits: {error}");
                    }
                    self.turn.log.push(TurnEvent::ConsentAnswered {
                        id: answer.id,
                        allow: answer.allow,
                    });
                    // The person may have left.
                    let _ = reply.send(Ok(()));
                    break Ok(output);
                }
                Err(error) => {
                    let _ = reply.send(Err(misplaced(&error)));
                }
            }
        };
        self.turn.consents.close();
        outcome
    }

    /// Does what was permitted. A stop ends it, too.
    async fn perform(
        &mut self,
        acting: &Acting,
        tool: &str,
        permitted: PermittedAct,
    ) -> Result<Input, Ending> {
        let id = self.begin_step(tool, &describe(permitted.act()));
        let ending = Stop::default();
        let act = permitted.act().clone();
        let (jobs, turn) = (Arc::clone(&self.jobs), Arc::clone(&self.turn));
        let (inference, stop) = (&jobs.inference, &turn.stop);
        let keeping = keep_former_content(&jobs.store, &turn, acting.place.clone(), act);
        let doing = async {
            let change = keeping.await?;
            let found = carry_out(inference, acting, permitted, ending.clone(), stop).await;
            if let (Some(change), Ok(_)) = (change, &found) {
                change.note().await;
            }
            found
        };
        tokio::pin!(doing);
        let found = match stop.run_until_cancelled(&mut doing).await {
            Some(found) => found,
            None => {
                // Until the command has ended, so that none outlives its turn.
                ending.stop();
                doing.await
            }
        };
        let (text, failed) = match &found {
            Ok(found) => (found.text.as_str(), found.failed),
            Err(why) => (why.as_str(), true),
        };
        let text: String = text.chars().take(KEPT_CHARACTERS).collect();
        self.end_step(id, text, failed);
        Ok(Input::Done(found))
    }
}

fn lost_place(error: &MisplacedInput) -> Ending {
    let message = format!("the agent lost its place: {error}");
    Ending::Failed(Error::new(Code::Internal, message))
}

/// The way for what answers to this name. `thinks`: whether it is to think; without it, as its tier is configured.
async fn way_by_model(inference: &Inference, name: &str, thinks: Option<bool>) -> AgentWay {
    let listed = inference.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let config = inference.services.config();
    let tiers = inference.tiers.snapshot().into_iter();
    let chats = tiers.filter(|tier| tier.kind == ModelKind::Chat && tier.model.is_some());
    let tiers = chats.map(|tier| {
        let model = models.iter().find(|model| model.tiers.contains(&tier.id));
        let account = model.and_then(|model| model.account.as_ref());
        let configured = config.tiers.get(&tier.id);
        let thinks = thinks.unwrap_or_else(|| configured.is_some_and(|tier| tier.thinking));
        let thinking = thinks && account.is_some_and(|account| account.thinking);
        AgentTier {
            knows_tools: account.map(|account| account.tools),
            measured: model.and_then(|model| measured_way(&model.marks, thinking)),
            tier: tier.id,
            model: tier.model,
        }
    });
    way_of(name, &tiers.collect::<Vec<_>>())
}

async fn prepare_change(acting: &Acting, wanted: CallIntent) -> Result<Input, Ending> {
    let Some(place) = acting.place.clone() else {
        return Ok(Input::Prepared(Err("this chat has no folder".to_owned())));
    };
    let prepared = blocking("preparing a change", move || {
        Ok(place.prepare(wanted).map_err(|failure| failure.0))
    });
    prepared.await.map(Input::Prepared).map_err(Ending::Failed)
}

/// Carries out an act. A command is ended by `ending`, and the wait for a server or a reader by `stop`.
async fn carry_out(
    inference: &Inference,
    acting: &Acting,
    permitted: PermittedAct,
    ending: Stop,
    stop: &CancellationToken,
) -> Result<ActResult, String> {
    match permitted.act().clone() {
        Act::Command { .. } | Act::Read { .. } | Act::Write { .. } => {
            let place = acting.place.clone().ok_or("this chat has no folder")?;
            let performed = blocking("the step", move || {
                let performed = match place.document(&permitted) {
                    Ok(Some(file)) => return Ok(Err((file, permitted))),
                    Ok(None) => place.perform(&permitted, &ending),
                    Err(failure) => Err(failure),
                };
                Ok(Ok(performed.map_err(|failure| failure.0)))
            });
            match performed.await.map_err(|error| error.message)? {
                Ok(performed) => performed,
                Err((file, permitted)) => {
                    let reading = read_document(inference, file, &permitted);
                    let read = stop.run_until_cancelled(reading).await;
                    read.unwrap_or_else(|| Err("it was stopped".to_owned()))
                }
            }
        }
        Act::Search { words, .. } => acting.search(&words).await,
        Act::Page { address, .. } => acting.page(address.url()).await,
        Act::Documents { words, .. } => {
            let shelf = acting.shelf.as_ref();
            let shelf = shelf.ok_or("no documents can be searched")?;
            Ok(ActResult::text(shelf.find(&words).await?))
        }
        Act::Tool {
            server,
            name,
            definition,
            arguments,
        } => {
            let servers = &acting.servers;
            let call = servers.call(&server, &name, &definition, &arguments);
            let called = stop.run_until_cancelled(call).await;
            let text = called.unwrap_or_else(|| Err("it was stopped".to_owned()))?;
            Ok(ActResult::text(text))
        }
    }
}
