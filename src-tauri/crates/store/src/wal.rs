//! The database's write-ahead log, as a start finds it. SQLite reads it up to the first page that does not match its checksum, none of it
//! if its header does not, and ignores the rest without a word, though changes that were confirmed follow
//! (<https://sqlite.org/fileformat2.html#walformat>). So the rest is looked at before SQLite opens the file: what is lost is counted, and
//! kept in a copy.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The header's first word; its last bit is set if the checksums are of big-endian words.
const MAGIC: u32 = 0x377f_0682;
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;
/// What the names of copies have after the log's.
const COPY: &str = ".damaged-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostChanges {
    pub(crate) count: u64,
    /// Where the log is kept, or why it is not.
    pub(crate) copy: Result<PathBuf, String>,
}

impl LostChanges {
    pub(crate) fn describe(&self) -> String {
        let Self { count, copy } = self;
        let changes = if *count == 1 { "change" } else { "changes" };
        let kept = match copy {
            Ok(copy) => format!("what could not be read is kept in {}", copy.display()),
            Err(why) => format!("no copy of what could not be read could be kept: {why}"),
        };
        format!(
            "damage to the database's log lost the last {count} {changes} of chats, queued requests, settings and readings; {kept}"
        )
    }
}

pub(crate) fn path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Returns the copies of damaged logs beside a database.
pub fn damaged_copies(database: &Path) -> Vec<PathBuf> {
    let log = path(database);
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else {
        return Vec::new();
    };
    let start = format!("{}{COPY}", name.display());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let copies = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
    let mut copies: Vec<_> = copies.map(|entry| entry.path()).collect();
    copies.sort();
    copies
}

/// Looks for changes that SQLite will ignore, and keeps a copy of a log that has some. Call it before the database is opened.
pub(crate) fn save_lost_changes(database: &Path) -> Option<LostChanges> {
    let log = path(database);
    // A log that cannot be read is for SQLite to report.
    let count = count_lost(&log).ok().filter(|&count| count > 0)?;
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let mut name = log.as_os_str().to_owned();
    name.push(format!("{COPY}{now}"));
    let copy = PathBuf::from(name);
    let copied = fs::copy(&log, &copy).map_err(|error| {
        // Half a copy is of no use.
        let _gone = fs::remove_file(&copy);
        error.to_string()
    });
    Some(LostChanges {
        count,
        copy: copied.map(|_| copy),
    })
}

/// Counts the confirmed changes that SQLite will ignore: those behind the first page that does not match its checksum, and all if the
/// header does not match its own. What a damaged header says of the frames is not to be relied on, so each form that they can have is
/// tried.
fn count_lost(log: &Path) -> io::Result<u64> {
    let mut log = BufReader::with_capacity(1 << 20, File::open(log)?);
    let mut header = [0; HEADER];
    if !read_whole(&mut log, &mut header)? {
        return Ok(0);
    }
    let magic = word(&header, 0);
    let (page, big_endian) = (word(&header, 8), magic & 1 == 1);
    let written = (word(&header, 24), word(&header, 28));
    let is_sound = magic & !1 == MAGIC
        && PAGE_SIZES.contains(&page)
        && page.is_power_of_two()
        && checksum((0, 0), &header[..24], big_endian) == written;
    if is_sound {
        let salts = (word(&header, 16), word(&header, 20));
        return count_lost_frames(&mut log, page, big_endian, vec![written], Some(salts));
    }
    for page in (0..8_u32).map(|doublings| PAGE_SIZES.start() << doublings) {
        for big_endian in [false, true] {
            log.seek(SeekFrom::Start(HEADER as u64))?;
            // The checksum itself may be what is damaged.
            let seeds = vec![written, checksum((0, 0), &header[..24], big_endian)];
            let lost = count_lost_frames(&mut log, page, big_endian, seeds, None)?;
            if lost > 0 {
                return Ok(lost);
            }
        }
    }
    Ok(0)
}

