//! Files of one folder. A path is opened from the folder, and no symbolic link is followed, so none leads out of it.

use super::{
    Excerpt, Failure,
    text::{FileText, to_compare, to_lf},
};
use crate::consent::{Act, Change, Digest, PermittedAct};
use sha2::{Digest as _, Sha256};
use similar::TextDiff;
use std::{
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    time::Duration,
};
use tierbar_documents::{charset::TextForm, text_kind};
use tierbar_nofollow::{Mode, OpenError, OpenFile, RawMode, open, reason};

/// The largest file that is read as a whole, or changed, in bytes.
pub const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// So much of a file tells a text from a document.
const HEAD: u64 = 4096;
/// The modes of a file that the agent creates, and of one that comes back if its own is not known.
const NEW: Mode = Mode::from_bits_retain(0o644);
const PRIVATE: Mode = Mode::from_bits_retain(0o600);
/// How many names of a folder are listed.
const NAMES: usize = 500;
/// The longest diff. Far less can be shown to a person, but equal lines are folded there.
const DIFF_BYTES: usize = 1024 * 1024;
/// A diff of what differs everywhere may be coarse rather than late.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// A folder whose files the agent may be given.
#[derive(Debug)]
pub struct Folder(OpenFile);

/// A file as it was before a run of an agent changed it, and as that has left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerFile {
    /// Relative to the folder.
    pub path: PathBuf,
    /// `None`: there was none.
    pub before: Option<Vec<u8>>,
    /// Its permissions then; `None` if they are not known.
    pub mode: Option<u32>,
    /// `None` if it is not known.
    pub after: Option<Digest>,
}

/// Why the changes of a run were not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotUndone {
    /// These files have changed since. None was written.
    ChangedSince(Vec<PathBuf>),
    /// Why these files stay as they are. All others are as they were before the run.
    Left(Vec<Failure>),
}

