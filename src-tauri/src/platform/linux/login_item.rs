//! Starting at login through a desktop entry, as <https://specifications.freedesktop.org/autostart-spec/latest/> describes. Not by
//! `tauri-plugin-autostart`, which writes a path with a space unquoted, and knows no `XDG_CONFIG_HOME`.

use crate::login_item::{Place, Refusal};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
};
use tauri::AppHandle;

/// The folder of desktop entries that start with the session.
pub(crate) fn places(_: &AppHandle) -> [Box<dyn Place>; 1] {
    [Box::new(DesktopEntry)]
}

struct DesktopEntry;

impl Place for DesktopEntry {
    fn is_on(&self) -> Result<bool, String> {
        Ok(entry()?.exists())
    }

    /// Rewrites it: it contains the app's path, and the app may have moved since.
    fn add(&self) -> Result<(), Refusal> {
        let entry = entry().map_err(Refusal::Everywhere)?;
        let added = env::current_exe().and_then(|program| add(&entry, &program));
        added.map_err(|error| Refusal::Here(unchanged(&entry, &error)))
    }

    fn remove(&self) -> Result<(), String> {
        let entry = entry()?;
        match fs::remove_file(&entry) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unchanged(&entry, &error)),
            _ => Ok(()),
        }
    }
}

fn unchanged(entry: &Path, error: &io::Error) -> String {
    format!("{} cannot be changed: {error}", entry.display())
}

fn entry() -> Result<PathBuf, String> {
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(env::home_dir()?.join(".config")));
    let config = config.ok_or("this user has no home folder")?;
    Ok(config.join("autostart/Tierbar.desktop"))
}

fn add(entry: &Path, program: &Path) -> io::Result<()> {
    fs::create_dir_all(entry.parent().unwrap_or(Path::new("/")))?;
    let program = argument(&program.to_string_lossy());
    fs::write(
        entry,
        format!(
            "[Desktop Entry]\nType=Application\nName=Tierbar\nExec={program} --login\nTerminal=false\n"
        ),
    )
}

/// Writes an argument of `Exec`: if need be in quotes, and escaped for these and for a string of a desktop entry
/// (<https://specifications.freedesktop.org/desktop-entry-spec/latest/exec-variables.html>).
fn argument(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@,=".contains(letter);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '\\' => quoted.push_str(r"\\\\"),
            '"' | '`' | '$' => {
                quoted.push_str(r"\\");
                quoted.push(letter);
            }
            '%' => quoted.push_str("%%"),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_entry() {
        for (path, written) in [
            ("/usr/bin/tierbar-app", "/usr/bin/tierbar-app"),
            ("/opt/My Apps/50% off", r#""/opt/My Apps/50%% off""#),
            (r#"/a"$b\c"#, r#""/a\\"\\$b\\\\c""#),
        ] {
            assert_eq!(argument(path), written, "{path}");
        }
    }
}
