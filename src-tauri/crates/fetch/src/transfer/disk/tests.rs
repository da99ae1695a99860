use super::*;
use parking_lot::Mutex;

fn shared(written: &[(u64, u64)]) -> Shared {
    Shared {
        state: Mutex::new(State {
            written: Ranges::from_list(written).unwrap(),
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

#[test]
fn the_journal_claims_nothing_that_was_written_after_the_sync_began() {
    let shared = shared(&[(0, 10)]);
    let file = tempfile::tempfile().unwrap();
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
    keep(
        &shared,
        &file,
        Duration::ZERO,
        sync,
        store,
        Path::new("part"),
    );
    let stored = stored.into_inner();
    assert_eq!(stored[..2], synced.into_inner()[..2]);
    assert_eq!(stored[..2], [vec![(0, 10)], vec![(0, 20)]]);
}

#[test]
fn after_a_failed_sync_the_older_journal_stays() {
    let shared = shared(&[(0, 10)]);
    let file = tempfile::tempfile().unwrap();
    let stored = Mutex::new(0);
    let sync = || Err(io::ErrorKind::StorageFull.into());
    let store = |_: &Ranges| {
        *stored.lock() += 1;
        Ok(())
    };
    keep(
        &shared,
        &file,
        Duration::ZERO,
        sync,
        store,
        Path::new("part"),
    );
    assert_eq!(stored.into_inner(), 0);
    assert_eq!(
        shared.state.lock().trouble.as_ref().unwrap().code,
        Code::Storage
    );
}
