//! The source of a schedule: a file, the changes in a folder, or a URL, limited in size and number.

use super::outputs::Outputs;
use crate::{
    documents::text::{Contents, read_document},
    own_data::OwnData,
    sources::{self, expanded, unreadable},
};
use std::{
    cmp::Reverse,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Code, Error, config::is_url, documents::FileText};
use tierbar_documents::{extraction::to_file, plain_text};
use tierbar_fetch::{Get, Url, Web, blocking};
use tierbar_nofollow::{Entry, OpenError, OpenFile, reason};

/// Half of the largest request; a night is too short for more.
const MOST_BYTES: usize = 16 << 20;
const MOST_FILES: usize = 1000;
const MOST_NAMES: usize = 100_000;
/// So much of a file tells a text from a document.
const HEAD: u64 = 64 << 10;
/// So many files are reported of which something is missing or may be wrong.
const MOST_NOTICES: usize = 3;
/// The first run of a folder reads what has changed in the last day.
const FIRST_SECONDS: i64 = 24 * 3600;
/// In a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// The program that reads documents, or why it is not there.
pub(super) type Extract = Result<PathBuf, Error>;

#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Material {
    pub(super) text: String,
    /// Such as `3 files, 12 KiB`.
    pub(super) words: String,
}

/// Reads the source; returns `None` if nothing has changed. Without `extract`, documents are not read.
///
/// # Errors
/// `NotFound`, `AccessDenied` or `Storage` for what cannot be read, `BadRequest` for what is no text; those of [`Web::get`].
pub(super) async fn read(
    source: &str,
    to: &str,
    covers_to: Option<i64>,
    now: i64,
    web: &Web,
    extract: Option<&Extract>,
) -> Result<Option<Material>, Error> {
    if is_url(source) {
        let url = Url::parse(source).map_err(|error| {
            let message = format!("the source is not a URL: {error}");
            Error::new(Code::BadRequest, message)
        })?;
        let answer = web.get(Get::new(url)).await?;
        let name = name_of_page(&answer.url, answer.content_type.as_deref());
        let bytes = answer.bytes(MOST_BYTES).await?;
        let path = name.clone();
        let contents = blocking(
            "reading a schedule's source",
            move || match Contents::of_text(&bytes, &path) {
                Some(text) => Ok(text),
                None => to_file(&path.display().to_string(), &bytes[..]).map(Contents::Document),
            },
        );
        let read = text_of(contents.await?, &name, extract).await?;
        return Ok(Some(to_material(read, &name, "1 document")));
    }
    let path = expanded(source);
    let own = (!is_url(to)).then(|| Outputs::of(to));
    let since = covers_to.unwrap_or(now - FIRST_SECONDS);
    let looked = blocking("reading a schedule's source", {
        let path = path.clone();
        move || {
            let opened = sources::open(&path)?;
            let about = opened.about();
            if about.map_err(|error| unreadable(&path, &error))?.is_folder {
                let files = changed_files(&opened, since, own.as_ref())?;
                return Ok(Err((opened, files)));
            }
            if own.is_some_and(|own| own.is(&path)) {
                let message = format!("{} is the file that the schedule writes", path.display());
                return Err(Error::new(Code::BadRequest, message));
            }
            contents(opened, MOST_BYTES).map(Ok)
        }
    });
    match looked.await? {
        Ok(contents) => {
            let read = text_of(contents, &path, extract).await?;
            Ok(Some(to_material(read, &path, "1 file")))
        }
        Err((folder, files)) => read_files(Arc::new(folder), files, extract).await,
    }
}

/// The name by which a page is read: that of its address, which may not say that it is HTML.
fn name_of_page(url: &Url, content_type: Option<&str>) -> PathBuf {
    let name = url.path().rsplit('/').find(|part| !part.is_empty());
    let name = PathBuf::from(name.unwrap_or("page"));
    match content_type.is_some_and(|kind| kind.contains("html")) {
        true => name.with_extension("html"),
        false => name,
    }
}

async fn text_of(
    contents: Contents,
    path: &Path,
    extract: Option<&Extract>,
) -> Result<FileText, Error> {
    match (contents, extract) {
        (Contents::Text(text), _) => Ok(text),
        (Contents::Document(file), Some(program)) => {
            read_document(program.clone(), file, path).await
        }
        (Contents::Document(_), None) => {
            let message = format!("{} is not a text of lines", path.display());
            Err(Error::new(Code::BadRequest, message))
        }
    }
}

