//! The names that a shell completes: of tiers, and of models on this machine. They are those of the running host.

use crate::{client::Client, config, models};
use clap::Command;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use std::{future::Future, time::Duration};
use tierbar_core::Error;
use tokio::{runtime::Builder, time::timeout};

/// A shell that waits longer seems to hang.
const LONGEST: Duration = Duration::from_secs(1);

/// Gives each argument that names a tier or a model its candidates. `name`: of the command.
pub(crate) fn add(command: Command, name: &str) -> Command {
    command.mut_args(|arg| {
        let id = arg.get_id().as_str().to_owned();
        match (name, id.as_str()) {
            (_, "tier" | "tiers") | ("tier start" | "tier stop", "name") => {
                arg.add(ArgValueCandidates::new(tiers))
            }
            ("config get" | "config list" | "config set" | "config unset", "key") => {
                arg.add(ArgValueCandidates::new(config_keys))
            }
            // It is not here yet.
            ("models pull", "model") => arg,
            (_, "model") => arg.add(ArgValueCandidates::new(models)),
            _ => arg,
        }
    })
}

fn tiers() -> Vec<CompletionCandidate> {
    let names = fetch_names(async {
        let tiers = Client::running(None)?.tiers().await?;
        Ok(tiers.into_iter().map(|tier| tier.id.to_string()).collect())
    });
    let names = names.unwrap_or_else(|| ["fast", "primary", "heavy"].map(str::to_owned).to_vec());
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Those of a tier have the names of the tiers.
fn config_keys() -> Vec<CompletionCandidate> {
    let names = fetch_names(async { config::names_of(&Client::running(None)?).await });
    let names = names.unwrap_or_else(config::key_names);
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn models() -> Vec<CompletionCandidate> {
    let names = fetch_names(async {
        let models = models::installed(&Client::running(None)?).await?;
        Ok(models.into_iter().map(|model| model.id.0).collect())
    });
    let names = names.unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the names, unless no host runs or it takes too long.
fn fetch_names(names: impl Future<Output = Result<Vec<String>, Error>>) -> Option<Vec<String>> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let names = runtime.block_on(async { timeout(LONGEST, names).await });
    names.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use crate::tests::each_command;
    use clap_complete::ArgValueCandidates;

    #[test]
    fn arguments_that_name_a_tier_or_a_model_are_completed() {
        let mut completed = Vec::new();
        each_command(&mut |name, command| {
            for arg in command.get_arguments() {
                if arg.get::<ArgValueCandidates>().is_some() {
                    completed.push(format!("{name} {}", arg.get_id()));
                }
            }
        });
        for expected in [
            "log tier",
            "chat tier",
            "setup tiers",
            "tier use tier",
            "tier use model",
            "tier start name",
            "tier stop name",
            "models rm model",
            "models pull tier",
            "config set key",
        ] {
            assert!(
                completed.iter().any(|name| name == expected),
                "{expected} is not in {completed:?}"
            );
        }
        assert!(!completed.iter().any(|name| name == "models pull model"));
        assert!(!completed.iter().any(|name| name == "key add name"));
    }
}
