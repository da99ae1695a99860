//! What files were before agents changed them.

use crate::support::Fixture;
use std::time::{SystemTime, UNIX_EPOCH};
use tierbar_chats::agent::AgentRun;
use tierbar_store::{AGENT_FILES_BYTES, AGENT_FILES_KEPT, AgentFile, ChatFields, Store};

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs()
}

fn file(run: &str, path: &str, before: Option<&[u8]>) -> AgentFile {
    AgentFile {
        run: run.into(),
        answer: None,
        folder: "/work".into(),
        path: path.into(),
        before: before.map(<[u8]>::to_vec),
        mode: before.map(|_| 0o755),
        after: None,
    }
}

async fn runs(store: &Store, now: u64) -> Vec<String> {
    let runs = store.agent_runs(now).await.unwrap();
    runs.into_iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn a_file_is_kept_as_it_was_before_the_first_change() {
    let fixture = Fixture::new();
    let (store, now) = (fixture.store(), now());
    let kept = file("one", "a", Some(b"first"));
    assert!(store.keep_agent_file(kept.clone(), now).await.unwrap());
    store
        .note_agent_file("one", "a", Some([0; 32]), [1; 32])
        .await
        .unwrap();
    let again = file("one", "a", Some(b"second"));
    assert!(store.keep_agent_file(again, now + 1).await.unwrap());
    store
        .note_agent_file("one", "a", Some([1; 32]), [2; 32])
        .await
        .unwrap();
    assert!(
        store
            .keep_agent_file(file("one", "made", None), now + 1)
            .await
            .unwrap()
    );
    drop(store);
    let store = fixture.store();
    let after = Some([2; 32]);
    let files = [AgentFile { after, ..kept }, file("one", "made", None)];
    assert_eq!(store.agent_files("one").await.unwrap(), files);
    let run = AgentRun {
        id: "one".into(),
        chat: None,
        message: None,
        folder: "/work".into(),
        at: now + 1,
        files: vec!["a".into(), "made".into()],
    };
    assert_eq!(store.agent_runs(now + 2).await.unwrap(), [run]);
    // Another program has written in between, which an undo would lose, too.
    store
        .note_agent_file("one", "a", Some([9; 32]), [3; 32])
        .await
        .unwrap();
    store
        .note_agent_file("one", "a", Some([3; 32]), [4; 32])
        .await
        .unwrap();
    assert_eq!(store.agent_files("one").await.unwrap()[0].after, None);
    store.forget_agent_run("one").await.unwrap();
    assert!(store.agent_files("one").await.unwrap().is_empty());
}

#[tokio::test]
async fn the_oldest_runs_make_room_and_a_run_has_a_bound() {
    let (store, now) = (Fixture::new().store(), now());
    let half = vec![b'x'; AGENT_FILES_BYTES as usize / 2];
    for (at, run) in ["one", "two", "three"].into_iter().enumerate() {
        let kept = store.keep_agent_file(file(run, "a", Some(&half)), now + at as u64);
        assert!(kept.await.unwrap(), "{run}");
    }
    assert_eq!(runs(&store, now).await, ["three", "two"]);
    let more = store.keep_agent_file(file("three", "b", Some(&half)), now + 3);
    assert!(more.await.unwrap());
    assert_eq!(runs(&store, now).await, ["three"]);
    let most = store.keep_agent_file(file("three", "c", Some(b"x")), now + 4);
    assert!(!most.await.unwrap());
    assert_eq!(store.agent_files("three").await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_kept_goes_after_days_and_with_its_chat() {
    let fixture = Fixture::new();
    let (store, now) = (fixture.store(), now());
    store
        .keep_agent_file(file("old", "a", None), now)
        .await
        .unwrap();
    let chat = store.create_chat(ChatFields::default()).await.unwrap().id;
    let in_chat = AgentFile {
        answer: Some((chat.clone(), 7)),
        ..file("new", "a", Some(b"x"))
    };
    let later = now + AGENT_FILES_KEPT;
    store.keep_agent_file(in_chat.clone(), later).await.unwrap();
    assert_eq!(runs(&store, later).await, ["new", "old"]);
    assert_eq!(runs(&store, later + 1).await, ["new"]);
    assert_eq!(store.agent_files("new").await.unwrap(), [in_chat]);
    store.delete_chat(&chat).await.unwrap();
    drop(store);
    fixture.set_deleted_at("2000-01-01T00:00:00.000000Z");
    assert!(runs(&fixture.store(), later).await.is_empty());
}
