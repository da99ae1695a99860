//! Whether something has the name that `--tier` gives.

use crate::client::{Client as Host, admin, read};
use serde::Deserialize;
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId, connect::ClientServer, nearest::suggest};

/// What `GET /v1/models` lists: all that a request can name, but for other names of the models.
#[derive(Deserialize)]
struct Listed {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

/// The status, as far as it has names.
#[derive(Deserialize)]
struct Tiers {
    tiers: Vec<Tier>,
}

#[derive(Deserialize)]
struct Tier {
    id: String,
    #[serde(default)]
    aliases: Vec<String>,
}

/// Without a running host, chains and models are not known, and any name is taken.
///
/// # Errors
/// `ModelUnknown` with the names that there are; those of the host.
pub(super) async fn check(
    home: Option<&PathBuf>,
    server: &ClientServer,
    name: &str,
) -> Result<(), Error> {
    if name == TierId::AUTO || server.tiers.iter().any(|tier| tier.id.as_str() == name) {
        return Ok(());
    }
    let Ok(host) = Host::running(home) else {
        return Ok(());
    };
    let Listed { data } = read(host.get("/v1/models").await?)?;
    let Tiers { tiers } = read(host.get(&admin(&["status"], &[])).await?)?;
    let names: Vec<_> = data.into_iter().map(|entry| entry.id).collect();
    // A tier without a model exists all the same, and is not listed.
    let is_tier = tiers.iter().any(|tier| tier.id == name);
    let aliases: Vec<_> = tiers.into_iter().flat_map(|tier| tier.aliases).collect();
    if is_tier || is_named(name, &names, &aliases) {
        return Ok(());
    }
    let message = format!("there is no tier, chain or model \"{name}\"");
    let all = format!("use one of {}", names.join(", "));
    let known = names.iter().chain(&aliases).map(String::as_str);
    Err(Error::new(Code::ModelUnknown, message).hint(suggest(name, known, all)))
}

/// As the server takes names: a model's with or without its ending, and other names in any case, with or without `:latest`.
fn is_named(name: &str, names: &[String], aliases: &[String]) -> bool {
    let plain = name.strip_suffix(":latest").unwrap_or(name);
    let id = plain.strip_suffix(".gguf").unwrap_or(plain);
    names.iter().any(|one| one == name || one == id)
        || aliases.iter().any(|one| one.eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn a_name_is_known_as_the_server_takes_it() {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let names = owned(&["auto", "primary", "thorough", "gemma-4-E4B-Q4"]);
        let aliases = owned(&["gemma4:e4b"]);
        for known in [
            "thorough",
            "gemma-4-E4B-Q4",
            "gemma-4-E4B-Q4.gguf",
            "Gemma4:e4b",
            "gemma4:e4b:latest",
        ] {
            assert!(is_named(known, &names, &aliases), "{known}");
        }
        for unknown in ["primry", "Primary", "", "gemma4"] {
            assert!(!is_named(unknown, &names, &aliases), "{unknown}");
        }
    }
}
