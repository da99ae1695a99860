//! The table of sessions, on real files.

use crate::support::Fixture;
use rusqlite::Connection;

const IDLE: u64 = 1000;

fn rows(fixture: &Fixture) -> i64 {
    let file = Connection::open(fixture.path()).unwrap();
    file.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn unused_sessions_are_deleted_at_start_and_with_a_new_one() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for at in 1..=3 {
        store.add_session([at; 32], IDLE, 5000).await.unwrap();
    }
    store.trim_sessions(IDLE, 6000).await.unwrap();
    assert_eq!(rows(&fixture), 3);
    store.trim_sessions(IDLE, 6001).await.unwrap();
    assert_eq!(rows(&fixture), 0);
    store.add_session([4; 32], IDLE, 7000).await.unwrap();
    store.add_session([5; 32], IDLE, 8001).await.unwrap();
    assert_eq!(rows(&fixture), 1);
}

#[tokio::test]
async fn a_clock_once_far_ahead_does_not_prolong_a_session() {
    let fixture = Fixture::new();
    let store = fixture.store();
    store.add_session([1; 32], IDLE, 1_000_000).await.unwrap();
    let soon = store.use_session([1; 32], IDLE, 999_500).await.unwrap();
    assert_eq!(soon, Some(1_000_000));
    let long_ago = store.use_session([1; 32], IDLE, 5000).await.unwrap();
    assert_eq!(long_ago, None);
    store.trim_sessions(IDLE, 5000).await.unwrap();
    assert_eq!(rows(&fixture), 0);
}

#[tokio::test]
async fn all_sessions_end_except_the_one_kept() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for at in 1..=3 {
        store.add_session([at; 32], IDLE, 1).await.unwrap();
    }
    store.add_session([4; 32], IDLE, 3).await.unwrap();
    let listed = store.sessions(IDLE, 4).await.unwrap();
    assert_eq!(listed, [(3, 3), (1, 1), (1, 1), (1, 1)]);
    let used_lately = store.sessions(1, 4).await.unwrap();
    assert_eq!(used_lately, [(3, 3)]);
    store.end_sessions(Some([2; 32])).await.unwrap();
    assert_eq!(rows(&fixture), 1);
    let kept = store.use_session([2; 32], IDLE, 2).await.unwrap();
    assert_eq!(kept, Some(1));
    store.end_sessions(None).await.unwrap();
    assert_eq!(rows(&fixture), 0);
}

#[tokio::test]
async fn the_session_unused_for_longest_makes_room() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for at in 0..=100 {
        store.add_session([at; 32], IDLE, at.into()).await.unwrap();
    }
    assert_eq!(rows(&fixture), 100);
    assert_eq!(store.use_session([0; 32], IDLE, 100).await.unwrap(), None);
    assert_eq!(
        store.use_session([1; 32], IDLE, 100).await.unwrap(),
        Some(1)
    );
}