/// Each frame's checksum continues the one before, so a frame behind a damaged one is checked with what that says of itself; the first
/// continues one of `seeds`. What a change that was rolled back has left ends with no commit and does not count, nor does what an earlier
/// use of the file has left, which has other salts. Without the header's salts, they are those of the first frame that matches, and all
/// frames are lost.
fn count_lost_frames(
    log: &mut impl Read,
    page: u32,
    big_endian: bool,
    mut seeds: Vec<(u32, u32)>,
    mut salts: Option<(u32, u32)>,
) -> io::Result<u64> {
    let sum = |seed, bytes: &[u8]| checksum(seed, bytes, big_endian);
    let (mut sound, mut lost) = (salts.is_some(), 0);
    let mut frame = vec![0; FRAME_HEADER + page as usize];
    while read_whole(log, &mut frame)? {
        let (head, content) = frame.split_at(FRAME_HEADER);
        let own_salts = (word(head, 8), word(head, 12));
        let own = (word(head, 16), word(head, 20));
        let continues = |&seed: &(u32, u32)| sum(sum(seed, &head[..8]), content) == own;
        // There is no page 0; zeros would match their checksum.
        let matches = word(head, 0) != 0
            && salts.is_none_or(|salts| salts == own_salts)
            && seeds.iter().any(continues);
        sound &= matches;
        if matches {
            salts = Some(own_salts);
            let commits = word(head, 4) != 0;
            lost += u64::from(commits && !sound);
        }
        seeds.clear();
        seeds.push(own);
    }
    Ok(lost)
}

/// Returns `false` at the end of the file, or if less is left.
fn read_whole(from: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let (words, _) = bytes[at..].as_chunks::<4>();
    words.first().map_or(0, |word| u32::from_be_bytes(*word))
}

