//! Which tier answers a request for `auto`, and why.
//!
//! `tierbar_routing` has the rules and the choice; here is what they go by. A request that no rule knows is put to the fast tier's
//! model in one word, where that is loaded and has shown that it can sort requests. Nothing of this may hold a request up: what
//! takes too long or fails leaves it to the rules.

pub mod candidates;
pub mod classifier;
mod recent;

pub(crate) use candidates::lease;
pub use classifier::Classification;

use crate::{
    CHAT, Inference, exams::Exams, headers::TIER, hints::Hints, request::is_generated, route,
};
use candidates::Loads;
use classifier::Classifier;
use parking_lot::Mutex;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tierbar_core::{Code, Error, TierId, judgment::TRIAGE_WAIT, policy::Alarm, status::TierStatus};
use tierbar_routing::{
    Candidate, Choice, Judgement, Level, Need, Traits, choose, judge, learned::LearnedLevels,
};

/// What the router has learned: from answers since the host began, and from grades. Owned by the inference.
#[derive(Debug)]
pub struct Auto {
    classifier: Classifier,
    /// How models did in examinations.
    pub(crate) exams: Exams,
    /// How long a chain waits for that.
    pub(crate) triage_wait: Duration,
    loads: Loads,
    learned: Mutex<LearnedLevels>,
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            classifier: Classifier::default(),
            exams: Exams::default(),
            triage_wait: TRIAGE_WAIT,
            loads: Loads::default(),
            learned: Mutex::default(),
        }
    }
}

impl Auto {
    /// Waits for so long for triage.
    pub fn with_triage_wait(self, triage_wait: Duration) -> Self {
        Self {
            triage_wait,
            ..self
        }
    }

    /// Begins with what grades have shown before.
    pub fn new(learned: LearnedLevels) -> Self {
        Self {
            learned: Mutex::new(learned),
            ..Self::default()
        }
    }

    /// Takes over what grades show now.
    pub fn learn(&self, learned: LearnedLevels) {
        *self.learned.lock() = learned;
    }
}

/// Where a request goes.
#[derive(Debug)]
pub struct ChosenTier {
    pub tier: TierId,
    /// In one sentence in ASCII, where the router chose.
    pub why: Option<String>,
}

/// The tier for a request: the one that it names, the one that its header names if it leaves the choice, or the router's.
///
/// # Errors
/// As [`route::resolve`]; `ModelUnknown` also for a header that names no tier.
pub async fn route(
    inference: &Arc<Inference>,
    path: &str,
    hints: &Hints,
    wanted: Option<&str>,
    request: &Value,
    tiers: &[TierStatus],
) -> Result<ChosenTier, Error> {
    let leaves_the_choice = route::leaves_choice(wanted);
    if let Some(named) = hints.tier.as_deref().filter(|_| leaves_the_choice) {
        let found = tiers.iter().find(|tier| tier.id.as_str() == named);
        let found = found.ok_or_else(|| route::unknown_name_error(named, tiers))?;
        let tier = found.id.clone();
        let why = Some(format!("the header {TIER} asks for {tier}"));
        return Ok(ChosenTier { tier, why });
    }
    // Vectors of another model mean nothing beside each other, and a context is kept where it lies.
    if leaves_the_choice && is_generated(path) {
        let considered = consider(inference, path == CHAT, request, tiers).await;
        if let Some(choice) = considered.choice {
            let why = Some(format!("{}; {}", considered.because, choice.why));
            let tier = choice.tier;
            return Ok(ChosenTier { tier, why });
        }
    }
    let tier = route::resolve_for(route::kind_of(path), wanted, tiers)?;
    Ok(ChosenTier { tier, why: None })
}

/// All that a choice rests on.
#[derive(Debug)]
pub struct RouteInputs {
    pub asked: Traits,
    pub judged: Judgement,
    pub classified: Option<Classification>,
    pub level: Level,
    pub because: String,
    /// `None` if no tier has a model.
    pub choice: Option<Choice>,
}

/// What `auto` would do with a request. With `thorough`, the fast tier's model is asked whatever the rules say, loaded or not.
///
/// # Errors
/// `ModelMissing` if there is no fast tier to ask; those of a lease on it and of its answers.
pub async fn explain(
    inference: &Arc<Inference>,
    request: &Value,
    thorough: bool,
) -> Result<RouteInputs, Error> {
    let tiers = inference.tiers.snapshot();
    if !thorough {
        return Ok(consider(inference, true, request, &tiers).await);
    }
    let fast = classifier::of_fast(&tiers);
    let fast = fast.and_then(|fast| Some((&fast.id, fast.model.as_ref()?)));
    let (id, model) = fast.ok_or_else(|| {
        Error::new(Code::ModelMissing, "the tier \"fast\" has no local model")
            .hint("assign it a model, or leave out classify=always")
    })?;
    let asked = Traits::of(request);
    let classified = classifier::classify_always(inference, id, model, &asked.text).await?;
    let judged = judge(&asked);
    let candidates = candidates::list(inference, &tiers, &asked).await;
    let classified = Some(classified);
    Ok(weigh(inference, asked, judged, classified, &candidates))
}

async fn consider(
    inference: &Arc<Inference>,
    is_chat: bool,
    request: &Value,
    tiers: &[TierStatus],
) -> RouteInputs {
    let asked = Traits::of(request);
    let judged = judge(&asked);
    let candidates = candidates::list(inference, tiers, &asked).await;
    let here = candidates.iter().filter(|candidate| !candidate.elsewhere);
    let matters = is_chat && !judged.sure && here.take(2).count() == 2;
    let classified = match classifier::loaded_fast_tier(tiers).filter(|_| matters) {
        Some(fast) => classifier::classify_in_time(inference, fast, &asked.text).await,
        None => None,
    };
    weigh(inference, asked, judged, classified, &candidates)
}

fn weigh(
    inference: &Inference,
    asked: Traits,
    judged: Judgement,
    classified: Option<Classification>,
    candidates: &[Candidate],
) -> RouteInputs {
    let believed = classified.as_ref().and_then(Classification::believed);
    let believed = believed.filter(|_| !judged.sure);
    let (need, because) = match believed {
        Some(level) => {
            // A model this small is not asked to see what tools are for.
            let level = if asked.tools {
                level.max(Level::Medium)
            } else {
                level
            };
            let because = format!("the fast tier rates it {}", level.word());
            (Need { level, sure: true }, because)
        }
        None => (Need::from(judged), judged.because.to_owned()),
    };
    let routed_as = inference.auto.learned.lock().route(need.level);
    let (need, because) = if routed_as == need.level {
        (need, because)
    } else {
        let because = format!("{because}, and by your grades {}", routed_as.word());
        let level = routed_as;
        (Need { level, ..need }, because)
    };
    let may_load = inference.services.status().guard.alarm == Alarm::None;
    let choice = choose(&asked, need, candidates, may_load);
    RouteInputs {
        asked,
        judged,
        classified,
        level: need.level,
        because,
        choice,
    }
}
