//! Files that a schedule has written and must not read: each run would read the previous one's.

use crate::sources::expanded;
use jiff::civil::Date;
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};
use tierbar_core::config::ScheduleConfig;

/// `2026-11-22`
const DATE_LENGTH: usize = 10;

/// The folder and name pattern of a schedule's results.
pub(super) struct Outputs {
    folder: PathBuf,
    before: String,
    /// The part of the name after the day; `None` without a day in the name.
    behind: Option<String>,
}

impl Outputs {
    pub(super) fn of(to: &str) -> Self {
        let name = to.rsplit('/').next().unwrap_or_default();
        let (before, behind) = match name.split_once(ScheduleConfig::DATE) {
            Some((before, behind)) => (before, Some(behind.to_owned())),
            None => (name, None),
        };
        let path = expanded(to);
        Self {
            folder: path.parent().map_or_else(PathBuf::new, Path::to_owned),
            before: before.to_owned(),
            behind,
        }
    }

    /// Returns whether the results go to this folder, which may be written in different ways.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        let whole = |path: &Path| fs::canonicalize(path).ok();
        whole(&self.folder).is_some_and(|here| whole(folder) == Some(here))
    }

    /// Returns whether the file is a result.
    pub(super) fn is(&self, file: &Path) -> bool {
        let file = fs::canonicalize(file).unwrap_or_default();
        let folder = file.parent().is_some_and(|folder| self.is_in(folder));
        folder && file.file_name().is_some_and(|name| self.wrote(name))
    }

    /// Returns whether a file in the results' folder is a result, by its name.
    pub(super) fn wrote(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        let Some(behind) = &self.behind else {
            return name == self.before;
        };
        let Some(rest) = name.strip_prefix(&self.before) else {
            return false;
        };
        let Some((date, rest)) = rest.split_at_checked(DATE_LENGTH) else {
            return false;
        };
        // A day that occurs twice in the name is the same one.
        date.parse::<Date>().is_ok() && rest == behind.replace(ScheduleConfig::DATE, date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_recognized_by_its_name() {
        let wrote = |to: &str, name: &str| Outputs::of(to).wrote(OsStr::new(name));
        for (to, name) in [
            ("/a/{date}.md", "2026-11-22.md"),
            ("/a/b-{date}-of-{date}.md", "b-2026-11-22-of-2026-11-22.md"),
            ("/a/b.md", "b.md"),
        ] {
            assert!(wrote(to, name), "{to} {name}");
        }
        for (to, name) in [
            ("/a/{date}.md", "2026-99-22.md"),
            ("/a/{date}.md", "2026-11-22.log"),
            ("/a/{date}.md", "2026-11-2\u{e9}.md"),
            ("/a/{date}.md", "a.md"),
            ("/a/b-{date}-of-{date}.md", "b-2026-11-22-of-2026-11-23.md"),
            ("/a/b.md", "c.md"),
        ] {
            assert!(!wrote(to, name), "{to} {name}");
        }
    }

    #[test]
    fn a_file_is_recognized_by_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        fs::write(&file, "a").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let own = Outputs::of(&format!("{}/./a.jsonl", folder.path().display()));
        assert!(own.is(&file) && own.is(&link));
        assert!(!own.is(folder.path()) && !own.is(&folder.path().join("none")));
    }
}
