//! Files of one folder. A path is opened from the folder, and no symbolic link is followed, so none leads out of it.

use super::Failure;
use crate::consent::{Act, Change, PermittedAct};
use similar::TextDiff;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    time::Duration,
};
use tierbar_documents::text_kind;
use tierbar_nofollow::{Mode, OpenError, Opened, open};

/// The largest file that is read or written, in bytes.
pub const FILE_BYTES: u64 = 1024 * 1024;
/// So much of a file tells a text from a document.
const HEAD: u64 = 4096;
/// How much of a file the model reads at once, in bytes.
pub const READ_BYTES: usize = 24 * 1024;
/// How many names of a folder are listed.
const NAMES: usize = 500;
/// A diff of what differs everywhere may be coarse rather than late.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// A folder whose files the agent may be given.
#[derive(Debug)]
pub struct Folder(Opened);

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// The number of the first line, from 1.
    pub first_line: usize,
    /// How many lines the file has.
    pub lines: usize,
    /// The first line that follows, if there is more.
    pub next_line: Option<usize>,
}

impl Excerpt {
    /// Returns what is read at once of a text from a line on.
    #[must_use]
    pub fn of(text: &str, from: usize) -> Self {
        let lines = text.lines().count();
        let first = from.clamp(1, lines.max(1));
        let mut kept = String::new();
        let mut next_line = None;
        for (at, line) in text.split_inclusive('\n').enumerate().skip(first - 1) {
            if kept.len() + line.len() > READ_BYTES {
                if kept.is_empty() {
                    kept.push_str(&line[..line.floor_char_boundary(READ_BYTES)]);
                    kept.push_str("\n[… the line goes on …]\n");
                    next_line = Some(at + 2).filter(|next| *next <= lines);
                } else {
                    next_line = Some(at + 1);
                }
                break;
            }
            kept.push_str(line);
        }
        Self {
            text: kept,
            first_line: first,
            lines,
            next_line,
        }
    }

    /// Returns it for the model, with where to read on in the file.
    #[must_use]
    pub fn render(self, path: &Path) -> String {
        let Some(next) = self.next_line else {
            return self.text;
        };
        let (text, path, lines) = (self.text, path.display(), self.lines);
        format!("{text}[{path} has {lines} lines; read on from line {next}]")
    }
}

impl Folder {
    /// Opens a folder by its real path.
    ///
    /// # Errors
    /// [`Failure`], if it is not there or no folder, or if there is a symbolic link in its path.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let root = open(path).map_err(|error| Failure(error.to_string()))?;
        if !root.about().is_ok_and(|about| about.is_folder) {
            return Err(Failure(format!("{} is not a folder", path.display())));
        }
        Ok(Self(root))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns a path as the model wrote it, relative to this folder.
    ///
    /// # Errors
    /// [`Failure`] for one that leads out of it.
    pub fn relative(&self, path: &str) -> Result<PathBuf, Failure> {
        crate::calls::relative_path(self.path(), path).map_err(Failure)
    }

    /// Reads a text file from a line on.
    ///
    /// # Errors
    /// [`Failure`] for what is no text file of this folder, or is too large.
    pub fn read(&self, permitted: &PermittedAct, from: usize) -> Result<Excerpt, Failure> {
        let path = self.permitted_path(permitted)?;
        Ok(Excerpt::of(&self.text(path)?, from))
    }

    /// Opens a file that is no text, which may be a document, or that is a mail; `None` for anything else. A web page is a text here, since
    /// the model may have to change it.
    ///
    /// # Errors
    /// [`Failure`] for what cannot be read.
    pub fn document(&self, permitted: &PermittedAct) -> Result<Option<File>, Failure> {
        let path = self.permitted_path(permitted)?;
        let failed = |error| failure(path, &error);
        let Ok(opened) = self.0.inside(path) else {
            return Ok(None);
        };
        if !opened.about().map_err(failed)?.is_file {
            return Ok(None);
        }
        let (mut file, mut head) = (opened.into_file(), Vec::new());
        (&mut file)
            .take(HEAD)
            .read_to_end(&mut head)
            .map_err(failed)?;
        file.rewind().map_err(failed)?;
        let ending = path.extension().unwrap_or_default();
        let is_mail = ending == "eml" || ending == "mbox";
        Ok((is_mail || text_kind(&head, path).is_none()).then_some(file))
    }

