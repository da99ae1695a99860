//! The tier for a request of a level: first what can answer it, then what is loaded.

use super::{Judgement, Level, Traits};
use tierbar_core::{TierId, TierState};

/// Seconds that a load may take to have a tier one level larger, and two.
///
/// One level is the difference between a fair answer and a good one; two, between one that is wrong and one that is right.
const WORTH_WAITING: [f64; 2] = [20.0, 120.0];
/// Seconds of a load and tokens per second by level, until they are measured: estimates for a 16 GB machine with the
/// default models.
const LOAD_SECONDS: [f64; 3] = [3.0, 8.0, 25.0];
const TOKENS_PER_SECOND: [f64; 3] = [60.0, 25.0, 15.0];

/// A tier as the choice sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub tier: TierId,
    pub state: TierState,
    /// Whether it is an endpoint.
    pub elsewhere: bool,
    pub context_tokens: u64,
    /// Whether its model takes the request's images and sound; `None` while that is unknown.
    pub takes_media: Option<bool>,
    /// Whether its model's template has a place for tools; `None` while that is unknown.
    pub calls: Option<bool>,
    /// The decode speed of its model's last answers.
    pub tokens_per_second: Option<f64>,
    /// The seconds of its last load.
    pub load_seconds: Option<f64>,
    /// Its running and waiting answers.
    pub under_way: u32,
}

impl Candidate {
    fn is_loaded(&self) -> bool {
        matches!(
            self.state,
            TierState::Starting | TierState::Ready | TierState::Busy
        )
    }

    /// A tier with a name of its own counts as medium.
    fn level(&self) -> Level {
        Level::of(&self.tier).unwrap_or(Level::Medium)
    }

    fn load_seconds(&self) -> f64 {
        self.load_seconds
            .unwrap_or(LOAD_SECONDS[self.level().place()])
    }

    /// Returns the seconds until the answer is complete. Concurrent streams share the machine.
    fn seconds(&self, tokens: u64) -> f64 {
        let rate = self.tokens_per_second.filter(|rate| *rate > 0.0);
        let rate = rate.unwrap_or(TOKENS_PER_SECOND[self.level().place()]);
        let load = match self.state {
            TierState::Starting => self.load_seconds(),
            _ => 0.0,
        };
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let tokens = tokens as f64;
        load + tokens * f64::from(self.under_way.saturating_add(1)) / rate
    }
}

/// What a request needs of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub level: Level,
    /// Whether the level justifies a load: it comes from a rule or from a trusted classifier.
    pub sure: bool,
}

