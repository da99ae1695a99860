//! Which models of the catalog a machine should have, one for each tier.

use crate::catalog::{Catalog, Entry, Quant};
use tierbar_core::{
    ModelAccount,
    budget::Placement,
    catalog::ModelKind,
    config::Profile,
    fit::{ContextChoice, Grounds, LineKind, Machine, Verdict, verdict_with},
};

/// In order of use.
pub const TIERS: [&str; 3] = ["fast", "primary", "heavy"];

/// Room for a page or two and a conversation about them, in tokens.
const LEAST_CONTEXT: u32 = 8192;

/// A model for a tier.
#[derive(Debug, Clone, PartialEq)]
pub struct TierProposal<'a> {
    pub tier: &'static str,
    pub entry: &'a Entry,
    pub quant: &'a Quant,
    pub fit: Verdict,
    pub reason: String,
    pub grounds: Option<Grounds>,
    runs_well: bool,
}

/// Returns a model for each tier, none twice: the tier's default if it runs well on this machine, else another of the tier, else the
/// largest of the rest that does. Where none runs well, the tier's default is proposed if it runs at all.
pub fn propose<'a>(catalog: &'a Catalog, machine: &Machine) -> Vec<TierProposal<'a>> {
    let mut chosen: Vec<TierProposal<'a>> = Vec::new();
    for tier in TIERS {
        let free = |entry: &&Entry| chosen.iter().all(|other| other.entry.id != entry.id);
        let candidates: Vec<_> = catalog
            .models
            .iter()
            // A model of no tier is there to try things with.
            .filter(|entry| entry.kind == ModelKind::Chat && entry.tier.is_some())
            .filter(free)
            .filter_map(|entry| candidate(tier, entry, machine))
            .collect();
        let best = candidates
            .into_iter()
            .min_by_key(|candidate| sort_key(tier, candidate));
        chosen.extend(best);
    }
    chosen
}

fn candidate<'a>(
    tier: &'static str,
    entry: &'a Entry,
    machine: &Machine,
) -> Option<TierProposal<'a>> {
    let advice = entry.advice(Profile::Balanced, machine)?;
    let quant = entry.quant(&advice.quant)?;
    let account = entry.account(quant)?;
    let choice = ContextChoice::default();
    let mut fit = verdict_with(&account, entry.beside(), choice, machine, &[]);
    fit.estimated = true;
    Some(TierProposal {
        runs_well: runs_well(&fit, &account) && fit.context_tokens >= LEAST_CONTEXT,
        tier,
        entry,
        quant,
        fit,
        reason: advice.reason,
        grounds: advice.grounds,
    })
}

/// From the best: what runs well; of this tier; its default; the most parameters.
fn sort_key(tier: &str, candidate: &TierProposal<'_>) -> (bool, bool, bool, u64) {
    let entry = candidate.entry;
    let parameters = entry
        .architecture
        .as_ref()
        .map_or(0, |facts| facts.parameters);
    let of_tier = entry.tier.as_deref() == Some(tier);
    (
        !candidate.runs_well,
        !of_tier,
        !(of_tier && entry.default),
        u64::MAX - parameters,
    )
}

/// Whether tokens read nothing from the disk but rows of embeddings.
fn runs_well(fit: &Verdict, account: &ModelAccount) -> bool {
    let of = |what| fit.lines.iter().filter(move |line| line.what == what);
    let bytes = |what| of(what).map(|line| line.bytes).sum::<u64>();
    match fit.placement {
        Placement::Resident => true,
        Placement::Refused => false,
        _ => {
            bytes(LineKind::PagedExperts) == 0
                && bytes(LineKind::PagedWeights) <= account.row_read_bytes()
        }
    }
}

#[cfg(test)]
mod tests;