    /// Lists the names in a folder of this one, folders with a slash.
    ///
    /// # Errors
    /// [`Failure`] for what is no folder here.
    pub fn list(&self, permitted: &PermittedAct) -> Result<Vec<String>, Failure> {
        let path = self.permitted_path(permitted)?;
        let failed = |error| failure(path, &error);
        let folder = self.0.inside(path).map_err(|error| refusal(path, error))?;
        let mut names = Vec::new();
        for entry in folder.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.name.to_string_lossy().into_owned();
            let is_folder = entry.about.is_folder;
            names.push(if is_folder { format!("{name}/") } else { name });
        }
        names.sort_unstable();
        let left_out = names.len().saturating_sub(NAMES);
        names.truncate(NAMES);
        if left_out > 0 {
            names.push(format!("[… {left_out} more …]"));
        }
        Ok(names)
    }

    /// Prepares a whole new content of a file. Nothing is written.
    ///
    /// # Errors
    /// [`Failure`] for a path that cannot be written here, or a content that is too large.
    pub fn prepare_write(&self, path: &str, after: String) -> Result<Change, Failure> {
        let path = self.relative(path)?;
        if path.file_name().is_none() {
            return Err(Failure::new("the path names no file"));
        }
        let before = self.text_if_there(&path)?;
        change(path, before, after)
    }

    /// Prepares the replacement of a text that is in a file exactly once. Nothing is written.
    ///
    /// # Errors
    /// [`Failure`], with how often the text is there.
    pub fn prepare_edit(&self, path: &str, old: &str, new: &str) -> Result<Change, Failure> {
        let path = self.relative(path)?;
        let before = self.text(&path)?;
        if old.is_empty() {
            return Err(Failure::new("there is no text to replace"));
        }
        match before.matches(old).count() {
            1 => {
                let after = before.replacen(old, new, 1);
                change(path, Some(before), after)
            }
            0 => Err(Failure(format!(
                "the text to replace is not in {}; read the file again",
                path.display()
            ))),
            times => Err(Failure(format!(
                "the text to replace is {times} times in {}; give more of the lines around it",
                path.display()
            ))),
        }
    }

    /// Writes a change that was permitted, unless the file is no longer as it was shown. The file is new or old, never half.
    ///
    /// # Errors
    /// [`Failure`]; then the file is as it was.
    pub fn write(&self, permitted: &PermittedAct) -> Result<(), Failure> {
        let Act::Write { folder, change } = permitted.act() else {
            return Err(Failure::new("this is no change of a file"));
        };
        if folder != self.path() {
            return Err(Failure::new("the change is for another folder"));
        }
        let path = &change.path;
        let now = self.text_if_there(path)?;
        if now != change.before {
            return Err(Failure(format!(
                "{} has changed since it was read; read it again",
                path.display()
            )));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = self.0.create_folder(parent, Mode::from_raw_mode(0o755));
        let name = path.file_name().unwrap_or(OsStr::new(""));
        parent
            .map_err(|error| refusal(path, error))?
            .replace(name, change.after.as_bytes(), Mode::from_raw_mode(0o644))
            .map_err(|error| failure(path, &error))
    }

    fn permitted_path<'a>(&self, permitted: &'a PermittedAct) -> Result<&'a Path, Failure> {
        match permitted.act() {
            Act::Read { folder, path, .. } if folder == self.path() => Ok(path),
            Act::Read { .. } => Err(Failure::new("the file is of another folder")),
            _ => Err(Failure::new("this does not read a file")),
        }
    }

    /// The text of a file of this folder.
    fn text(&self, path: &Path) -> Result<String, Failure> {
        let failed = |error| failure(path, &error);
        let opened = self.0.inside(path).map_err(|error| refusal(path, error))?;
        if !opened.about().map_err(failed)?.is_file {
            return Err(Failure(format!("{} is not a file", path.display())));
        }
        let mut bytes = Vec::new();
        let mut file = opened.into_file().take(FILE_BYTES + 1);
        file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(Failure(format!(
                "{} is larger than {} KiB, the most that is read",
                path.display(),
                FILE_BYTES / 1024
            )));
        }
        let text = String::from_utf8(bytes).ok();
        text.filter(|text| !text.contains('\0'))
            .ok_or_else(|| Failure(format!("{} is not UTF-8 text", path.display())))
    }

    /// `None` if there is no such file.
    fn text_if_there(&self, path: &Path) -> Result<Option<String>, Failure> {
        match self.text(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error == missing(path) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn missing(path: &Path) -> Failure {
    Failure(format!("{} does not exist", path.display()))
}

/// Names the path as the model knows it.
fn refusal(path: &Path, error: OpenError) -> Failure {
    match error {
        OpenError::System { error, .. } => failure(path, &error),
        OpenError::Link { .. } => Failure(format!(
            "{} is a symbolic link or lies behind one, which is not followed",
            path.display()
        )),
        OpenError::Elsewhere(_) | OpenError::NotAbsolute(_) => {
            Failure(format!("{} leads elsewhere", path.display()))
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        _ => Failure(format!("{}: {error}", path.display())),
    }
}

fn change(path: PathBuf, before: Option<String>, after: String) -> Result<Change, Failure> {
    if after.len() as u64 > FILE_BYTES {
        return Err(Failure(format!(
            "the content has {} KiB, and at most {} KiB are written",
            after.len() / 1024,
            FILE_BYTES / 1024
        )));
    }
    if before.as_ref() == Some(&after) {
        return Err(Failure(format!(
            "{} already has this content",
            path.display()
        )));
    }
    let diff = diff(&path, before.as_deref(), &after);
    Ok(Change {
        path,
        before,
        after,
        diff,
    })
}

/// Renders a unified diff.
fn diff(path: &Path, before: Option<&str>, after: &str) -> String {
    let name = |side: char| format!("{side}/{}", path.display());
    let old = before.map_or_else(|| "/dev/null".to_owned(), |_| name('a'));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before.unwrap_or_default(), after);
    let mut unified = diff.unified_diff();
    unified
        .context_radius(3)
        .header(&old, &name('b'))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::{Answer, Decision, General, Grants, Scope, decide};
    use std::{fs, os::unix::fs::PermissionsExt, os::unix::fs::symlink};

    struct Place {
        _root: tempfile::TempDir,
        outside: PathBuf,
        folder: Folder,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let (work, outside) = (path.join("work"), path.join("outside"));
        fs::create_dir_all(work.join("src")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("token"), "the token").unwrap();
        fs::write(work.join("src/a.txt"), "one\ntwo\nthree\n").unwrap();
        symlink(&outside, work.join("folder")).unwrap();
        symlink(outside.join("token"), work.join("link")).unwrap();
        symlink(work.join("src/a.txt"), work.join("inner")).unwrap();
        Place {
            folder: Folder::open(&work).unwrap(),
            outside,
            _root: root,
        }
    }

    fn permitted(act: Act) -> PermittedAct {
        let mut grants = Grants::default();
        let decision = decide(act, General::default(), &grants, 0, "id".into());
        let Decision::Ask(pending) = decision else {
            panic!("{decision:?}");
        };
        let answer = Answer {
            id: "id".into(),
            allow: Some(Scope::Once),
        };
        pending
            .answer(&answer, "chat", &mut grants, 0)
            .unwrap()
            .unwrap()
    }

    impl Place {
        fn read(&self, path: &str, from: usize) -> Result<Excerpt, Failure> {
            let act = Act::Read {
                folder: self.folder.path().to_owned(),
                path: self.folder.relative(path)?,
                from_line: 1,
            };
            self.folder.read(&permitted(act), from)
        }

        fn list(&self, path: &str) -> Result<Vec<String>, Failure> {
            let act = Act::Read {
                folder: self.folder.path().to_owned(),
                path: self.folder.relative(path)?,
                from_line: 1,
            };
            self.folder.list(&permitted(act))
        }

        fn write(&self, change: Change) -> Result<(), Failure> {
            let act = Act::Write {
                folder: self.folder.path().to_owned(),
                change,
            };
            self.folder.write(&permitted(act))
        }
    }

    #[test]
    fn files_are_read_in_parts() {
        let place = place();
        let whole = place.read("src/a.txt", 1).unwrap();
        assert_eq!(whole.text, "one\ntwo\nthree\n");
        assert_eq!((whole.lines, whole.next_line), (3, None));
        let absolute = place.folder.path().join("./src/a.txt");
        let rest = place.read(absolute.to_str().unwrap(), 3).unwrap();
        assert_eq!((rest.text.as_str(), rest.first_line), ("three\n", 3));
        let lines = "x".repeat(99) + "\n";
        fs::write(place.folder.path().join("long"), lines.repeat(1_000)).unwrap();
        let part = place.read("long", 1).unwrap();
        let next = part.next_line.unwrap();
        assert_eq!(part.text.len(), (next - 1) * 100);
        assert_eq!(place.read("long", next).unwrap().first_line, next);
        fs::write(place.folder.path().join("line"), "ä".repeat(READ_BYTES)).unwrap();
        assert!(place.read("line", 1).unwrap().text.contains("goes on"));
        fs::write(place.folder.path().join("empty"), "").unwrap();
        assert_eq!(place.read("empty", 1).unwrap().lines, 0);
    }

    #[test]
    fn no_path_leaves_the_folder() {
        let place = place();
        for path in [
            "../outside/token",
            "src/../../outside/token",
            "/etc/passwd",
            "folder/token",
            "folder",
            "link",
            "inner",
            "~/x",
            "",
            "a\0b",
        ] {
            let got = place.read(path, 1);
            assert!(got.is_err(), "{path:?}: {got:?}");
            let change = place.folder.prepare_write(path, "x".into());
            // A new file in the folder `~` is harmless.
            assert_eq!(change.is_ok(), path == "~/x", "{path:?}: {change:?}");
        }
        let outside = place.outside.join("token");
        assert!(place.read(outside.to_str().unwrap(), 1).is_err());
        assert!(place.list("folder").is_err());
        assert!(place.list("../outside").is_err());
        assert_eq!(place.list("").unwrap(), ["folder", "inner", "link", "src/"]);
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let place = place();
        let path = place.folder.path().to_owned();
        fs::write(path.join("binary"), b"a\0b").unwrap();
        fs::write(path.join("latin"), b"\xe4").unwrap();
        fs::write(path.join("large"), vec![b'x'; FILE_BYTES as usize + 1]).unwrap();
        let mut mkfifo = std::process::Command::new("mkfifo");
        let made = mkfifo.arg(path.join("pipe")).status();
        assert!(made.unwrap().success());
        for name in ["binary", "latin", "large", "pipe", "src"] {
            assert!(place.read(name, 1).is_err(), "{name}");
        }
    }

    #[test]
    fn an_edit_replaces_one_text() {
        let place = place();
        let folder = &place.folder;
        let change = folder.prepare_edit("src/a.txt", "two", "2").unwrap();
        assert_eq!(
            change.diff,
            "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        );
        let file = folder.path().join("src/a.txt");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        place.write(change.clone()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2\nthree\n");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        // It was shown for another content.
        let again = place.write(change).unwrap_err();
        assert!(again.0.contains("has changed"), "{again}");
        for (old, times) in [("four", "not in"), ("e", "3 times"), ("", "no text")] {
            let error = folder.prepare_edit("src/a.txt", old, "x").unwrap_err();
            assert!(error.0.contains(times), "{old}: {error}");
        }
        let names: Vec<_> = fs::read_dir(folder.path().join("src")).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_new_file_is_written_with_its_folders() {
        let place = place();
        let change = place.folder.prepare_write("new/deep/file", "x\n".into());
        let change = change.unwrap();
        assert!(
            change.diff.starts_with("--- /dev/null\n"),
            "{}",
            change.diff
        );
        assert!(!place.folder.path().join("new").exists());
        place.write(change.clone()).unwrap();
        let file = place.folder.path().join("new/deep/file");
        assert_eq!(fs::read(&file).unwrap(), b"x\n");
        // Now there is one.
        assert!(place.write(change).is_err());
    }

    #[test]
    fn a_link_that_appears_after_the_question_is_not_followed() {
        let place = place();
        let path = place.folder.path().to_owned();
        let change = place.folder.prepare_write("new", "x".into()).unwrap();
        symlink(place.outside.join("token"), path.join("new")).unwrap();
        assert!(place.write(change).is_err());
        let change = place.folder.prepare_write("later/new", "x".into()).unwrap();
        symlink(&place.outside, path.join("later")).unwrap();
        assert!(place.write(change).is_err());
        assert_eq!(fs::read(place.outside.join("token")).unwrap(), b"the token");
        assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
    }

    #[test]
    fn a_second_name_of_a_file_outside_keeps_its_content() {
        let place = place();
        let hard = place.folder.path().join("hard");
        fs::hard_link(place.outside.join("token"), &hard).unwrap();
        let change = place.folder.prepare_write("hard", "x".into()).unwrap();
        place.write(change).unwrap();
        assert_eq!(fs::read(hard).unwrap(), b"x");
        assert_eq!(fs::read(place.outside.join("token")).unwrap(), b"the token");
    }

    #[test]
    fn a_change_is_for_its_folder() {
        let (one, other) = (place(), place());
        let change = one.folder.prepare_write("new", "x".into()).unwrap();
        let act = Act::Write {
            folder: one.folder.path().to_owned(),
            change,
        };
        assert!(other.folder.write(&permitted(act)).is_err());
    }
}