fn to_material(read: FileText, path: &Path, what: &str) -> Material {
    let mut words = format!("{what}, {}", format_size(read.text.len()));
    if let Some(notice) = &read.notice {
        words += &notice_words(path, notice);
    }
    Material {
        text: read.text,
        words,
    }
}

fn notice_words(path: &Path, notice: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("; {name}: {}", notice.trim_end_matches('.'))
}

/// Returns the files of the folder, without subfolders, that have changed since then, the newest first, and what cannot be looked at.
fn changed_files(
    folder: &OpenFile,
    since: i64,
    own: Option<&Outputs>,
) -> Result<Vec<Entry>, Error> {
    let unreadable = |error| unreadable(folder.path(), &error);
    let own = own.filter(|own| own.is_in(folder.path()));
    let since = since.saturating_mul(NANOSECONDS);
    let mut files: Vec<Entry> = Vec::new();
    for entry in folder.entries().map_err(unreadable)?.take(MOST_NAMES) {
        let entry = entry.map_err(unreadable)?;
        let Entry { name, about, fault } = &entry;
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if own.is_some_and(|own| own.wrote(name)) {
            continue;
        }
        let changed = about.is_file && about.modified >= since && about.bytes > 0;
        if !hidden && (changed || fault.is_some()) {
            files.push(entry);
        }
    }
    files.sort_by_key(|entry| Reverse(entry.about.modified));
    Ok(files)
}

/// Reads as many of these files of the folder as fit, and returns their texts by name.
async fn read_files(
    folder: Arc<OpenFile>,
    files: Vec<Entry>,
    extract: Option<&Extract>,
) -> Result<Option<Material>, Error> {
    let (mut parts, mut left, mut skipped) = (Vec::new(), MOST_BYTES, 0_usize);
    let mut notices = Vec::new();
    for Entry { name, about, fault } in files {
        if let Some(error) = fault {
            notices.push(notice_words(Path::new(&name), &reason(&error)));
            continue;
        }
        // Reading it would download it.
        if about.in_cloud || parts.len() == MOST_FILES || left == 0 {
            skipped += 1;
            continue;
        }
        let path = PathBuf::from(&name);
        let opened = (Arc::clone(&folder), path.clone());
        let contents = blocking("reading a schedule's source", move || {
            let (folder, path) = opened;
            contents_inside(&folder, &path, left)
        });
        // A file that vanishes counts as left out.
        let read = match contents.await {
            Ok(Err(why)) => {
                notices.push(notice_words(&path, &why));
                continue;
            }
            Ok(Ok(contents)) => {
                let is_document = matches!(contents, Contents::Document(_));
                let read = text_of(contents, &path, extract).await.ok();
                read.filter(|read| !is_document || read.text.len() <= left)
            }
            Err(_) => None,
        };
        match read.filter(|read| !read.text.is_empty()) {
            Some(read) => {
                left = left.saturating_sub(read.text.len());
                parts.push((name, read));
            }
            None => skipped += 1,
        }
    }
    if parts.is_empty() && skipped == 0 {
        if notices.is_empty() {
            return Ok(None);
        }
        // Whether it has changed is not known: it is read next time.
        let (folder, more) = (folder.path().display(), notices.len() - 1);
        let message = match more {
            0 => format!("a file in {folder} cannot be read{}", notices[0]),
            more => format!(
                "files in {folder} cannot be read{}; and {more} more",
                notices[0]
            ),
        };
        return Err(Error::new(Code::AccessDenied, message)
            .hint("check that Tierbar may read them, or move them out of the folder"));
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
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut text = String::new();
    let count = parts.len();
    for (name, read) in parts {
        text += &read.text;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        notices.extend(
            read.notice
                .map(|notice| notice_words(Path::new(&name), &notice)),
        );
    }
    let mut words = format!("{}, {}", file_count(count), format_size(text.len()));
    if skipped > 0 {
        words += &format!("; skipped {skipped} that were too many, too large or not text");
    }
    let more = notices.len().saturating_sub(MOST_NOTICES);
    words.extend(notices.into_iter().take(MOST_NOTICES));
    if more > 0 {
        words += &format!("; and {more} more with notices");
    }
    Ok(Some(Material { text, words }))
}

/// As [`contents`], of a file in a folder; or why the system denies it.
fn contents_inside(
    folder: &OpenFile,
    path: &Path,
    room: usize,
) -> Result<Result<Contents, String>, Error> {
    match folder.inside(path) {
        Ok(opened) => contents(opened, room).map(Ok),
        Err(OpenError::System { error, .. }) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(Err(reason(&error)))
        }
        Err(error) => Err(Error::new(Code::NotFound, error.to_string())),
    }
}

