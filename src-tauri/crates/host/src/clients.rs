//! Which other programs are installed here, and how they reach a Tierbar that is not running.

use crate::{
    address,
    config::{parse, read_text},
    folder::{Folder, data_folder, path_variable},
    platform,
};
use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tierbar_connect::{CLIENTS, Client, ClientServer, ClientTier, Trace};
use tierbar_core::{Code, Error, TierId};
use tierbar_sandbox::search_path;

/// Where programs are that the shell finds, though an app started from the Dock does not.
const MORE_FOLDERS: [&str; 3] = ["~/.local/bin", "~/.npm-global/bin", "~/.cargo/bin"];

/// Returns the ids of the clients that are installed here. Blocking.
pub fn installed_clients() -> Vec<&'static str> {
    let more = MORE_FOLDERS.iter().filter_map(|folder| expand(folder));
    let folders: Vec<PathBuf> = env::split_paths(&search_path()).chain(more).collect();
    let is_there = |trace: &Trace| match trace {
        Trace::Program(name) => folders.iter().any(|folder| is_program(&folder.join(name))),
        Trace::Path(path) => expand(path).is_some_and(|path| path.exists()),
    };
    let is_found = |client: &&Client| client.traces.iter().any(is_there);
    CLIENTS
        .iter()
        .filter(is_found)
        .map(|client| client.id)
        .collect()
}

/// Returns a path that begins with `~` or with a variable, such as `$CODEX_HOME`; `None` if that is not set.
pub fn expand(path: &str) -> Option<PathBuf> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let base = match first.strip_prefix('$') {
        Some(variable) => path_variable(variable)?,
        None if first == "~" => path_variable("HOME")?,
        None => return Some(PathBuf::from(path)),
    };
    Some(if rest.is_empty() {
        base
    } else {
        base.join(rest)
    })
}

/// Returns the command with which other programs start Tierbar as an MCP server: this installation's `tierbar`, since an app started from
/// the Dock does not search the shell's folders, and the data folder, unless it is the usual one. Blocking.
pub fn mcp_command(home: &Path) -> Vec<String> {
    let beside = |program: &Path| {
        let program = program.with_file_name("tierbar");
        is_program(&program).then_some(program)
    };
    let running = env::current_exe().ok();
    // A link may be beside nothing of ours.
    let program = running
        .and_then(|program| beside(&program).or_else(|| beside(&program.canonicalize().ok()?)));
    let program = program.unwrap_or_else(|| PathBuf::from("tierbar"));
    let mut command = vec![program.display().to_string()];
    let usual = platform::data_folder(&path_variable("HOME").unwrap_or_default());
    if home != usual {
        command.extend(["--home".to_owned(), home.display().to_string()]);
    }
    command.push("mcp".to_owned());
    command
}

/// Returns the server that would run with the configuration of a data folder (the default one if `None`). Of its models, nothing
/// is known. Blocking.
///
/// # Errors
/// `ConfigInvalid` with the line; `Storage` if the file cannot be read.
pub fn configured_server(home: Option<&Path>) -> Result<ClientServer, Error> {
    let folder = Folder::at(home.map_or_else(data_folder, Path::to_owned));
    let text = read_text(&folder.config())?;
    let config = parse(&text.unwrap_or_default())?.config;
    let address =
        address::parse(&config.listen).map_err(|wrong| Error::new(Code::ConfigInvalid, wrong))?;
    let has_model = |id: &TierId| {
        let tier = &config.tiers[id];
        !tier.model.trim().is_empty() || tier.foreign_model().is_some()
    };
    let is_chat = |id: &TierId| ![TierId::EMBEDDER, TierId::RERANKER].contains(&id.as_str());
    let tiers = config.tier_order().into_iter().filter(|id| has_model(id));
    let embedder = tiers.clone().find(|id| id.as_str() == TierId::EMBEDDER);
    let chat = tiers.filter(|id| is_chat(id)).map(|id| ClientTier {
        id: id.clone(),
        context_tokens: config.tiers[id].context.fixed(),
        tools: None,
    });
    Ok(ClientServer {
        url: address::url(address),
        key_required: config.server.require_keys || !address.ip().is_loopback(),
        tiers: chat.collect(),
        embedder: embedder.cloned(),
        mcp_command: mcp_command(folder.home()),
    })
}

fn is_program(path: &Path) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_server_is_known_without_a_host() {
        let home = tempfile::tempdir().unwrap();
        let none = configured_server(Some(home.path())).unwrap();
        assert_eq!(none.url, "http://127.0.0.1:11435");
        assert!(!none.key_required && none.tiers.is_empty());
        let config = "listen = \"127.0.0.1:9000\"\n[server]\nrequire_keys = true\n[tiers.heavy]\nmodel = \"a\"\ncontext = 32768\n\
                      [tiers.fast]\nmodel = \"b\"\n[tiers.primary]\n[tiers.embedder]\nmodel = \"c\"\n";
        fs::write(home.path().join("config.toml"), config).unwrap();
        let server = configured_server(Some(home.path())).unwrap();
        assert_eq!(server.url, "http://127.0.0.1:9000");
        assert!(server.key_required);
        let tiers = server
            .tiers
            .iter()
            .map(|tier| (tier.id.as_str(), tier.context_tokens));
        assert_eq!(
            tiers.collect::<Vec<_>>(),
            [("fast", None), ("heavy", Some(32_768))]
        );
        assert_eq!(server.embedder.unwrap().as_str(), "embedder");
        let home_argument = ["--home", home.path().to_str().unwrap(), "mcp"];
        assert_eq!(server.mcp_command[1..], home_argument);
        fs::write(home.path().join("config.toml"), "listen = 7").unwrap();
        assert_eq!(
            configured_server(Some(home.path())).unwrap_err().code,
            Code::ConfigInvalid
        );
    }

    #[test]
    fn paths_begin_at_the_home_folder_or_a_variable() {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert_eq!(expand("~/.codex"), Some(home.join(".codex")));
        assert_eq!(expand("~"), Some(home.clone()));
        assert_eq!(expand("$HOME/a/b"), Some(home.join("a/b")));
        assert_eq!(expand("$TIERBAR_NO_SUCH_VARIABLE/a"), None);
        assert_eq!(
            expand("/Applications/Zed.app"),
            Some("/Applications/Zed.app".into())
        );
    }
}