impl Folder {
    /// Opens a folder by its real path.
    ///
    /// # Errors
    /// [`Failure`], if it is not there or no folder, or if there is a symbolic link in its path.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let root = open(path).map_err(|error| match error {
            OpenError::System { error, .. } => failure(path, &error),
            error => Failure(error.to_string()),
        })?;
        if !root.about().is_ok_and(|about| about.is_folder) {
            return Err(fault(path, "is not a folder"));
        }
        Ok(Self(root))
    }

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
    /// [`Failure`] for what is no text file of this folder, and of a large one for a line that it does not have.
    pub fn read_excerpt(&self, permitted: &PermittedAct, from: usize) -> Result<Excerpt, Failure> {
        let path = self.permitted_path(permitted)?;
        let large = self.file(path)?;
        let large = large.filter(|file| file.about().is_ok_and(|about| about.bytes > FILE_BYTES));
        if let Some(file) = large {
            return Excerpt::of_large(file.into_file(), path, from);
        }
        let file = self.text(path)?;
        Ok(Excerpt {
            form: file.describe_form(),
            ..Excerpt::from_line(&to_lf(&file.text), from)
        })
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

    /// Prepares a whole new content of a file, which keeps the encoding and the ends of lines that it has. Nothing is written.
    ///
    /// # Errors
    /// [`Failure`] for a path that cannot be written here, or a content that is too large or has letters that the encoding lacks.
    pub fn prepare_write(&self, path: &str, content: &str) -> Result<Change, Failure> {
        let path = self.relative(path)?;
        if path.file_name().is_none() {
            return Err(Failure::new("the path names no file"));
        }
        let Some(bytes) = self.bytes(&path)? else {
            return change(path, None, content);
        };
        let before = changeable_text(&path, &bytes)?;
        let content = before.with_own_line_ends(content);
        change(path, Some((bytes.as_slice(), &before)), &content)
    }

    /// Prepares the replacement of a text that is in a file exactly once. Nothing is written.
    ///
    /// # Errors
    /// [`Failure`], with how often the text is there.
    pub fn prepare_edit(&self, path: &str, old: &str, new: &str) -> Result<Change, Failure> {
        let path = self.relative(path)?;
        let bytes = self.bytes(&path)?.ok_or_else(|| missing(&path))?;
        let before = changeable_text(&path, &bytes)?;
        if old.is_empty() {
            return Err(Failure::new("there is no text to replace"));
        }
        match before.replace_once(old, new) {
            Ok(after) => change(path, Some((bytes.as_slice(), &before)), &after),
            Err(0) => Err(Failure(format!(
                "the text to replace is not in {}; read the file again",
                path.display()
            ))),
            Err(times) => Err(Failure(format!(
                "the text to replace is {times} times in {}; give more of the lines around it",
                path.display()
            ))),
        }
    }

    /// Returns the content that a change replaces, with the file's permissions; `None` if the file is new.
    ///
    /// # Errors
    /// [`Failure`] if the file is no longer as it was when the change was prepared.
    pub fn former_content(&self, change: &Change) -> Result<Option<(Vec<u8>, u32)>, Failure> {
        let now = self.content(&change.path)?;
        if now.as_ref().map(|(bytes, _)| digest(bytes)) == change.before {
            Ok(now)
        } else {
            let why = "has changed since it was read; read it again";
            Err(fault(&change.path, why))
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
        self.former_content(change)?;
        let path = &change.path;
        self.create_parent(path)?
            .replace(path.file_name().unwrap_or_default(), &*change.after, NEW)
            .map_err(|error| failure(path, &error))
    }

    /// Puts files back to what they were before a run, or, if one has changed since and `force` is not set, none of them.
    ///
    /// # Errors
    /// [`NotUndone`].
    pub fn undo(&self, files: &[FormerFile], force: bool) -> Result<(), NotUndone> {
        let (mut to_restore, mut changed) = (Vec::new(), Vec::new());
        for file in files {
            let now = self.bytes(&file.path);
            if now.as_ref().is_ok_and(|now| *now == file.before) {
                continue;
            }
            let is_as_left =
                now.is_ok_and(|now| now.is_some() && now.as_deref().map(digest) == file.after);
            if !is_as_left {
                changed.push(file.path.clone());
            }
            to_restore.push(file);
        }
        if !force && !changed.is_empty() {
            return Err(NotUndone::ChangedSince(changed));
        }
        let restored = to_restore.into_iter().map(|file| self.restore(file, force));
        let left: Vec<_> = restored.filter_map(Result::err).collect();
        if left.is_empty() {
            return Ok(());
        }
        Err(NotUndone::Left(left))
    }

    /// Without `force`, a file that is there keeps its permissions: no edit changes them, so they are its owner's.
    fn restore(&self, file: &FormerFile, force: bool) -> Result<(), Failure> {
        let path = &file.path;
        let name = path.file_name().unwrap_or_default();
        // What the system says of removing one differs.
        let is_folder = |there: OpenFile| there.about().is_ok_and(|about| about.is_folder);
        if self.0.inside(path).is_ok_and(is_folder) {
            return Err(fault(path, "is a folder now"));
        }
        let restored = match (&file.before, file.mode.filter(|_| force)) {
            (Some(content), Some(mode)) => {
                // Modes have 16 bits on macOS.
                let mode = RawMode::try_from(u64::from(mode)).map_or(PRIVATE, Mode::from_raw_mode);
                self.create_parent(path)?
                    .replace_as(name, content.as_slice(), mode)
            }
            (Some(content), None) => {
                self.create_parent(path)?
                    .replace(name, content.as_slice(), PRIVATE)
            }
            (None, _) => {
                let parent = self.0.inside(path.parent().unwrap_or(Path::new("")));
                parent.map_err(|error| refusal(path, error))?.remove(name)
            }
        };
        restored.map_err(|error| failure(path, &error))
    }

    /// Opens the folder of a file, with the folders on the way to it.
    fn create_parent(&self, path: &Path) -> Result<OpenFile, Failure> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = self.0.create_folder(parent, Mode::from_raw_mode(0o755));
        parent.map_err(|error| refusal(path, error))
    }

    fn permitted_path<'a>(&self, permitted: &'a PermittedAct) -> Result<&'a Path, Failure> {
        match permitted.act() {
            Act::Read { folder, path, .. } if folder == self.path() => Ok(path),
            Act::Read { .. } => Err(Failure::new("the file is of another folder")),
            _ => Err(Failure::new("this does not read a file")),
        }
    }

    /// The text of a file of this folder.
    fn text(&self, path: &Path) -> Result<FileText, Failure> {
        let bytes = self.bytes(path)?.ok_or_else(|| missing(path))?;
        text_of(path, &bytes)
    }

    /// The content of a file of this folder; `None` if there is no such file.
    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.content(path)?.map(|(bytes, _)| bytes))
    }

    /// Opens a file of this folder; `None` if there is no such file.
    fn file(&self, path: &Path) -> Result<Option<OpenFile>, Failure> {
        let opened = match self.0.inside(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| refusal(path, error))?,
        };
        match opened
            .about()
            .map_err(|error| failure(path, &error))?
            .is_file
        {
            true => Ok(Some(opened)),
            false => Err(fault(path, "is not a file")),
        }
    }

    /// As [`Self::bytes`], with the file's permissions.
    fn content(&self, path: &Path) -> Result<Option<(Vec<u8>, u32)>, Failure> {
        let failed = |error| failure(path, &error);
        let Some(opened) = self.file(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let mode = opened.permissions().map_err(failed)?;
        let mut file = opened.into_file().take(FILE_BYTES + 1);
        file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES {
            let most = FILE_BYTES >> 20;
            let why =
                format!("is larger than {most} MiB, the most that is changed here; use a command");
            return Err(fault(path, &why));
        }
        Ok(Some((bytes, mode)))
    }
}

