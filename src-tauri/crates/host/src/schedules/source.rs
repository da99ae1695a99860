//! The source of a schedule: a file, the changes in a folder, or a URL, limited in size and number.

use super::outputs::Outputs;
use crate::{
    blocking::blocking,
    sources::{self, expanded, unreadable},
};
use std::{
    cmp::Reverse,
    ffi::OsString,
    io::{Read, Seek, SeekFrom},
    path::Path,
};
use tierbar_core::{Code, Error, config::is_url};
use tierbar_fetch::{Get, Url, Web};
use tierbar_nofollow::{About, Entry, Opened};

/// Half of the largest request; a night is too short for more.
const MOST_BYTES: usize = 16 << 20;
const MOST_FILES: usize = 1000;
/// The most names to check.
const MOST_NAMES: usize = 100_000;
/// The first run of a folder reads what has changed in the last day.
const FIRST_SECONDS: i64 = 24 * 3600;
/// In a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// What was read.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Material {
    pub(super) text: String,
    /// Such as `3 files, 12 KiB`.
    pub(super) words: String,
}

/// Reads the source; returns `None` if nothing has changed.
///
/// # Errors
/// `NotFound`, `AccessDenied` or `Storage` for what cannot be read, `BadRequest` for what is no text; those of [`Web::get`].
pub(super) async fn read(
    source: &str,
    to: &str,
    covers_to: Option<i64>,
    now: i64,
    web: &Web,
) -> Result<Option<Material>, Error> {
    if is_url(source) {
        let url = Url::parse(source).map_err(|error| {
            Error::new(
                Code::BadRequest,
                format!("the source is not a URL: {error}"),
            )
        })?;
        let bytes = web.get(Get::new(url)).await?.bytes(MOST_BYTES).await?;
        return Ok(Some(to_material(&bytes, "1 document")));
    }
    let path = expanded(source);
    let own = (!is_url(to)).then(|| Outputs::of(to));
    let since = covers_to.unwrap_or(now - FIRST_SECONDS);
    blocking("reading a schedule's source", move || {
        let opened = sources::open(&path)?;
        let about = opened.about();
        if about.map_err(|error| unreadable(&path, &error))?.is_folder {
            return read_changed_files(&opened, since, own.as_ref());
        }
        if own.is_some_and(|own| own.is(&path)) {
            let message = format!("{} is the file that the schedule writes", path.display());
            return Err(Error::new(Code::BadRequest, message));
        }
        Ok(Some(to_material(&read_tail(opened, MOST_BYTES)?, "1 file")))
    })
    .await
}

fn to_material(bytes: &[u8], what: &str) -> Material {
    Material {
        // An invalid byte affects only its own line.
        text: String::from_utf8_lossy(bytes).into_owned(),
        words: format!("{what}, {}", format_size(bytes.len())),
    }
}