fn checksum((mut first, mut second): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let word = |word: [u8; 4]| match big_endian {
        true => u32::from_be_bytes(word),
        false => u32::from_le_bytes(word),
    };
    let (pairs, _) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in pairs {
        first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatFields, ChatPage, Store};
    use std::os::unix::fs::PermissionsExt;
    use tierbar_core::journal::Filter;

    const CHATS: usize = 12;

    /// A database with chats that a killed host has left in its log, each in a change of its own.
    async fn left_by_a_killed_host() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("live.db")).unwrap();
        store.checkpoint_if_written().await.unwrap();
        for _ in 0..CHATS {
            store.create_chat(ChatFields::default()).await.unwrap();
        }
        let database = folder.path().join("tierbar.db");
        for ending in ["", "-wal"] {
            let from = folder.path().join(format!("live.db{ending}"));
            fs::copy(from, folder.path().join(format!("tierbar.db{ending}"))).unwrap();
        }
        (folder, database)
    }

    fn frames(log: &Path) -> (usize, usize) {
        let bytes = fs::read(log).unwrap();
        let frame = FRAME_HEADER + word(&bytes, 8) as usize;
        (frame, (bytes.len() - HEADER) / frame)
    }

    fn overwrite(log: &Path, at: usize, with: &[u8]) {
        let mut bytes = fs::read(log).unwrap();
        bytes[at..at + with.len()].copy_from_slice(with);
        fs::write(log, bytes).unwrap();
    }

    #[tokio::test]
    async fn what_a_damaged_page_loses_is_reported_and_kept() {
        // A page is lost, or a frame with its header.
        for zeroed in [FRAME_HEADER..FRAME_HEADER + 512, 0..FRAME_HEADER + 512] {
            let (_folder, database) = left_by_a_killed_host().await;
            let log = path(&database);
            let (frame, count) = frames(&log);
            assert!(count >= CHATS, "{count}");
            overwrite(
                &log,
                HEADER + frame * (count / 2) + zeroed.start,
                &vec![0; zeroed.len()],
            );
            let damaged = fs::read(&log).unwrap();
            let store = Store::open(&database).unwrap();
            let (_, left) = store.list_page(ChatPage::default()).await.unwrap();
            assert!(left > 0 && left < CHATS as u64, "{left}");
            let entries = store.entries(None, Filter::default(), 9).await.unwrap();
            let [entry] = &entries[..] else {
                panic!("{entries:?}");
            };
            let copies = damaged_copies(&database);
            let [copy] = &copies[..] else {
                panic!("{copies:?}");
            };
            let sentence = &entry.what.sentence;
            assert!(sentence.contains(&copy.display().to_string()), "{sentence}");
            assert!(fs::read(copy).unwrap() == damaged);
            let mode = fs::metadata(copy).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            // It is reported once.
            drop(store);
            let store = Store::open(&database).unwrap();
            let again = store.entries(None, Filter::default(), 9).await.unwrap();
            assert_eq!(again, entries);
        }
    }

    #[tokio::test]
    async fn each_lost_change_is_counted() {
        let (_folder, database) = left_by_a_killed_host().await;
        let log = path(&database);
        assert_eq!(count_lost(&log).unwrap(), 0);
        // The first frame is of the first chat's change; all others are lost with it.
        overwrite(&log, HEADER + FRAME_HEADER, &[0xff; 64]);
        let lost = count_lost(&log).unwrap();
        assert!((CHATS as u64 - 1..=CHATS as u64).contains(&lost), "{lost}");
    }

    #[tokio::test]
    async fn a_damaged_header_loses_all_and_is_reported() {
        let (_folder, database) = left_by_a_killed_host().await;
        let log = path(&database);
        let (frame, count) = frames(&log);
        let whole = fs::read(&log).unwrap();
        let commits = (0..count).filter(|at| word(&whole, HEADER + frame * at + 4) != 0);
        let commits = commits.count() as u64;
        // The magic, the page's size, a salt, the checksum.
        for at in [0, 8, 16, 24] {
            fs::write(&log, &whole).unwrap();
            overwrite(&log, at, &[0xff; 4]);
            assert_eq!(count_lost(&log).unwrap(), commits, "{at}");
        }
        // Without all of the header and the first page, the second has nothing to continue.
        fs::write(&log, &whole).unwrap();
        overwrite(&log, 0, &vec![0; HEADER + frame]);
        assert!(count_lost(&log).unwrap() >= commits - 2);
        let damaged = fs::read(&log).unwrap();
        let lost = save_lost_changes(&database).unwrap();
        assert!(fs::read(lost.copy.unwrap()).unwrap() == damaged);
    }

    #[tokio::test]
    async fn an_ordinary_end_of_the_log_is_no_loss() {
        let (_folder, database) = left_by_a_killed_host().await;
        let log = path(&database);
        let (frame, count) = frames(&log);
        let whole = fs::read(&log).unwrap();
        // A change that was not confirmed: cut off, or its last page torn.
        fs::write(&log, &whole[..whole.len() - 100]).unwrap();
        assert_eq!(count_lost(&log).unwrap(), 0);
        fs::write(&log, &whole).unwrap();
        overwrite(
            &log,
            HEADER + frame * (count - 1) + FRAME_HEADER,
            &[0xff; 64],
        );
        assert_eq!(count_lost(&log).unwrap(), 0);
        // What an earlier use of the file has left behind.
        let mut reused = whole.clone();
        reused.extend(&whole[HEADER..]);
        for at in 0..count {
            reused[whole.len() + frame * at + 8] ^= 1;
        }
        fs::write(&log, &reused).unwrap();
        assert_eq!(count_lost(&log).unwrap(), 0);
        fs::write(&log, &whole[..10]).unwrap();
        assert_eq!(count_lost(&log).unwrap(), 0);
        assert!(save_lost_changes(&database).is_none());
        assert!(damaged_copies(&database).is_empty());
    }

    #[tokio::test]
    async fn what_was_written_is_soon_out_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("tierbar.db");
        let store = Store::open(&database).unwrap();
        store.create_chat(ChatFields::default()).await.unwrap();
        let bytes = || fs::metadata(path(&database)).unwrap().len();
        assert!(bytes() > 0);
        store.checkpoint_if_written().await.unwrap();
        assert_eq!(bytes(), 0);
        store.checkpoint_if_written().await.unwrap();
        let (_, chats) = store.list_page(ChatPage::default()).await.unwrap();
        assert_eq!(chats, 1);
    }
}