impl From<Judgement> for Need {
    fn from(judged: Judgement) -> Self {
        Self {
            level: judged.level,
            sure: judged.sure,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub tier: TierId,
    /// Why this tier: a clause in ASCII that follows the level's reason.
    pub why: String,
}

/// Chooses the tier for a request. `candidates` are the tiers with a model, in reading order; `may_load` is false while memory
/// is short.
///
/// Purpose comes first: an endpoint is used only without a local tier, a tier with a name of its own only without the
/// standard three, and a failed one only without any other. Then the tier must support the request's images and tools, and
/// hold its context. Of those left, the fastest loaded one that is large enough answers; a larger one is loaded if that is
/// worth its seconds.
///
/// Returns `None` without tiers.
pub fn choose(
    traits: &Traits,
    need: Need,
    candidates: &[Candidate],
    may_load: bool,
) -> Option<Choice> {
    let mut left: Vec<&Candidate> = candidates.iter().collect();
    leave_eligible(&mut left, |candidate| {
        (&candidate.tier, candidate.state, candidate.elsewhere)
    });
    if traits.images || traits.sound {
        keep_if_any(&mut left, |candidate| candidate.takes_media != Some(false));
        keep_if_any(&mut left, |candidate| candidate.takes_media == Some(true));
    }
    if traits.tools {
        keep_if_any(&mut left, |candidate| candidate.calls != Some(false));
    }
    let wanted = traits.context_tokens();
    let narrowed = keep_if_any(&mut left, |candidate| candidate.context_tokens >= wanted);
    let contexts = left.iter().map(|candidate| candidate.context_tokens);
    let largest = contexts.max()?;
    if largest < wanted {
        left.retain(|candidate| candidate.context_tokens == largest);
    }
    // A stable sort: tiers of one level keep their order.
    left.sort_by_key(|candidate| candidate.level());
    let mut enough = left.clone();
    enough.retain(|candidate| candidate.level() >= need.level);
    let loaded = enough.iter().filter(|candidate| candidate.is_loaded());
    let soonest = loaded.min_by(|one, other| {
        let seconds = |candidate: &Candidate| candidate.seconds(traits.answer_tokens);
        seconds(one).total_cmp(&seconds(other))
    });
    let only = if narrowed { ", which holds it" } else { "" };
    if let Some(candidate) = soonest {
        let is = match candidate.state {
            TierState::Starting => "is being loaded",
            _ => "is loaded",
        };
        let why = format!("{} {is}{only}", candidate.tier);
        return Some(choice(candidate, why));
    }
    let below = left
        .iter()
        .rev()
        .find(|candidate| candidate.is_loaded())
        .copied();
    let Some(target) = enough.first().copied() else {
        // Without one large enough, the largest, loaded or not: a smaller one would be two levels too small.
        let largest = left.last().copied()?;
        let stays = below.filter(|candidate| !is_worth_loading(candidate, largest, need, may_load));
        let candidate = stays.unwrap_or(largest);
        let why = format!("{} has the largest context", candidate.tier);
        return Some(choice(candidate, why));
    };
    let Some(stays) = below else {
        let why = format!("{} is the smallest that can do it{only}", target.tier);
        return Some(choice(target, why));
    };
    if is_worth_loading(stays, target, need, may_load) {
        let why = format!(
            "{} is loaded for it, in about {:.0} s",
            target.tier,
            target.load_seconds().ceil()
        );
        return Some(choice(target, why));
    }
    let why = match (may_load, need.sure) {
        (false, _) => "memory is low".to_owned(),
        (_, false) => "the estimate is too uncertain to load a model".to_owned(),
        _ => format!(
            "{} would take about {:.0} s to load",
            target.tier,
            target.load_seconds().ceil()
        ),
    };
    Some(choice(
        stays,
        format!("{} is loaded, and {why}", stays.tier),
    ))
}

/// Returns whether to load `target` although the smaller `loaded` could answer at once.
fn is_worth_loading(loaded: &Candidate, target: &Candidate, need: Need, may_load: bool) -> bool {
    let wanted = target.level().min(need.level);
    let steps = wanted.place().saturating_sub(loaded.level().place());
    let Some(step) = steps.checked_sub(1) else {
        return false;
    };
    may_load && need.sure && target.load_seconds() <= WORTH_WAITING[step.min(1)]
}

fn choice(candidate: &Candidate, why: String) -> Choice {
    Choice {
        tier: candidate.tier.clone(),
        why,
    }
}

/// Keeps the tiers to choose from, by their purpose. `describe` returns a tier's name, its state, and whether it runs
/// elsewhere.
pub fn leave_eligible<T>(tiers: &mut Vec<T>, describe: impl Fn(&T) -> (&TierId, TierState, bool)) {
    keep_if_any(tiers, |tier| !describe(tier).2);
    keep_if_any(tiers, |tier| Level::of(describe(tier).0).is_some());
    keep_if_any(tiers, |tier| describe(tier).1 != TierState::Failed);
}

/// Keeps the wanted ones, if there are any. Returns whether it removed some.
fn keep_if_any<T>(candidates: &mut Vec<T>, wanted: impl Fn(&T) -> bool) -> bool {
    let some = candidates.iter().any(&wanted) && !candidates.iter().all(&wanted);
    if some {
        candidates.retain(wanted);
    }
    some
}