/// Returns the files of the folder, without subfolders, that have changed since then: as many of the newest as fit, by
/// name.
fn read_changed_files(
    folder: &Opened,
    since: i64,
    own: Option<&Outputs>,
) -> Result<Option<Material>, Error> {
    let unreadable = |error| unreadable(folder.path(), &error);
    let own = own.filter(|own| own.is_in(folder.path()));
    let since = since.saturating_mul(NANOSECONDS);
    let mut files: Vec<(OsString, About)> = Vec::new();
    for entry in folder.entries().map_err(unreadable)?.take(MOST_NAMES) {
        let Entry { name, about } = entry.map_err(unreadable)?;
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if own.is_some_and(|own| own.wrote(&name)) {
            continue;
        }
        if !hidden && about.is_file && about.modified >= since && about.bytes > 0 {
            files.push((name, about));
        }
    }
    files.sort_by_key(|(_, about)| Reverse(about.modified));
    let (mut parts, mut left, mut skipped) = (Vec::new(), MOST_BYTES, 0usize);
    for (name, about) in files {
        // A file beyond the total limit is read from its end, as if it were alone.
        let fits = about.bytes <= left as u64 || about.bytes > MOST_BYTES as u64;
        if parts.len() == MOST_FILES || left == 0 || !fits {
            skipped += 1;
            continue;
        }
        // A file that vanishes or cannot be read counts as left out.
        let opened = folder.inside(Path::new(&name)).ok();
        let bytes = opened.and_then(|opened| read_tail(opened, left).ok());
        match bytes {
            Some(bytes) if !bytes.is_empty() && !bytes.contains(&0) => {
                left -= bytes.len().min(left);
                parts.push((name, bytes));
            }
            _ => skipped += 1,
        }
    }
    if parts.is_empty() && skipped == 0 {
        return Ok(None);
    }
    if parts.is_empty() {
        let message = format!(
            "{} changed in {}, but none is a text of at most {}",
            file_count(skipped),
            folder.path().display(),
            format_size(MOST_BYTES)
        );
        return Err(Error::new(Code::BadRequest, message));
    }
    parts.sort();
    let mut text = String::new();
    let count = parts.len();
    for (_, bytes) in &parts {
        text += &String::from_utf8_lossy(bytes);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let mut words = format!("{}, {}", file_count(count), format_size(text.len()));
    if skipped > 0 {
        words += &format!("; skipped {skipped} that were too many, too large or not text");
    }
    Ok(Some(Material { text, words }))
}

/// Returns the file's last bytes, from the start of a line if it is longer than the limit.
fn read_tail(opened: Opened, most: usize) -> Result<Vec<u8>, Error> {
    let path = opened.path().to_owned();
    let unreadable = |error| unreadable(&path, &error);
    let about = opened.about().map_err(unreadable)?;
    if !about.is_file {
        let message = format!("{} is neither a file nor a folder", path.display());
        return Err(Error::new(Code::BadRequest, message));
    }
    let mut file = opened.into_file();
    let beyond = about.bytes.saturating_sub(most as u64);
    file.seek(SeekFrom::Start(beyond)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if beyond > 0 {
        let line = bytes.iter().position(|&byte| byte == b'\n');
        bytes.drain(..line.map_or(0, |at| at + 1));
    }
    Ok(bytes)
}

fn file_count(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn format_size(bytes: usize) -> String {
    match bytes {
        0..=1023 => format!("{bytes} bytes"),
        1024..=1_048_575 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::{Found, race};
    use crate::sources::tests::tempdir;
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        time::{Duration, SystemTime, UNIX_EPOCH},
    };

    fn read_folder(
        folder: &Path,
        since: i64,
        own: Option<&Outputs>,
    ) -> Result<Option<Material>, Error> {
        read_changed_files(&sources::open(folder)?, since, own)
    }

    fn put(path: &Path, bytes: &[u8], at: i64) {
        fs::write(path, bytes).unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(at.unsigned_abs());
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(at)
            .unwrap();
    }

    #[test]
    fn a_folder_yields_its_changed_files_by_name() {
        let folder = tempdir();
        let path = |name: &str| folder.path().join(name);
        put(&path("b.log"), b"b", 2000);
        put(&path("a.log"), b"a\n", 3000);
        put(&path("old.log"), b"old", 1999);
        put(&path(".hidden"), b"hidden", 3000);
        put(&path("image"), b"\0png", 3000);
        put(&path("empty"), b"", 3000);
        fs::create_dir(path("inside")).unwrap();
        put(&path("inside/c.log"), b"c", 3000);
        symlink("/etc/passwd", path("link")).unwrap();
        let material = read_folder(folder.path(), 2000, None).unwrap().unwrap();
        assert_eq!(material.text, "a\nb\n");
        assert_eq!(
            material.words,
            "2 files, 4 bytes; skipped 1 that were too many, too large or not text"
        );
        assert_eq!(read_folder(folder.path(), 4000, None).unwrap(), None);
        fs::remove_file(path("a.log")).unwrap();
        let error = read_folder(folder.path(), 3000, None).unwrap_err();
        assert!(error.message.contains("1 file "), "{error}");
    }

    #[test]
    fn the_oldest_files_beyond_the_limit_are_reported() {
        let folder = tempdir();
        let path = |name: &str| folder.path().join(name);
        put(&path("large"), &vec![b'x'; MOST_BYTES - 2], 3000);
        put(&path("a"), b"abc", 2000);
        put(&path("b"), b"b", 2500);
        let material = read_folder(folder.path(), 0, None).unwrap().unwrap();
        assert!(material.text.starts_with("b\nxxx"));
        assert_eq!(
            material.words,
            "2 files, 16 MiB; skipped 1 that were too many, too large or not text"
        );
    }

    #[test]
    fn a_file_beyond_the_total_limit_is_read_from_its_end() {
        let folder = tempdir();
        let path = |name: &str| folder.path().join(name);
        let mut bytes = vec![b'x'; MOST_BYTES];
        bytes.extend(b"\nlast\n");
        put(&path("large.log"), &bytes, 3000);
        let material = read_folder(folder.path(), 0, None).unwrap().unwrap();
        assert_eq!(
            (material.text.as_str(), material.words.as_str()),
            ("last\n", "1 file, 5 bytes")
        );
        // The newer file comes first; the rest of the limit goes to the large one.
        put(&path("new.log"), &vec![b'y'; MOST_BYTES - 8], 4000);
        let material = read_folder(folder.path(), 0, None).unwrap().unwrap();
        assert!(material.text.starts_with("last\nyyy"));
    }

    #[test]
    fn a_result_is_never_a_source_by_any_path() {
        let folder = tempdir();
        let inside = folder.path().join("x");
        fs::create_dir(&inside).unwrap();
        symlink(&inside, folder.path().join("link")).unwrap();
        let put = |name: &str| put(&inside.join(name), format!("{name}\n").as_bytes(), 3000);
        for name in ["2026-11-22.md", "brief of 2026-11-21.md", "notes.md"] {
            put(name);
        }
        let read = |to: String| {
            read_folder(&inside, 0, Some(&Outputs::of(&to)))
                .unwrap()
                .unwrap()
                .text
        };
        let at = folder.path().display();
        for to in ["x/./{date}.md", "x//{date}.md", "link/{date}.md"] {
            assert_eq!(
                read(format!("{at}/{to}")),
                "brief of 2026-11-21.md\nnotes.md\n",
                "{to}"
            );
        }
        let to = format!("{at}/link/notes.md");
        assert_eq!(read(to), "2026-11-22.md\nbrief of 2026-11-21.md\n");
        for elsewhere in ["y/{date}.md", "{date}.md"] {
            let all = read(format!("{at}/{elsewhere}"));
            assert_eq!(all.lines().count(), 3, "{elsewhere}");
        }
    }

    fn exchange(time: Duration) {
        let root = tempdir();
        let path = root.path();
        let (logs, link) = (path.join("logs"), path.join("link"));
        for (folder, text) in [("logs", b"own"), ("private", b"odd")] {
            fs::create_dir(path.join(folder)).unwrap();
            put(&path.join(folder).join("a"), text, 3000);
        }
        symlink(path.join("private"), &link).unwrap();
        race(time, &logs, &link, || match read_folder(&logs, 0, None) {
            Ok(Some(material)) if material.text != "own\n" => Found::Foreign,
            Ok(_) => Found::Own,
            Err(_) => Found::Refused,
        });
    }

    #[test]
    fn a_folder_exchanged_with_a_link_is_not_left() {
        exchange(Duration::from_millis(400));
    }

    #[test]
    #[ignore = "slow"]
    fn a_folder_exchanged_with_a_link_for_long_is_not_left() {
        exchange(Duration::from_secs(30));
    }

    #[tokio::test]
    async fn the_last_lines_of_a_too_large_file_are_read() {
        let folder = tempdir();
        let path = folder.path().join("log");
        let mut bytes = vec![b'x'; MOST_BYTES];
        bytes.extend(b"\nlast\n");
        fs::write(&path, &bytes).unwrap();
        let web = Web::new(tierbar_fetch::WebOptions::default()).unwrap();
        let read = |place: String| {
            let web = web.clone();
            async move { super::read(&place, "/elsewhere", None, 0, &web).await }
        };
        let material = read(path.display().to_string()).await.unwrap().unwrap();
        assert_eq!(material.text, "last\n");
        let error = read(folder.path().join("none").display().to_string())
            .await
            .unwrap_err();
        assert!(error.message.contains("cannot be read"), "{error}");
        assert_eq!(error.code, Code::NotFound);
        let error = read("/dev/zero".to_owned()).await.unwrap_err();
        assert!(
            error.message.contains("neither a file nor a folder"),
            "{error}"
        );
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let now = i64::try_from(now).unwrap();
        let folder = folder.path().display().to_string();
        assert!(
            super::read(&folder, "/elsewhere", Some(now + 60), now, &web)
                .await
                .unwrap()
                .is_none()
        );
    }
}