/// Returns the SHA-256 of a file's content.
pub fn digest(content: &[u8]) -> Digest {
    Sha256::digest(content).into()
}

fn text_of(path: &Path, bytes: &[u8]) -> Result<FileText, Failure> {
    FileText::decode(bytes).ok_or_else(|| fault(path, "is not text"))
}

/// The text of a file, if all its bytes can be written back.
fn changeable_text(path: &Path, bytes: &[u8]) -> Result<FileText, Failure> {
    let text = text_of(path, bytes)?;
    if text.is_exact {
        return Ok(text);
    }
    let (path, form) = (path.display(), text.form.name());
    Err(Failure(format!(
        "some bytes of {path} are no letters of {form}, so a change here would lose them; change it with a command"
    )))
}

/// Says something of a path, as the model knows it.
pub(super) fn fault(path: &Path, why: &str) -> Failure {
    Failure(format!("{} {why}", path.display()))
}

fn missing(path: &Path) -> Failure {
    fault(path, "does not exist")
}

fn refusal(path: &Path, error: OpenError) -> Failure {
    match error {
        OpenError::System { error, .. } => failure(path, &error),
        OpenError::Link { .. } => {
            let why = "is a symbolic link or lies behind one, which is not followed";
            fault(path, why)
        }
        OpenError::Elsewhere(_) | OpenError::NotAbsolute(_) => fault(path, "leads elsewhere"),
    }
}

pub(super) fn failure(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        _ => Failure(format!("{}: {}", path.display(), reason(error))),
    }
}

fn change(
    path: PathBuf,
    before: Option<(&[u8], &FileText)>,
    after: &str,
) -> Result<Change, Failure> {
    let form = before.map_or(TextForm::utf_8(false), |(_, text)| text.form);
    let content = form.encode(after).ok_or_else(|| {
        let form = form.name();
        let why = format!("is in {form}, which lacks letters of the new text; convert the file with a command first");
        fault(&path, &why)
    })?;
    if content.len() as u64 > FILE_BYTES {
        let (kib, most) = (content.len() / 1024, FILE_BYTES >> 20);
        return Err(Failure(format!(
            "the content has {kib} KiB, and at most {most} MiB are written"
        )));
    }
    if before.is_some_and(|(bytes, _)| bytes == content) {
        return Err(fault(&path, "already has this content"));
    }
    let diff = diff(&path, before.map(|(_, text)| text), after);
    if diff.len() > DIFF_BYTES {
        return Err(Failure(format!(
            "this changes too much of {} to be read before it is allowed; use edit_file, in several steps",
            path.display()
        )));
    }
    Ok(Change {
        path,
        before: before.map(|(bytes, _)| digest(bytes)),
        after: content.into(),
        diff,
    })
}