/// Returns the text of a file, or the file if it is none. Of a text beyond the limit of all, it is its end, as far as there is room.
fn contents(opened: OpenFile, room: usize) -> Result<Contents, Error> {
    let path = opened.path().to_owned();
    let unreadable = |error: io::Error| unreadable(&path, &error);
    let about = opened.about().map_err(unreadable)?;
    if !about.is_file {
        let message = format!("{} is neither a file nor a folder", path.display());
        return Err(Error::new(Code::BadRequest, message));
    }
    OwnData::now().refuse(&path, &opened)?;
    let (mut file, mut head) = (opened.into_file(), Vec::new());
    (&mut file)
        .take(HEAD)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    if plain_text(&head, &path).is_some() {
        if about.bytes > room as u64 && about.bytes <= MOST_BYTES as u64 {
            let message = format!("{} is larger than {}", path.display(), format_size(room));
            return Err(Error::new(Code::PayloadTooLarge, message));
        }
        let tail = read_tail(&mut file, about.bytes, room).map_err(unreadable)?;
        if let Some(text) = Contents::of_text(&tail, &path) {
            return Ok(text);
        }
    }
    file.rewind().map_err(unreadable)?;
    Ok(Contents::Document(file))
}

/// Returns the file's last bytes, from the start of a line if it is longer than the limit.
fn read_tail(file: &mut File, size: u64, most: usize) -> io::Result<Vec<u8>> {
    let beyond = size.saturating_sub(most as u64);
    file.seek(SeekFrom::Start(beyond))?;
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
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
    use crate::documents::tests::program;
    use crate::own_data::tests::{data_folder_at, hard_link_to_data};
    use crate::sources::tests::tempdir;
    use std::{
        fs,
        os::unix::fs::symlink,
        time::{Duration, SystemTime, UNIX_EPOCH},
    };
    use tierbar_skip::{
        Call, denying,
        race::{ALL, Found, race},
    };

    async fn read_folder(
        folder: &Path,
        since: i64,
        own: Option<&Outputs>,
    ) -> Result<Option<Material>, Error> {
        let folder = sources::open(folder)?;
        let files = changed_files(&folder, since, own)?;
        read_files(Arc::new(folder), files, None).await
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

    #[tokio::test]
    async fn a_folder_yields_its_changed_files_by_name() {
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
        let material = read_folder(folder.path(), 2000, None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(material.text, "a\nb\n");
        assert_eq!(
            material.words,
            "2 files, 4 bytes; skipped 1 that were too many, too large or not text"
        );
        assert_eq!(read_folder(folder.path(), 4000, None).await.unwrap(), None);
        fs::remove_file(path("a.log")).unwrap();
        let error = read_folder(folder.path(), 3000, None).await.unwrap_err();
        assert!(error.message.contains("1 file "), "{error}");
    }

    #[tokio::test]
    async fn the_oldest_files_beyond_the_limit_are_reported() {
        let folder = tempdir();
        let path = |name: &str| folder.path().join(name);
        put(&path("large"), &vec![b'x'; MOST_BYTES - 2], 3000);
        put(&path("a"), b"abc", 2000);
        put(&path("b"), b"b", 2500);
        let material = read_folder(folder.path(), 0, None).await.unwrap().unwrap();
        assert!(material.text.starts_with("b\nxxx"));
        assert_eq!(
            material.words,
            "2 files, 16 MiB; skipped 1 that were too many, too large or not text"
        );
    }

    #[tokio::test]
    async fn a_file_beyond_the_total_limit_is_read_from_its_end() {
        let folder = tempdir();
        let path = |name: &str| folder.path().join(name);
        let mut bytes = vec![b'x'; MOST_BYTES];
        bytes.extend(b"\nlast\n");
        put(&path("large.log"), &bytes, 3000);
        let material = read_folder(folder.path(), 0, None).await.unwrap().unwrap();
        assert_eq!(
            (material.text.as_str(), material.words.as_str()),
            ("last\n", "1 file, 5 bytes")
        );
        // The newer file comes first; the rest of the limit goes to the large one.
        put(&path("new.log"), &vec![b'y'; MOST_BYTES - 8], 4000);
        let material = read_folder(folder.path(), 0, None).await.unwrap().unwrap();
        assert!(material.text.starts_with("last\nyyy"));
    }

    #[tokio::test]
    async fn a_result_is_never_a_source_by_any_path() {
        let folder = tempdir();
        let inside = folder.path().join("x");
        fs::create_dir(&inside).unwrap();
        symlink(&inside, folder.path().join("link")).unwrap();
        let put = |name: &str| put(&inside.join(name), format!("{name}\n").as_bytes(), 3000);
        for name in ["2026-11-22.md", "brief of 2026-11-21.md", "notes.md"] {
            put(name);
        }
        let read = async |to: String| {
            let read = read_folder(&inside, 0, Some(&Outputs::of(&to))).await;
            read.unwrap().unwrap().text
        };
        let at = folder.path().display();
        for to in ["x/./{date}.md", "x//{date}.md", "link/{date}.md"] {
            assert_eq!(
                read(format!("{at}/{to}")).await,
                "brief of 2026-11-21.md\nnotes.md\n",
                "{to}"
            );
        }
        let to = format!("{at}/link/notes.md");
        assert_eq!(read(to).await, "2026-11-22.md\nbrief of 2026-11-21.md\n");
        for elsewhere in ["y/{date}.md", "{date}.md"] {
            let all = read(format!("{at}/{elsewhere}")).await;
            assert_eq!(all.lines().count(), 3, "{elsewhere}");
        }
    }

    #[test]
    fn a_source_whose_name_leads_to_tierbars_data_is_not_left() {
        let root = tempdir();
        let (logs, private) = (root.path().join("logs"), root.path().join("private"));
        fs::create_dir(&logs).unwrap();
        data_folder_at(&private);
        for (folder, text) in [(&logs, b"own"), (&private, b"odd")] {
            put(&folder.join("a"), text, 3000);
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut read = || match runtime.block_on(read_folder(&logs, 0, None)) {
            Ok(Some(material)) if material.text != "own\n" => Found::Foreign,
            Ok(_) => Found::Own,
            Err(_) => Found::Refused,
        };
        race(&ALL, &logs, &private, &mut [&mut read]);
    }

    #[tokio::test]
    async fn a_hard_link_to_tierbars_data_is_skipped() {
        let folder = tempdir();
        put(&folder.path().join("a.log"), b"a\n", 3000);
        let _data = hard_link_to_data(&folder.path().join("b.log"));
        let material = read_folder(folder.path(), 0, None).await.unwrap().unwrap();
        assert_eq!(material.text, "a\n");
    }

    #[tokio::test]
    async fn a_name_that_is_refused_is_reported_and_hides_no_other() {
        let folder = tempdir();
        for name in ["a.log", "b.log"] {
            put(&folder.path().join(name), b"a line\n", 3000);
        }
        let opened = sources::open(folder.path()).unwrap();
        let mut files = changed_files(&opened, 0, None).unwrap();
        let refused = files.iter_mut().find(|entry| entry.name == "b.log");
        refused.unwrap().fault = Some(io::ErrorKind::PermissionDenied.into());
        let read = read_files(Arc::new(opened), files, None).await;
        let material = read.unwrap().unwrap();
        assert_eq!(material.text, "a line\n");
        assert_eq!(material.words, "1 file, 7 bytes; b.log: permission denied");
        // Alone, it is no sign that nothing has changed.
        let opened = sources::open(folder.path()).unwrap();
        let mut files = changed_files(&opened, 0, None).unwrap();
        files.retain(|entry| entry.name == "b.log");
        files[0].fault = Some(io::ErrorKind::PermissionDenied.into());
        let error = read_files(Arc::new(opened), files, None).await.unwrap_err();
        assert_eq!(error.code, Code::AccessDenied);
        assert!(
            error.message.ends_with("b.log: permission denied"),
            "{error}"
        );
    }

    /// Runs it to its end. What is denied to this thread is denied to those that it starts.
    fn finish<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(work)
    }

    /// As macOS does for what its privacy settings deny, whichever call it refuses.
    #[test]
    fn a_source_that_the_system_denies_is_not_unchanged() {
        let folder = tempdir();
        put(&folder.path().join("a.log"), b"a line\n", 3000);
        let web = Web::new(tierbar_fetch::WebOptions::default()).unwrap();
        let read = |name: &str| {
            let place = folder.path().join(name).display().to_string();
            finish(super::read(&place, "/elsewhere", Some(0), 0, &web, None))
        };
        for (call, name) in [
            (Call::Open, ""),
            (Call::ReadNames, ""),
            (Call::Stat, ""),
            (Call::Open, "a.log"),
        ] {
            let Some(read) = denying(call, || read(name)) else {
                return tierbar_skip::skip("no call can be denied to a thread here");
            };
            let error = read.unwrap_err();
            assert_eq!(error.code, Code::AccessDenied, "{call:?} {name}: {error}");
            assert!(
                error.message.ends_with("cannot be read: permission denied"),
                "{call:?} {name}: {error}"
            );
        }
        // Of a folder that is open, a file.
        let opened = sources::open(folder.path()).unwrap();
        let files = changed_files(&opened, 0, None).unwrap();
        let read = denying(Call::Open, || {
            finish(read_files(Arc::new(opened), files, None))
        });
        let error = read.unwrap().unwrap_err();
        assert_eq!(error.code, Code::AccessDenied, "{error}");
        assert!(
            error
                .message
                .ends_with("cannot be read; a.log: permission denied"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn documents_are_read_and_their_bytes_never_are() {
        let folder = tempdir();
        let programs = tempdir();
        let script = r#"case "$1" in
            *.bin) echo '{"refused":"This file holds no text."}';;
            *) echo '{"block":{"text":"Of '"$1"'"}}'
               echo '{"end":{"kind":"pdf","notice":"1 of 2 pages is damaged."}}';;
            esac"#;
        let program = Ok(program(programs.path(), script));
        let path = |name: &str| folder.path().join(name);
        put(&path("c.log"), b"a line", 3000);
        put(&path("a.pdf"), b"%PDF-1.5\n%\xff", 3000);
        put(&path("b.html"), b"<p>x", 3000);
        put(&path("d.bin"), b"\0\0", 3000);
        let web = Web::new(tierbar_fetch::WebOptions::default()).unwrap();
        let read = async |name: &str, program| {
            let place = path(name).display().to_string();
            super::read(&place, "/elsewhere", Some(2), 0, &web, program).await
        };
        let all = read("", Some(&program)).await.unwrap().unwrap();
        assert_eq!(all.text, "Of a.pdf\nOf b.html\na line\n");
        assert_eq!(
            all.words,
            "3 files, 26 bytes; skipped 1 that were too many, too large or not text; \
             a.pdf: 1 of 2 pages is damaged; b.html: 1 of 2 pages is damaged"
        );
        let one = read("a.pdf", Some(&program)).await.unwrap().unwrap();
        assert_eq!(one.text, "Of a.pdf");
        assert_eq!(one.words, "1 file, 8 bytes; a.pdf: 1 of 2 pages is damaged");
        let error = read("d.bin", Some(&program)).await.unwrap_err();
        assert!(
            error.message.ends_with("This file holds no text"),
            "{error}"
        );
        // Lines are wanted.
        let lines = read("", None).await.unwrap().unwrap();
        assert_eq!(lines.text, "a line\n");
        assert!(lines.words.contains("skipped 3"), "{}", lines.words);
        let error = read("a.pdf", None).await.unwrap_err();
        assert!(error.message.ends_with("is not a text of lines"), "{error}");
    }

    #[test]
    fn a_page_is_read_as_what_its_server_says() {
        for (url, kind, expected) in [
            ("https://a.example/", Some("text/html"), "page.html"),
            (
                "https://a.example/news?x=1",
                Some("text/html; charset=utf-8"),
                "news.html",
            ),
            (
                "https://a.example/a/day.jsonl",
                Some("text/plain"),
                "day.jsonl",
            ),
            ("https://a.example/a.pdf", None, "a.pdf"),
        ] {
            let name = name_of_page(&Url::parse(url).unwrap(), kind);
            assert_eq!(name, Path::new(expected), "{url}");
        }
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
            async move { super::read(&place, "/elsewhere", None, 0, &web, None).await }
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
            super::read(&folder, "/elsewhere", Some(now + 60), now, &web, None)
                .await
                .unwrap()
                .is_none()
        );
    }
}
