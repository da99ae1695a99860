use super::{
    hasher::{FORGOTTEN_AT_ONCE, hash},
    *,
};
use parking_lot::Mutex;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

fn shared(written: &[(u64, u64)]) -> SharedState {
    SharedState {
        state: Mutex::new(State {
            written: Ranges::from_list(written).unwrap(),
            synced: 0,
            hashed: 0,
            total: None,
            trouble: None,
            ended: false,
            abandoned: false,
        }),
        changed: Condvar::new(),
        troubled: Notify::new(),
    }
}

/// Keeps with these effects; the rest do nothing.
fn kept(
    shared: &SharedState,
    every: Duration,
    sync: &dyn Fn() -> io::Result<()>,
    store: &dyn Fn(&Ranges) -> io::Result<()>,
    room: &dyn Fn() -> Result<(), Error>,
) {
    let keeping = KeeperEffects {
        sync,
        store,
        give_back: &|_| Ok(()),
        room,
    };
    keep_blocks(shared, Path::new("part"), every, &keeping);
}

#[test]
fn the_journal_lists_only_bytes_written_before_the_sync() {
    let shared = shared(&[(0, 10)]);
    let (synced, stored) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let sync = || {
        // A block that arrives while the disk is busy, as they do; the second sync is the last.
        let mut state = shared.state.lock();
        synced.lock().push(state.written.list());
        let end = state.written.end();
        state.written.insert(end, end + 10);
        state.ended = synced.lock().len() == 2;
        Ok(())
    };
    let store = |ranges: &Ranges| {
        stored.lock().push(ranges.list());
        Ok(())
    };
    kept(&shared, Duration::ZERO, &sync, &store, &|| Ok(()));
    let stored = stored.into_inner();
    assert_eq!(stored[..2], synced.into_inner()[..2]);
    assert_eq!(stored[..2], [vec![(0, 10)], vec![(0, 20)]]);
    let last = &stored[stored.len() - 1];
    assert_eq!([(0, shared.state.lock().synced)], last[..]);
}

#[test]
fn after_a_failed_sync_the_older_journal_stays() {
    let shared = shared(&[(0, 10)]);
    let stored = Mutex::new(0);
    let sync = || Err(io::ErrorKind::StorageFull.into());
    let store = |_: &Ranges| {
        *stored.lock() += 1;
        Ok(())
    };
    kept(&shared, Duration::ZERO, &sync, &store, &|| Ok(()));
    assert_eq!(stored.into_inner(), 0);
    let state = shared.state.lock();
    assert_eq!(state.trouble.as_ref().unwrap().code, Code::Storage);
    assert_eq!(state.synced, 0);
}

#[test]
fn the_first_journal_is_written_early() {
    let shared = shared(&[]);
    let stored = Mutex::new(Vec::new());
    let store = |ranges: &Ranges| {
        let mut stored = stored.lock();
        stored.push(ranges.bytes());
        let mut state = shared.state.lock();
        state.written.insert(0, 10);
        state.ended = stored.len() == 2;
        Ok(())
    };
    // Of a transfer that goes on, or this test would not end.
    kept(&shared, NEVER, &|| Ok(()), &store, &|| Ok(()));
    assert_eq!(stored.into_inner(), [0, 10]);
}

#[test]
fn a_volume_that_fills_up_stops_an_incomplete_transfer() {
    for (total, fails) in [(None, true), (Some(11), true), (Some(10), false)] {
        let shared = shared(&[(0, 10)]);
        shared.state.lock().total = total;
        let stored = Mutex::new(0);
        let store = |_: &Ranges| {
            let mut stored = stored.lock();
            *stored += 1;
            // So that there is a second time, which is the last.
            let mut state = shared.state.lock();
            state.written.insert(20, 20 + *stored);
            state.ended = *stored == 2;
            Ok(())
        };
        let full = || Err(Error::new(Code::Storage, "nearly full"));
        kept(&shared, Duration::ZERO, &|| Ok(()), &store, &full);
        assert_eq!(shared.state.lock().trouble.is_some(), fails, "{total:?}");
    }
}

#[test]
fn bytes_are_freed_only_when_the_journal_has_no_space() {
    for (refused, kept, cut) in [
        (0, 1 << 20, None),
        (1, (1 << 20) - SPARE, Some((1 << 20) - SPARE)),
    ] {
        let shared = shared(&[(0, 1 << 20)]);
        shared.fail(Error::new(Code::Storage, "full"));
        shared.state.lock().ended = true;
        let (stored, given) = (Mutex::new(Vec::new()), Mutex::new(None));
        let keeping = KeeperEffects {
            sync: &|| Ok(()),
            store: &|ranges| {
                let mut stored = stored.lock();
                stored.push(ranges.bytes());
                match stored.len() <= refused {
                    true => Err(io::ErrorKind::StorageFull.into()),
                    false => Ok(()),
                }
            },
            give_back: &|end| {
                *given.lock() = Some(end);
                Ok(())
            },
            room: &|| Ok(()),
        };
        keep_blocks(&shared, Path::new("part"), NEVER, &keeping);
        assert_eq!(stored.into_inner().last(), Some(&kept));
        assert_eq!(given.into_inner(), cut);
    }
}

#[test]
fn only_hashed_and_synced_bytes_leave_the_page_cache() {
    let length = 4 * FORGOTTEN_AT_ONCE;
    let file = tempfile::tempfile().unwrap();
    file.set_len(length).unwrap();
    let shared = shared(&[(0, length)]);
    {
        let mut state = shared.state.lock();
        state.synced = 2 * FORGOTTEN_AT_ONCE + 7;
        state.total = Some(length);
    }
    let forgotten = Mutex::new(Vec::new());
    let forget = |end| {
        assert!(end <= shared.state.lock().hashed, "not hashed yet");
        forgotten.lock().push(end);
    };
    assert!(hash(&shared, &file, forget).is_some());
    let ends = [FORGOTTEN_AT_ONCE, 2 * FORGOTTEN_AT_ONCE];
    assert_eq!(forgotten.into_inner(), ends);
}
