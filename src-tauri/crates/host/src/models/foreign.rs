//! Tiers with a command or an endpoint: the plan of a command, and what such tiers do not support.

use std::path::PathBuf;
use tierbar_core::{
    Code, Config, Error, ModelKind, TierId, TierKind,
    budget::{EMBEDDER_SLOT, LoadPlan, Placement},
    config::{Engine, TierConfig},
    fit::{Line, LineKind},
};
use tierbar_supervisor::{ForeignCommand, LoadSettings, LoadSpec};

/// Returns the load of a command, planned by its declared memory; `None` for our own engine.
pub(super) fn load(
    tier: &TierId,
    config: &TierConfig,
    find_guard: impl FnOnce() -> Result<PathBuf, Error>,
) -> Option<Result<LoadSpec, Error>> {
    let (remote_model, model) = config.foreign_model()?;
    let Engine::Command(engine) = &config.engine else {
        let what = format!("nothing is loaded for {tier}: it is an endpoint");
        return Some(Err(Error::new(Code::Internal, what)));
    };
    let spec = |process_guard| LoadSpec {
        model,
        path: PathBuf::new(),
        projector: None,
        settings: LoadSettings::from(config),
        draft_model: None,
        plan: LoadPlan {
            placement: Placement::Resident,
            lines: vec![Line {
                what: LineKind::Command,
                bytes: engine.memory.0,
            }],
            context_tokens: config.context_tokens(),
            kind: if kind(tier) != ModelKind::Chat && engine.memory.0 <= EMBEDDER_SLOT {
                TierKind::Embedder
            } else {
                TierKind::Generative
            },
        },
        command: Some(Box::new(ForeignCommand {
            engine: engine.clone(),
            remote_model,
            process_guard,
        })),
    };
    Some(find_guard().map(spec))
}

/// What the model of a server is for is known by the tier's name alone.
pub(super) fn kind(tier: &TierId) -> ModelKind {
    match tier.as_str() {
        TierId::EMBEDDER => ModelKind::Embedding,
        TierId::RERANKER => ModelKind::Reranking,
        _ => ModelKind::Chat,
    }
}

/// The error for a tier that our worker does not run.
pub(crate) fn not_measured(tier: &TierId) -> Error {
    let what =
        format!("Tierbar measures only models that its own engine runs, and {tier} uses another");
    Error::new(Code::BadRequest, what)
        .hint("measure another tier, or set `engine = \"embedded\"` for this one")
}

/// Only the configuration file can set commands: the API's token, which also works from other machines, must not allow
/// running any program here.
///
/// # Errors
/// `BadRequest` if a command is new or differs.
pub(crate) fn refuse_new_commands(before: &Config, after: &Config) -> Result<(), Error> {
    for (id, tier) in &after.tiers {
        let was = before.tiers.get(id).map(|tier| &tier.engine);
        if matches!(tier.engine, Engine::Command(_)) && was != Some(&tier.engine) {
            let what = format!("the API cannot set the command of {id}");
            return Err(Error::new(Code::BadRequest, what)
                .hint(format!("write it in config.toml, under [tiers.{id}]")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::models;
    use super::*;

    const COMMAND: &str =
        "[tiers.fast]\nengine = { command = [\"s\", \"{port}\"], memory = \"6GiB\" }\n";

    fn config(toml: &str) -> Config {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn a_command_is_planned_by_its_declared_memory() {
        let config = config(COMMAND);
        let id = TierId::new("fast").unwrap();
        let tier = &config.tiers[&id];
        let spec = load(&id, tier, || Ok("/guard".into())).unwrap().unwrap();
        assert_eq!(spec.plan.total_bytes(), 6 << 30);
        let engine = Engine::Command(spec.command.unwrap().engine);
        assert_eq!(engine, tier.engine);
        let (_home, models) = models(COMMAND);
        let tiers = models.tiers();
        assert_eq!(tiers[0].model.as_ref().unwrap().as_str(), "s");
        assert_eq!(tiers[0].remote_model, None);
        let error = models.limits(&id).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
    }

    #[test]
    fn what_generates_no_text_is_not_measured() {
        let (_home, models) = models("[tiers.embedder]\n[tiers.reranker]\n[tiers.fast]\n");
        let config = models.config();
        let check = |id: &str| {
            let id = TierId::new(id).unwrap();
            models.check_measured(&id, &config.tiers[&id])
        };
        for (id, does) in [
            ("embedder", "embedder embeds texts"),
            ("reranker", "reranker ranks texts"),
        ] {
            let error = check(id).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.ends_with(does), "{error}");
        }
        assert_eq!(check("fast"), Ok(()));
    }

    #[test]
    fn a_tier_with_a_model_name_requests_that_model() {
        let (_home, models) = models(
            "[tiers.heavy]\nmodel = \"qwen3:8b\"\nengine = { endpoint = \"http://127.0.0.1:11434\" }\n",
        );
        let tier = models.tiers().remove(0);
        assert_eq!(tier.model.unwrap().as_str(), "qwen3:8b");
        assert_eq!(
            (tier.remote_model.as_deref(), tier.path),
            (Some("qwen3:8b"), None)
        );
    }

    #[test]
    fn the_api_hides_commands() {
        let with = config(COMMAND);
        let other = config(&COMMAND.replace("\"s\"", "\"rm\""));
        let none = config("[tiers.fast]\n");
        let endpoint = config("[tiers.fast]\nengine = { endpoint = \"http://a\" }\n");
        assert!(refuse_new_commands(&none, &with).is_err());
        assert!(refuse_new_commands(&with, &other).is_err());
        for (before, after) in [(&with, &with), (&with, &none), (&none, &endpoint)] {
            refuse_new_commands(before, after).unwrap();
        }
    }
}
