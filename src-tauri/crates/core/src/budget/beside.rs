//! What is loaded beside a model if there is room for it: the model answers without it too.

use super::{Budget, LineKind, LoadPlan, needs, sum};
use crate::{model::ModelAccount, run::KvCache};
use std::fmt;

/// What turns images and sound into a model's embeddings.
pub trait MediaProjector: fmt::Debug + Sync {
    /// Returns what it takes beside a model of that context and batch, in bytes: its weights, and what encoding takes.
    fn load_bytes(&self, context: u32, batch: u32) -> u64;
}

/// A projector and a draft model, in the order in which they are given room.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompanionModels<'a> {
    pub projector: Option<&'a dyn MediaProjector>,
    pub draft: Option<&'a ModelAccount>,
}

impl<'a> CompanionModels<'a> {
    /// Only a projector, if there is one.
    pub fn projector<P: MediaProjector>(projector: Option<&'a P>) -> Self {
        Self {
            projector: projector.map(|projector| projector as &dyn MediaProjector),
            draft: None,
        }
    }

    /// Returns what all of it takes beside a model with that context, cache and batch.
    pub fn bytes(&self, context: u32, kv: KvCache, batch: u32) -> u64 {
        sum(self.lines(context, kv, batch).map(|(_, bytes)| bytes))
    }

    /// Adds to the plan what the budget has room for.
    pub fn join(&self, plan: LoadPlan, kv: KvCache, batch: u32, budget: &Budget) -> LoadPlan {
        let lines = self.lines(plan.context_tokens, kv, batch);
        lines.fold(plan, |plan, (what, bytes)| {
            plan.with(what, bytes, budget).unwrap_or(plan)
        })
    }

    /// Returns what the plan has room for, and what it has not.
    pub fn split(self, plan: &LoadPlan) -> (Self, Self) {
        let has = |what| plan.lines.iter().any(|line| line.what == what);
        let (projector, draft) = (has(LineKind::Projector), has(LineKind::DraftModel));
        let of = |projector, draft| Self {
            projector: self.projector.filter(|_| projector),
            draft: self.draft.filter(|_| draft),
        };
        (of(projector, draft), of(!projector, !draft))
    }

    /// Returns all of it, and then each alone if there are two.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> {
        let of = |projector, draft| Self { projector, draft };
        let alone = [of(self.projector, None), of(None, self.draft)];
        let both = self.projector.is_some() && self.draft.is_some();
        let all = std::iter::once(self).filter(|all| !all.is_empty());
        all.chain(alone.into_iter().filter(move |_| both))
    }

    pub fn is_empty(&self) -> bool {
        self.projector.is_none() && self.draft.is_none()
    }

    pub(crate) fn lines(
        &self,
        context: u32,
        kv: KvCache,
        batch: u32,
    ) -> impl Iterator<Item = (LineKind, u64)> {
        let projector = self.projector.map(|projector| {
            let bytes = projector.load_bytes(context, batch);
            (LineKind::Projector, bytes)
        });
        let draft = self.draft.map(|draft| {
            let bytes = needs(draft, context, kv, batch).engine_bytes();
            (LineKind::DraftModel, bytes)
        });
        projector.into_iter().chain(draft)
    }
}
