//! What a load of a tier is: its model, what goes with it, and the plan.

use super::foreign;
use crate::worker;
use std::path::PathBuf;
use tierbar_core::{
    Code, Error, ModelAccount, TierId,
    budget::{CompanionModels, plan_load},
    config::TierConfig,
    fit::{Machine, gpu_share, settle},
    sampling::ModelSampling,
};
use tierbar_library::{Library, Projector, model_id};
use tierbar_supervisor::{LoadSettings, LoadSpec};

pub(super) fn load(
    tier: &TierId,
    config: &TierConfig,
    library: &Library,
    machine: &Machine,
) -> Result<LoadSpec, Error> {
    if let Some(command) = foreign::load(tier, config, || worker::find("guard", None)) {
        return command;
    }
    if config.model.trim().is_empty() {
        let message = format!("the {tier} tier has no model yet");
        return Err(Error::new(Code::ModelMissing, message)
        .hint(format!(
            "run `tierbar tier use {tier} MODEL`, choose a model in Settings, or set `model` under [tiers.{tier}] in config.toml"
        )));
    }
    let path = library.resolve(&config.model)?;
    let account = library.account(&path)?;
    let projector = library.projector(&path, &account);
    let draft = draft_model(config, library)?;
    let beside = companion_models(
        projector.as_ref(),
        draft.as_ref().map(|(_, account)| account),
    );
    let config = &settle(config, &account, beside, machine);
    let kv_cache = config.kv_cache.fixed().unwrap_or_default();
    let budget = machine.paging(config.paging).budget();
    let plan = plan_load(
        &account,
        config.context_tokens(),
        kv_cache,
        config.batch,
        &budget,
    )?;
    let plan = beside.join(plan, kv_cache, config.batch, &budget);
    let (_, left_out) = beside.split(&plan);
    let no_room = (left_out.projector.is_some(), left_out.draft.is_some());
    let projector = with_room(projector.map(|projector| projector.path), no_room.0);
    let draft_model = with_room(draft.map(|(path, _)| path), no_room.1);
    let on_gpu = |limit| {
        let share = gpu_share(&account, &plan, kv_cache, config.batch, limit);
        match config.gpu_layers {
            Some(most) if most < share.layers => Some(most),
            _ => share.fewer_layers(),
        }
    };
    Ok(LoadSpec {
        model: model_id(&config.model),
        path,
        projector,
        settings: LoadSettings {
            context: plan.context_tokens,
            gpu_layers: machine.gpu_limit.and_then(on_gpu),
            // Another model may have been chosen since.
            experts_used: config
                .experts_used
                .filter(|count| *count < account.experts_used),
            sampling: ModelSampling::for_model(config.sampling, &account),
            ..LoadSettings::from(config)
        },
        draft_model,
        command: None,
        plan,
    })
}

/// Returns what is loaded beside a model if there is room for it.
pub(crate) fn companion_models<'a>(
    projector: Option<&'a Projector>,
    draft: Option<&'a ModelAccount>,
) -> CompanionModels<'a> {
    let usable = projector.and_then(|projector| projector.account.as_ref().ok());
    CompanionModels {
        draft,
        ..CompanionModels::projector(usable)
    }
}

/// Returns the tier's draft model, if it has one. Blocking.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn draft_model(
    config: &TierConfig,
    library: &Library,
) -> Result<Option<(PathBuf, ModelAccount)>, Error> {
    let name = config.draft_model.trim();
    if name.is_empty() {
        return Ok(None);
    }
    let read = |path: PathBuf| Ok((library.account(&path)?, path));
    let found = library.resolve(name).and_then(read);
    found
        .map(|(account, path)| Some((path, account)))
        .map_err(|error| {
            Error {
                message: format!("its draft model: {}", error.message),
                ..error
            }
            .hint("choose another `draft_model` for the tier, or none")
        })
}

/// Returns the file, if there is room for it. A projector that cannot be used is passed on: the worker does not load it either, and
/// reports why when an image is sent.
fn with_room(file: Option<PathBuf>, left_out: bool) -> Option<PathBuf> {
    if let (Some(file), true) = (&file, left_out) {
        tracing::warn!(
            "{} is not loaded: with it, the model would exceed the budget",
            file.display()
        );
    }
    file.filter(|_| !left_out)
}
