//! What keeps Tierbar from working here, found without starting or changing anything.

use crate::{
    address,
    config::{parse, read_text},
    folder::{self, Folder},
    models, ownership, platform,
    room::{WrittenVolume, lost_changes},
    volume::Volume,
    worker,
};
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path};
use tierbar_core::{Code, Config, Error, TierId, config::Engine, units::file_size};
use tierbar_library::Library;

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// One sentence.
    pub what: String,
    /// What to do; `None` if nothing is wrong.
    pub remedy: Option<String>,
}

impl Finding {
    pub(crate) fn good(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: None,
        }
    }

    pub(crate) fn bad(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: Some(remedy.into()),
        }
    }
}

impl From<&Error> for Finding {
    fn from(error: &Error) -> Self {
        let remedy = error.hint.clone();
        Self::bad(
            error.message.clone(),
            remedy.unwrap_or_else(|| "correct this, then try again".to_owned()),
        )
    }
}

/// Examines the data folder (the default one if `None`), its configuration, the programs, the port, the models and the system.
/// Blocking.
pub fn examine(home: Option<&Path>) -> Vec<Finding> {
    let home = home.map_or_else(folder::data_folder, Path::to_owned);
    let mut findings = platform::examine();
    findings.push(examine_programs());
    if !home.is_dir() {
        let what = format!(
            "the data folder {} does not exist yet; Tierbar creates it at its first start",
            home.display()
        );
        findings.push(Finding::good(what));
        return findings;
    }
    let folder = Folder::at(home);
    findings.extend(private_files(&folder));
    // It is written at the first start.
    let text = read_text(&folder.config()).map(Option::unwrap_or_default);
    let config = match text.and_then(|text| parse(&text)) {
        Ok(parsed) => {
            let unknown = parsed.notices.into_iter();
            findings.extend(unknown.map(|what| Finding::bad(what, "remove or correct it")));
            parsed.config
        }
        Err(error) => {
            findings.push(Finding::from(&error));
            return findings;
        }
    };
    findings.push(examine_server(&folder, &config));
    findings.extend(examine_volumes(&folder, &config));
    findings.extend(examine_tiers(&folder, &config));
    findings
}

fn examine_programs() -> Finding {
    match worker::find("worker", None).and_then(|_| worker::find("guard", None)) {
        Ok(_) => Finding::good("the worker and the process guard are in place"),
        Err(error) => Finding::from(&error),
    }
}

/// The folder and the token are for their owner alone.
fn private_files(folder: &Folder) -> Vec<Finding> {
    let token = folder.token();
    let mut findings = Vec::new();
    for (path, mode) in [(folder.home(), 0o700), (token.as_path(), 0o600)] {
        let Ok(metadata) = fs::metadata(path) else {
            continue;
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            findings.push(Finding::bad(
                format!("other users of this machine can read {}", path.display()),
                format!("run: chmod {mode:o} '{}'", path.display()),
            ));
        }
    }
    if let Err(error) = tempfile::tempfile_in(folder.home()) {
        findings.push(Finding::bad(
            format!(
                "the data folder {} cannot be written: {error}",
                folder.home().display()
            ),
            "make it yours again, or set TIERBAR_HOME to a folder that you can write to",
        ));
    } else if findings.is_empty() {
        let what = format!("the data folder {} is yours alone", folder.home().display());
        findings.push(Finding::good(what));
    }
    findings
}