/// Renders a unified diff, with the encoding if it is not UTF-8.
fn diff(path: &Path, before: Option<&FileText>, after: &str) -> String {
    let encoding = before.map(|before| before.form.name());
    let encoding = encoding.filter(|name| *name != "UTF-8");
    let encoding = encoding.map_or_else(String::new, |name| format!(" ({name})"));
    let name = |side: char| format!("{side}/{}{encoding}", path.display());
    let old = before.map_or_else(|| "/dev/null".to_owned(), |_| name('a'));
    let (before, after) = match before {
        Some(before) => to_compare(&before.text, after),
        None => ("".into(), after.into()),
    };
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(&*before, &*after);
    let mut unified = diff.unified_diff();
    unified
        .context_radius(3)
        .header(&old, &name('b'))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        consent::{Answer, Decision, General, Grants, Scope, decide},
        tools::excerpt::READ_CHARACTERS,
    };
    use std::{fs, os::unix::fs::PermissionsExt, os::unix::fs::symlink};
    use tierbar_skip::{
        Call, denying,
        race::{Found, LINKS, race},
    };

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
            self.folder.read_excerpt(&permitted(act), from)
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
        assert_eq!((whole.lines, whole.next_line), (Some(3), None));
        let absolute = place.folder.path().join("./src/a.txt");
        let rest = place.read(absolute.to_str().unwrap(), 3).unwrap();
        assert_eq!((rest.text.as_str(), rest.first_line), ("three\n", 3));
        let lines = "x".repeat(99) + "\n";
        fs::write(place.folder.path().join("long"), lines.repeat(1_000)).unwrap();
        let part = place.read("long", 1).unwrap();
        let next = part.next_line.unwrap();
        assert_eq!(part.text.len(), (next - 1) * 100);
        assert_eq!(place.read("long", next).unwrap().first_line, next);
        let line = "ä".repeat(READ_CHARACTERS + 1);
        fs::write(place.folder.path().join("line"), &line).unwrap();
        let begun = place.read("line", 1).unwrap();
        let rest = place.read("line", begun.next_line.unwrap()).unwrap();
        assert_eq!([begun.text.as_str(), &rest.text].concat(), line);
        let note = begun.render(Path::new("line"));
        let end = "ä\n[… the line goes on …]\n[line has 3 lines; read on from line 3]";
        assert!(note.ends_with(end), "{note}");
        fs::write(place.folder.path().join("empty"), "").unwrap();
        assert_eq!(place.read("empty", 1).unwrap().lines, Some(0));
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
            let change = place.folder.prepare_write(path, "x");
            // A new file in the folder `~` is harmless.
            assert_eq!(change.is_ok(), path == "~/x", "{path:?}: {change:?}");
        }
        let outside = place.outside.join("token");
        assert!(place.read(outside.to_str().unwrap(), 1).is_err());
        assert!(place.list("folder").is_err());
        assert!(place.list("../outside").is_err());
        assert_eq!(place.list("").unwrap(), ["folder", "inner", "link", "src/"]);
    }

    /// As macOS does for what its privacy settings deny, whichever call it refuses.
    #[test]
    fn what_the_system_denies_is_neither_empty_nor_new() {
        let place = place();
        let root = place.folder.path();
        for call in [Call::Open, Call::ReadNames, Call::Stat] {
            let Some(listed) = denying(call, || place.list("src")) else {
                return tierbar_skip::skip("no call can be denied to a thread here");
            };
            let denied = Failure::new("src: permission denied");
            assert_eq!(listed, Err(denied), "{call:?}");
        }
        let opened = denying(Call::Open, || {
            let (read, write) = (
                place.read("src/a.txt", 1),
                place.folder.prepare_write("src/a.txt", "x"),
            );
            [Folder::open(root).err(), read.err(), write.err()]
        });
        let Some(refusals) = opened else {
            return tierbar_skip::skip("no call can be denied to a thread here");
        };
        let root = root.display().to_string();
        let expected = [root.as_str(), "src/a.txt", "src/a.txt"]
            .map(|path| Some(Failure(format!("{path}: permission denied"))));
        assert_eq!(refusals, expected);
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let place = place();
        let path = place.folder.path().to_owned();
        fs::write(path.join("binary"), b"a\0b").unwrap();
        let mut mkfifo = std::process::Command::new("mkfifo");
        let made = mkfifo.arg(path.join("pipe")).status();
        assert!(made.unwrap().success());
        for name in ["binary", "pipe", "src"] {
            assert!(place.read(name, 1).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_of_any_size_is_read_in_parts() {
        let place = place();
        let write = |name: &str, text: &[u8]| fs::write(place.folder.path().join(name), text);
        let line = format!("{}\n", "x".repeat(99));
        let lines = FILE_BYTES as usize / line.len() + 100;
        write("large", (line.repeat(lines) + "last ü\n").as_bytes()).unwrap();
        let first = place.read("large", 1).unwrap();
        assert_eq!((first.first_line, first.lines), (1, None));
        let next = first.next_line.unwrap();
        assert_eq!(first.text, line.repeat(next - 1));
        let note = first.render(Path::new("large"));
        assert!(note.ends_with(&format!("[large goes on; read on from line {next}]")));
        let second = place.read("large", next).unwrap();
        let after = second.next_line.unwrap();
        assert_eq!((second.first_line, after), (next, 2 * next - 1));
        let last = place.read("large", lines).unwrap();
        assert_eq!(last.text, format!("{line}last ü\n"));
        assert_eq!((last.lines, last.next_line), (Some(lines + 1), None));
        for beyond in [lines + 2, usize::MAX] {
            let error = place.read("large", beyond).unwrap_err();
            assert_eq!(error, Failure(format!("large has {} lines", lines + 1)));
        }
        let change = place.folder.prepare_edit("large", "last", "x");
        assert!(change.unwrap_err().0.contains("use a command"));
        let half = FILE_BYTES as usize / 2;
        let line = format!("x{}", "ü".repeat(half));
        write("line", line.as_bytes()).unwrap();
        let begun = place.read("line", 1).unwrap();
        let after = place.read("line", begun.next_line.unwrap()).unwrap();
        let both = begun.text + &after.text;
        assert_eq!(both.chars().count(), 2 * READ_CHARACTERS);
        assert!(line.starts_with(&both) && after.form.is_none());
        write("wide", &[&b"\xff\xfe"[..], &b"a\0".repeat(half)].concat()).unwrap();
        assert!(place.read("wide", 1).unwrap_err().0.contains("UTF-16"));
        write("binary", &vec![0; 2 * half + 1]).unwrap();
        assert!(place.read("binary", 1).is_err());
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
    fn a_change_keeps_the_form_of_a_file() {
        let place = place();
        let folder = &place.folder;
        let latin = b"# coding: latin-1\r\nname = 'J\xfcrgen'\r\n";
        let wide = b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0".as_slice();
        let marked = b"\xef\xbb\xbfa\r\nb\r\n".as_slice();
        for (before, old, new, after) in [
            (
                latin.as_slice(),
                "name",
                "# ä\nname",
                b"# coding: latin-1\r\n# \xe4\r\nname = 'J\xfcrgen'\r\n".as_slice(),
            ),
            (wide, "a\nb", "a", b"\xff\xfea\0\r\0\n\0".as_slice()),
            (marked, "a\n", "ż\n", "\u{feff}ż\r\nb\r\n".as_bytes()),
        ] {
            fs::write(folder.path().join("file"), before).unwrap();
            let change = folder.prepare_edit("file", old, new).unwrap();
            assert!(!change.diff.contains('\r'), "{:?}", change.diff);
            place.write(change).unwrap();
            assert_eq!(fs::read(folder.path().join("file")).unwrap(), after);
        }
        let whole = folder.prepare_write("file", "x\ny\n").unwrap();
        assert_eq!(&*whole.after, "\u{feff}x\r\ny\r\n".as_bytes());
        fs::write(folder.path().join("file"), latin).unwrap();
        let excerpt = place.read("file", 2).unwrap();
        assert_eq!(excerpt.text, "name = 'Jürgen'\n");
        assert_eq!(excerpt.form.as_deref(), Some("in windows-1252"));
        let change = folder.prepare_edit("file", "Jürgen", "Józef").unwrap();
        assert!(
            change.diff.starts_with("--- a/file (windows-1252)\n"),
            "{}",
            change.diff
        );
        let error = folder.prepare_edit("file", "Jürgen", "Żółw").unwrap_err();
        assert!(
            error.0.contains("windows-1252, which lacks letters"),
            "{error}"
        );
        let damaged = ["Grüße aus München\n".repeat(5).as_bytes(), b"\xff"].concat();
        fs::write(folder.path().join("file"), damaged).unwrap();
        assert!(
            place
                .read("file", 1)
                .unwrap()
                .form
                .unwrap()
                .contains("cannot be changed")
        );
        for error in [
            folder.prepare_edit("file", "aus", "x").unwrap_err(),
            folder.prepare_write("file", "x").unwrap_err(),
        ] {
            assert!(error.0.contains("no letters of UTF-8"), "{error}");
        }
    }

    #[test]
    fn a_large_file_is_edited_and_read_to_its_end() {
        let place = place();
        let lines = |changed: usize| -> String {
            let line = |at: usize| {
                if at == changed {
                    "new\n".to_owned()
                } else {
                    format!("line {at}\n")
                }
            };
            (1..=300_000).map(line).collect()
        };
        let file = place.folder.path().join("large");
        fs::write(&file, lines(0)).unwrap();
        assert!(fs::metadata(&file).unwrap().len() > 3 << 20);
        let change = place
            .folder
            .prepare_edit("large", "line 299999\n", "new\n")
            .unwrap();
        assert!(change.diff.len() < 200, "{}", change.diff);
        place.write(change).unwrap();
        assert!(fs::read_to_string(&file).unwrap() == lines(299_999));
        let end = place.read("large", 299_998).unwrap();
        assert_eq!(end.text, "line 299998\nnew\nline 300000\n");
        // A part is as much as the model can be shown.
        let part = place.read("large", 1).unwrap();
        let marked = crate::marking::mark("read_file", &part.text, "nonce");
        assert!(!marked.contains("left out"));
    }

    fn former(path: &str, before: Option<&str>, after: Option<&str>) -> FormerFile {
        FormerFile {
            path: path.into(),
            before: before.map(|text| text.as_bytes().to_vec()),
            mode: None,
            after: after.map(|text| digest(text.as_bytes())),
        }
    }

    #[test]
    fn files_are_put_back_unless_they_have_changed_since() {
        let place = place();
        let path = place.folder.path().to_owned();
        let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        write("a", "new a");
        write("made", "made");
        write("same", "old");
        let files = [
            former("a", Some("old a"), Some("new a")),
            former("made", None, Some("made")),
            // It was never written.
            former("same", Some("old"), None),
            former("gone", None, Some("removed")),
        ];
        write("made", "edited since");
        let refused = place.folder.undo(&files, false);
        assert_eq!(refused, Err(NotUndone::ChangedSince(vec!["made".into()])));
        assert_eq!(read("a").as_deref(), Some("new a"));
        write("made", "made");
        assert_eq!(place.folder.undo(&files, false), Ok(()));
        assert_eq!((read("a").as_deref(), read("made")), (Some("old a"), None));
        // Once more changes nothing.
        assert_eq!(place.folder.undo(&files, false), Ok(()));
        // What was deleted since comes back by force alone.
        let deleted = [former("src/b", Some("b"), Some("new b"))];
        assert!(place.folder.undo(&deleted, false).is_err());
        assert_eq!(place.folder.undo(&deleted, true), Ok(()));
        assert_eq!(read("src/b").as_deref(), Some("b"));
    }

    #[test]
    fn an_undone_file_has_its_permissions_again() {
        let place = place();
        let file = place.folder.path().join("src/a.txt");
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o600, 0o755] {
            set_mode(mode);
            let change = place.folder.prepare_edit("src/a.txt", "two", "2").unwrap();
            let (content, kept) = place.folder.former_content(&change).unwrap().unwrap();
            place.write(change).unwrap();
            let former = [FormerFile {
                mode: Some(kept),
                ..former("src/a.txt", str::from_utf8(&content).ok(), None)
            }];
            set_mode(0o644);
            assert_eq!(place.folder.undo(&former, true), Ok(()));
            let is = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(is(), mode);
            fs::remove_file(&file).unwrap();
            assert_eq!(place.folder.undo(&former, true), Ok(()));
            assert_eq!(is(), mode, "it was deleted");
            fs::write(&file, "2").unwrap();
            set_mode(0o400);
            let former = former.map(|file| FormerFile {
                after: Some(digest(b"2")),
                ..file
            });
            assert_eq!(place.folder.undo(&former, false), Ok(()));
            assert_eq!(is(), 0o400, "the owner has changed it since");
            set_mode(0o600);
        }
    }

    #[test]
    fn an_undo_goes_on_after_a_file_that_is_a_folder_now() {
        let place = place();
        let path = place.folder.path().to_owned();
        for folder in ["a", "made"] {
            fs::create_dir(path.join(folder)).unwrap();
        }
        fs::write(path.join("b"), "new b").unwrap();
        let files = [
            former("a", Some("old a"), Some("new a")),
            former("made", None, Some("made")),
            former("b", Some("old b"), Some("new b")),
        ];
        let left = ["a is a folder now", "made is a folder now"].map(Failure::new);
        let undone = place.folder.undo(&files, true);
        assert_eq!(undone, Err(NotUndone::Left(left.to_vec())));
        assert_eq!(fs::read(path.join("b")).unwrap(), b"old b");
        assert!(path.join("a").is_dir() && path.join("made").is_dir());
    }

    #[test]
    fn an_undo_follows_no_link_and_leaves_no_folder() {
        let place = place();
        let links = [
            former("folder/token", None, Some("the token")),
            former("link", Some("x"), Some("the token")),
        ];
        assert!(place.folder.undo(&links, false).is_err());
        assert!(place.folder.undo(&links[..1], true).is_err());
        // The link itself is replaced.
        assert_eq!(place.folder.undo(&links[1..], true), Ok(()));
        let outside = [former("../outside/token", None, None)];
        assert!(place.folder.undo(&outside, true).is_err());
        assert_eq!(fs::read(place.outside.join("token")).unwrap(), b"the token");
    }

    #[test]
    fn a_new_file_is_written_with_its_folders() {
        let place = place();
        let change = place.folder.prepare_write("new/deep/file", "x\n");
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
        let change = place.folder.prepare_write("new", "x").unwrap();
        symlink(place.outside.join("token"), path.join("new")).unwrap();
        assert!(place.write(change).is_err());
        let change = place.folder.prepare_write("later/new", "x").unwrap();
        symlink(&place.outside, path.join("later")).unwrap();
        assert!(place.write(change).is_err());
        assert_eq!(fs::read(place.outside.join("token")).unwrap(), b"the token");
        assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
    }

    /// What an allowed command could do while files are read and written.
    #[test]
    fn a_folder_in_whose_place_a_link_appears_is_not_left() {
        let place = place();
        let (outside, src) = (&place.outside, place.folder.path().join("src"));
        fs::write(outside.join("a.txt"), "secret").unwrap();
        fs::write(src.join("a.txt"), "own").unwrap();
        let is_outside_changed = || {
            let names = fs::read_dir(outside).unwrap().count();
            names != 2 || fs::read(outside.join("a.txt")).unwrap() != b"secret"
        };
        let found_in = |text: Result<String, Failure>| match text {
            _ if is_outside_changed() => Found::Foreign,
            Ok(text) if text.starts_with("own") || text == "a.txt" => Found::Own,
            Ok(_) => Found::Foreign,
            Err(_) => Found::Refused,
        };
        let mut number = 0;
        race(
            &LINKS,
            &src,
            outside,
            &mut [
                &mut || found_in(place.read("src/a.txt", 1).map(|read| read.text)),
                &mut || found_in(place.list("src").map(|names| names.join(" "))),
                &mut || {
                    number += 1;
                    let text = format!("own {number}");
                    let change = place.folder.prepare_write("src/a.txt", &text);
                    found_in(change.and_then(|change| place.write(change)).map(|()| text))
                },
                &mut || {
                    let former = former("src/a.txt", Some("own"), None);
                    let undone = place.folder.restore(&former, true);
                    found_in(undone.map(|()| "own".to_owned()))
                },
                &mut || {
                    // There is none in the folder itself.
                    let made = former("src/token", None, None);
                    let _refused = place.folder.restore(&made, true);
                    let opened = Folder::open(&src).and_then(|src| src.text(Path::new("a.txt")));
                    found_in(opened.map(|file| file.text))
                },
            ],
        );
    }

    #[test]
    fn a_second_name_of_a_file_outside_keeps_its_content() {
        let place = place();
        let hard = place.folder.path().join("hard");
        fs::hard_link(place.outside.join("token"), &hard).unwrap();
        let change = place.folder.prepare_write("hard", "x").unwrap();
        place.write(change).unwrap();
        assert_eq!(fs::read(hard).unwrap(), b"x");
        assert_eq!(fs::read(place.outside.join("token")).unwrap(), b"the token");
    }

    #[test]
    fn a_change_is_for_its_folder() {
        let (one, other) = (place(), place());
        let change = one.folder.prepare_write("new", "x").unwrap();
        let act = Act::Write {
            folder: one.folder.path().to_owned(),
            change,
        };
        assert!(other.folder.write(&permitted(act)).is_err());
    }
}
