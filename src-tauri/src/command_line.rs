//! The `tierbar` command in the user's terminal: a link to the program beside the app.

use crate::platform;
use serde::Serialize;
use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// What the settings show of it.
#[derive(Debug, Serialize)]
pub(crate) struct CommandLine {
    /// Where the link is, or would be.
    path: PathBuf,
    installed: bool,
    /// Whether a terminal finds it there.
    in_path: bool,
}

/// Blocking.
pub(crate) fn state() -> Result<CommandLine, String> {
    let program = program()?;
    let link = link_to(&program)?;
    let folder = link.parent().unwrap_or(Path::new("/"));
    Ok(CommandLine {
        installed: link_state(&link, &program) == LinkState::Ours,
        in_path: platform::is_in_path(folder),
        path: link,
    })
}

/// Adds the link or removes it, and tells what is there then. Asks for an administrator where the folder requires one.
/// Blocking.
pub(crate) fn set(installed: bool) -> Result<CommandLine, String> {
    let program = program()?;
    let link = link_to(&program)?;
    if installed && platform::is_temporary(&program) {
        return Err(
            "macOS runs Tierbar from a temporary place: move it to the Applications folder, open it there, then try again"
                .to_owned(),
        );
    }
    let changed = match (link_state(&link, &program), installed) {
        (LinkState::Other, _) => {
            return Err(format!(
                "{} is something else: rename or delete it, then try again",
                link.display()
            ));
        }
        (LinkState::Nothing, false) | (LinkState::Ours, true) => Ok(()),
        (_, true) => add(&program, &link),
        (_, false) => fs::remove_file(&link),
    };
    match changed {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            platform::change_link_as_administrator(installed.then_some(&program), &link)?;
        }
        Err(error) => return Err(format!("{} cannot be changed: {error}", link.display())),
        Ok(()) => {}
    }
    state()
}

/// The link to the program if there is one, else where it belongs.
fn link_to(program: &Path) -> Result<PathBuf, String> {
    let links = platform::command_links()?;
    let ours = links
        .iter()
        .find(|link| link_state(link, program) == LinkState::Ours);
    let link = ours.or(links.first()).cloned();
    link.ok_or_else(|| "there is no folder for commands".to_owned())
}

#[derive(Debug, PartialEq, Eq)]
enum LinkState {
    Nothing,
    /// A link to our program.
    Ours,
    /// A link to a Tierbar that is elsewhere, or is there no more.
    Earlier,
    Other,
}

fn link_state(link: &Path, program: &Path) -> LinkState {
    match fs::read_link(link) {
        Ok(target) => {
            let target = link
                .parent()
                .map_or(target.clone(), |folder| folder.join(&target));
            if target == program || target.canonicalize().is_ok_and(|target| target == program) {
                LinkState::Ours
            } else if target.file_name() == program.file_name() {
                LinkState::Earlier
            } else {
                LinkState::Other
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => LinkState::Nothing,
        // It is no link.
        Err(_) => LinkState::Other,
    }
}

/// Replaces an earlier link in one step.
fn add(program: &Path, link: &Path) -> io::Result<()> {
    let folder = link.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".tierbar-{}", std::process::id()));
    symlink(program, &beside)?;
    fs::rename(&beside, link).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// The `tierbar` beside the app.
fn program() -> Result<PathBuf, String> {
    let app = env::current_exe()
        .and_then(|app| app.canonicalize())
        .map_err(|error| format!("the app's own path is unknown: {error}"))?;
    let program = app.with_file_name("tierbar");
    if !program.is_file() {
        let program = program.display();
        return Err(format!("{program} is missing; install Tierbar again"));
    }
    Ok(program.canonicalize().unwrap_or(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_to_tierbar_is_replaced() {
        let root = std::env::temp_dir().join(format!("tierbar-links-{}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        let root = root.canonicalize().unwrap();
        let (program, link) = (root.join("tierbar"), root.join("bin/tierbar"));
        fs::write(&program, "").unwrap();
        assert_eq!(link_state(&link, &program), LinkState::Nothing);
        add(&program, &link).unwrap();
        assert_eq!(link_state(&link, &program), LinkState::Ours);
        // Homebrew links relatively.
        fs::remove_file(&link).unwrap();
        symlink("../tierbar", &link).unwrap();
        assert_eq!(link_state(&link, &program), LinkState::Ours);
        for (target, wanted) in [
            (
                "/Volumes/Tierbar/Tierbar.app/Contents/MacOS/tierbar",
                LinkState::Earlier,
            ),
            ("/usr/bin/env", LinkState::Other),
        ] {
            fs::remove_file(&link).unwrap();
            symlink(target, &link).unwrap();
            assert_eq!(link_state(&link, &program), wanted, "{target}");
        }
        add(&program, &link).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), program);
        fs::remove_file(&link).unwrap();
        fs::write(&link, "another program").unwrap();
        assert_eq!(link_state(&link, &program), LinkState::Other);
        assert_eq!(fs::read_dir(root.join("bin")).unwrap().count(), 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