/// The running host, or else whether the port is free for one.
fn examine_server(folder: &Folder, config: &Config) -> Finding {
    if let Some(running) = ownership::find_running_host(Some(folder.home())) {
        let what = format!(
            "Tierbar is running at {} (pid {})",
            running.url, running.pid
        );
        return Finding::good(what);
    }
    let listen = match address::parse(&config.listen) {
        Ok(listen) => listen,
        Err(wrong) => return Finding::bad(wrong, "correct `listen` in config.toml"),
    };
    match TcpListener::bind(listen) {
        Ok(_) => Finding::good(format!(
            "Tierbar is not running, and {listen} is free for it"
        )),
        Err(error) => {
            let by = platform::listener(listen.port()).map_or_else(String::new, |program| {
                format!(" by {} (pid {})", program.command, program.pid)
            });
            Finding::bad(
                format!("{listen} is taken{by}: {error}"),
                "quit that program, or set another port as `listen` in config.toml",
            )
        }
    }
}

/// The room on the volumes that Tierbar writes to, and what was lost there.
fn examine_volumes(folder: &Folder, config: &Config) -> Vec<Finding> {
    let room = |written: WrittenVolume| match Volume::of(&written.path) {
        Ok(volume) => match written.shortage(volume) {
            Some((what, remedy)) => Finding::bad(what, remedy),
            None => Finding::good(format!(
                "the volume of {} has {} free",
                written.of,
                file_size(volume.free)
            )),
        },
        Err(error) => Finding::from(&error),
    };
    let volumes = WrittenVolume::all(folder, config).into_iter().map(room);
    let lost = lost_changes(folder).into_iter();
    let lost = lost.map(|(what, remedy)| Finding::bad(what, remedy));
    volumes.chain(lost).collect()
}

/// Each tier's model; a tier of another engine has none here.
fn examine_tiers(folder: &Folder, config: &Config) -> Vec<Finding> {
    let library = Library::new(models::options(folder, config));
    let own = config
        .tiers
        .iter()
        .filter(|(_, tier)| tier.engine == Engine::Embedded && !tier.model.is_empty());
    let examined: Vec<_> = own
        .map(|(id, tier)| examine_model(&library, id, &tier.model))
        .collect();
    if examined.is_empty() {
        return vec![Finding::bad(
            "no tier has a model",
            "choose one in Settings → Models, or set `model` of a tier in config.toml",
        )];
    }
    examined
}

fn examine_model(library: &Library, tier: &TierId, model: &str) -> Finding {
    match library.resolve(model) {
        Ok(_) => Finding::good(format!("the model of {tier}, {model}, is here")),
        Err(error) if error.code == Code::ModelMissing => Finding::bad(
            format!("the model of {tier} is missing: {}", error.message),
            format!("download it, or give {tier} another model in Settings → Tiers"),
        ),
        Err(error) => Finding::from(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(home: &Path) -> Vec<String> {
        let found = examine(Some(home)).into_iter();
        let wrong = found.filter(|finding| finding.remedy.is_some());
        wrong.map(|finding| finding.what).collect()
    }

    fn home(config: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("models")).unwrap();
        fs::write(home.path().join("config.toml"), config).unwrap();
        home
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_is_changed() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let home = home(&format!(
            "listen = \"{address}\"\nnew_key = 1\n[tiers.fast]\nmodel = \"gone\"\n"
        ));
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.path(), open).unwrap();
        let before = fs::read_dir(home.path()).unwrap().count();
        let wrong = wrong(home.path()).join("\n");
        for part in [
            "other users of this machine can read",
            "the key new_key is unknown",
            &format!("{address} is taken"),
            "the model of fast is missing",
        ] {
            assert!(wrong.contains(part), "{part} is not in:\n{wrong}");
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), before);
    }

    #[test]
    fn an_invalid_configuration_ends_the_examination() {
        let home = home("listen = 7\n");
        let wrong = wrong(home.path()).join("\n");
        assert!(wrong.contains("config.toml"), "{wrong}");
        assert!(!wrong.contains("tier"), "{wrong}");
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_no_fault() {
        let home = tempfile::tempdir().unwrap();
        let new = home.path().join("new");
        let found = examine(Some(&new));
        assert!(
            found
                .iter()
                .any(|finding| finding.what.contains("first start"))
        );
        assert!(!new.exists());
    }
}
