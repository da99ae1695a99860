//! Measures how well a tier's model chooses an agent's first step, by tool calls and by text. Nothing is carried out, and no other
//! model is asked.

use super::{
    ProgressSender,
    bench::{configured_settings, lease},
    check_not_stopped, check_pressure,
};
use crate::{
    folder::AGENTS,
    live_config::LiveConfig,
    measured::{self, now},
    models::Models,
};
use std::{sync::Arc, time::Instant};
use tierbar_agent::{
    agent::Way,
    first_step::{self, PROMPTS},
};
use tierbar_chats::agent::{AgentReport, AgentScore, choose_way};
use tierbar_core::{Code, Error, TierId, status::Pressure};
use tierbar_fetch::blocking;
use tierbar_library::Entry;

/// A tier's model, and whether it thinks where a request does not say.
struct Subject {
    entry: Entry,
    thinking: bool,
}

impl Subject {
    /// Finds the model of a tier; `None` if that is no file of this machine. Blocking: it lists the models.
    fn for_tier(models: &Models, tier: &TierId) -> Result<Option<Self>, Error> {
        let found = models.find_entry(|spec| spec.id == *tier)?;
        let config = models.config();
        let configured = config.tiers.get(tier);
        let thinks = configured.is_some_and(|tier| tier.thinking);
        Ok(found.map(|entry| {
            let account = entry.account.as_ref();
            Self {
                thinking: thinks && account.is_ok_and(|account| account.thinking),
                entry,
            }
        }))
    }

    fn is_of(&self, report: &AgentReport) -> bool {
        report.thinking == self.thinking && report.file().is_same(self.entry.identity())
    }
}

/// Returns what was measured of the tier's model as it answers now.
pub(super) async fn last_report(
    host: Arc<LiveConfig>,
    tier: TierId,
) -> Result<Option<AgentReport>, Error> {
    blocking("reading how the model acts", move || {
        let Some(subject) = Subject::for_tier(&host.models, &tier)? else {
            return Ok(None);
        };
        let reports: Vec<AgentReport> = measured::read(&host.folder.file(AGENTS));
        Ok(reports.into_iter().find(|report| subject.is_of(report)))
    })
    .await
}

/// Measures the tier's model in both ways. The tier is leased meanwhile, and so not unloaded.
pub(super) async fn measure(
    host: Arc<LiveConfig>,
    tier: TierId,
    progress: ProgressSender,
) -> Result<AgentReport, Error> {
    configured_settings(&host, &tier).await?;
    let subject = {
        let (models, tier) = (Arc::clone(&host.models), tier.clone());
        let subject = blocking("reading the model", move || {
            Subject::for_tier(&models, &tier)
        });
        subject.await?
    };
    let subject = subject.ok_or_else(|| {
        let message = format!("the model of {tier} is not among the models on this computer");
        Error::new(Code::ModelMissing, message)
    })?;
    let (mut done, steps) = (0, 2 * PROMPTS.len());
    progress.progress(done, steps, "loading");
    let (worker, _) = lease(&host, &tier).await?;
    let mut scores = Vec::new();
    for (way, doing) in [
        (Way::Calls, "by tool calls"),
        (Way::Text { grammar: true }, "by text"),
    ] {
        let (mut right, begun) = (0, Instant::now());
        for prompt in PROMPTS.iter() {
            check_pressure(&host, Pressure::Critical)?;
            check_not_stopped(&host, &tier)?;
            progress.progress(done, steps, doing);
            done += 1;
            let request = first_step::request(way, prompt, subject.thinking);
            let step = match worker.chat(&request.into()).await {
                Ok(answer) => first_step::read_route(way, &answer["choices"][0]["message"]),
                // A turn that goes this way would be refused, too.
                Err(error) if is_refusal(error.code) => None,
                Err(error) => return Err(error),
            };
            right += u32::from(step.is_some_and(|step| prompt.right.contains(&step)));
        }
        scores.push(AgentScore {
            right,
            seconds: begun.elapsed().as_secs_f64(),
        });
    }
    progress.progress(steps, steps, "done");
    let (calls, text) = (scores[0], scores[1]);
    let prompts = u32::try_from(PROMPTS.len()).unwrap_or(u32::MAX);
    let file = subject.entry.identity();
    let report = AgentReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: now(),
        model: file.model.clone(),
        size_bytes: file.size_bytes,
        sha256: file.sha256.map(str::to_owned),
        thinking: subject.thinking,
        prompts,
        calls,
        text,
        way: choose_way(calls.right, text.right, prompts),
        tier,
    };
    measured::store_newest(host.folder.file(AGENTS), report.clone(), replaces).await;
    Ok(report)
}

fn is_refusal(code: Code) -> bool {
    matches!(code, Code::BadRequest | Code::ContextExceeded)
}

/// Whether the last report of the same model is out of date.
fn replaces(newest: &AgentReport, known: &AgentReport) -> bool {
    known.thinking == newest.thinking && known.file().is_same(newest.file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{KEPT, add_newest};
    use tierbar_core::ModelId;

    fn report(model: &str, thinking: bool, right: u32) -> AgentReport {
        let score = AgentScore {
            right,
            seconds: 1.0,
        };
        AgentReport {
            version: "1".to_owned(),
            taken_at: now(),
            tier: TierId::new("fast").unwrap(),
            model: ModelId(model.to_owned()),
            size_bytes: 1,
            sha256: None,
            thinking,
            prompts: 12,
            calls: score,
            text: score,
            way: choose_way(right, right, 12),
        }
    }

    #[test]
    fn a_report_replaces_the_last_one_of_the_same_model() {
        let mut reports = Vec::new();
        for (model, thinking, right) in [("a", false, 1), ("b", false, 2), ("a", true, 3)] {
            reports = add_newest(reports, report(model, thinking, right), replaces);
        }
        reports = add_newest(reports, report("a", false, 4), replaces);
        let right: Vec<_> = reports.iter().map(|report| report.calls.right).collect();
        assert_eq!(right, [4, 3, 2]);
        for number in 0..KEPT {
            reports = add_newest(reports, report(&number.to_string(), false, 5), replaces);
        }
        assert_eq!(reports.len(), KEPT);
    }

    #[test]
    fn what_a_turn_could_not_ask_counts_as_wrong() {
        assert!(is_refusal(Code::BadRequest) && is_refusal(Code::ContextExceeded));
        assert!(!is_refusal(Code::WorkerCrashed) && !is_refusal(Code::TierStopped));
    }
}
