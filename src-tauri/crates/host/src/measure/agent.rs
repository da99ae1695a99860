//! Measures how well a tier's model chooses an agent's first step, by tool calls and by text. Nothing is carried out, and no other
//! model is asked.

use super::{
    ProgressSender,
    bench::{configured_settings, lease},
    check_not_stopped, check_pressure,
};
use crate::{folder::MARKS, library::store_mark, live_config::LiveConfig, models::Models};
use std::{sync::Arc, time::Instant};
use tierbar_agent::{
    agent::Way,
    first_step::{self, PROMPTS},
};
use tierbar_core::{
    Code, Error, TierId,
    first_steps::{AgentScore, FirstSteps},
    judgment::Mark,
    status::Pressure,
};
use tierbar_fetch::blocking;
use tierbar_library::Entry;

/// Finds the model of a tier, and whether it thinks where a request does not say; `None` if that is no file of this machine. Blocking:
/// it lists the models.
fn subject(models: &Models, tier: &TierId) -> Result<Option<(Entry, bool)>, Error> {
    let found = models.find_entry(|spec| spec.id == *tier)?;
    let config = models.config();
    let thinks = config.tiers.get(tier).is_some_and(|tier| tier.thinking);
    Ok(found.map(|entry| {
        let account = entry.account.as_ref();
        let thinking = thinks && account.is_ok_and(|account| account.thinking);
        (entry, thinking)
    }))
}

/// Measures the tier's model in both ways. The tier is leased meanwhile, and so not unloaded.
pub(super) async fn measure(
    host: Arc<LiveConfig>,
    tier: TierId,
    progress: ProgressSender,
) -> Result<Mark, Error> {
    configured_settings(&host, &tier).await?;
    let found = {
        let (models, tier) = (Arc::clone(&host.models), tier.clone());
        blocking("reading the model", move || subject(&models, &tier)).await?
    };
    let (entry, thinking) = found.ok_or_else(|| {
        let message = format!("the model of {tier} is not among the models on this computer");
        Error::new(Code::ModelMissing, message)
    })?;
    let (mut done, steps) = (0, 2 * PROMPTS.len());
    progress.progress(done, steps, "loading");
    let (worker, _) = lease(&host, &tier).await?;
    if host.models.is_replaced(&entry) {
        let message = format!("the file of {tier}'s model has been replaced since it was loaded");
        return Err(Error::new(Code::Conflict, message).hint("unload the tier, then measure again"));
    }
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
            let request = first_step::request(way, prompt, thinking);
            let step = match worker.chat(&request.into()).await {
                Ok(answer) => first_step::read_route(way, &answer["choices"][0]["message"]),
                // A turn that goes this way would be refused, too.
                Err(error) if is_refusal(error.code) => None,
                Err(error) => return Err(error),
            };
            right += u32::from(step.is_some_and(|step| prompt.right.contains(&step)));
        }
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        scores.push(AgentScore {
            right,
            milliseconds,
        });
    }
    progress.progress(steps, steps, "done");
    let first_steps = FirstSteps {
        thinking,
        calls: scores[0],
        text: scores[1],
    };
    let prompts = u32::try_from(PROMPTS.len()).unwrap_or(u32::MAX);
    let path = host.folder.file(MARKS);
    Ok(store_mark(path, &entry, first_steps.outcome(prompts)).await)
}

fn is_refusal(code: Code) -> bool {
    matches!(code, Code::BadRequest | Code::ContextExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_could_not_ask_counts_as_wrong() {
        assert!(is_refusal(Code::BadRequest) && is_refusal(Code::ContextExceeded));
        assert!(!is_refusal(Code::WorkerCrashed) && !is_refusal(Code::TierStopped));
    }
}
