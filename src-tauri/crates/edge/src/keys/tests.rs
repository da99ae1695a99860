//! What a key, a place and the memory of bodies are given back.

use super::*;
use axum::body::{Body, HttpBody};

const MIB: usize = 1 << 20;

async fn keys() -> (Arc<Keys>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tierbar.db");
    let store = tokio::task::spawn_blocking(move || Store::open(&path));
    let store = store.await.unwrap().unwrap();
    (Arc::new(Keys::open(store).await.unwrap()), folder)
}

async fn key(keys: &Keys, name: &str, limits: KeyLimits) -> Arc<Key> {
    let (_, text) = keys.add(name.to_owned(), limits).await.unwrap();
    keys.find(&text).unwrap()
}

fn enter(keys: &Arc<Keys>, key: Option<&Arc<Key>>, most: usize) -> Result<AdmittedRequest, Error> {
    let weight = keys.weigh(key.cloned());
    keys.enter(key.cloned(), weight, most)
}

#[tokio::test]
async fn a_keys_place_is_freed_when_its_answer_ends() {
    let (keys, _folder) = keys().await;
    let limits = KeyLimits {
        at_once: Some(1),
        ..KeyLimits::default()
    };
    let one = key(&keys, "one", limits).await;
    for round in 0..3 {
        let admitted = enter(&keys, Some(&one), 9).unwrap_or_else(|error| {
            panic!("round {round}: {error}");
        });
        assert!(enter(&keys, Some(&one), 9).is_err(), "round {round}");
        drop(admitted);
    }
}

#[tokio::test]
async fn a_refused_request_takes_no_place() {
    let (keys, _folder) = keys().await;
    let limits = KeyLimits {
        requests_per_minute: Some(1),
        ..KeyLimits::default()
    };
    let slow = key(&keys, "slow", limits).await;
    drop(enter(&keys, Some(&slow), 2).unwrap());
    for _ in 0..300 {
        let refused = enter(&keys, Some(&slow), 2).unwrap_err();
        assert_eq!(refused.code, Code::Overloaded);
    }
    let _one = enter(&keys, None, 2).unwrap();
    let _other = enter(&keys, None, 2).unwrap();
    assert!(enter(&keys, None, 2).is_err());
}

#[tokio::test]
async fn one_key_may_use_half_of_the_memory() {
    let (keys, _folder) = keys().await;
    let greedy = key(&keys, "greedy", KeyLimits::default()).await;
    let mut share = keys.weigh(Some(greedy));
    share.grow(256 * MIB).unwrap();
    assert!(share.grow(1).is_err());
    let mut others = keys.weigh(None);
    others.grow(192 * MIB).unwrap();
    assert!(others.grow(1).is_err());
}

#[tokio::test]
async fn an_eighth_of_the_memory_is_kept_for_the_owner() {
    let (keys, _folder) = keys().await;
    let mut others = keys.weigh(None);
    others.grow(448 * MIB).unwrap();
    assert_eq!(others.grow(1).unwrap_err().code, Code::Overloaded);
    let mut owners = keys.weigh(None).of_the_owner();
    owners.grow(64 * MIB).unwrap();
    assert!(owners.grow(1).is_err());
    drop(others);
    owners.grow(448 * MIB).unwrap();
    // What the owner takes beyond it counts for others too.
    assert!(keys.weigh(None).grow(1).is_err());
}

#[tokio::test]
async fn a_refused_body_does_not_count_against_its_key() {
    let (keys, _folder) = keys().await;
    let one = key(&keys, "one", KeyLimits::default()).await;
    let mut all = keys.weigh(None).of_the_owner();
    all.grow(BODIES).unwrap();
    let mut share = keys.weigh(Some(one));
    for _ in 0..3 {
        assert!(share.grow(BODIES / 2).is_err());
    }
    drop(all);
    share.grow(BODIES / 2).unwrap();
}

#[tokio::test]
async fn an_account_is_found_by_its_keys_id_and_spends_its_tokens() {
    let (keys, _folder) = keys().await;
    let limits = KeyLimits {
        tokens_per_day: Some(10),
        ..KeyLimits::default()
    };
    let id = key(&keys, "one", limits).await.id.clone();
    let other = key(&keys, "other", limits).await.id.clone();
    let one = keys.caller(&id).unwrap();
    assert_eq!(one.id().as_deref(), Some(&*id));
    one.spend(10);
    assert_eq!(keys.caller(&id).unwrap_err().code, Code::Overloaded);
    keys.caller(&other).unwrap();
    keys.revoke("other").await.unwrap();
    let refused = keys.caller(&other).unwrap_err();
    assert_eq!(refused.message, "the key other has been revoked");
    // A new key of its name is another account.
    let new = key(&keys, "other", limits).await.id.clone();
    keys.caller(&new).unwrap();
    for gone in [&*other, "other", "unknown"] {
        let refused = keys.caller(gone).unwrap_err();
        assert_eq!(refused.code, Code::Unauthorized, "{gone}");
    }
}

#[tokio::test]
async fn a_keys_use_is_stored_within_a_minute() {
    let (keys, _folder) = keys().await;
    let one = key(&keys, "one", KeyLimits::default()).await;
    drop(enter(&keys, Some(&one), 1).unwrap());
    let last_used = async || {
        let again = Keys::open(keys.store.clone()).await.unwrap();
        again.list()[0].last_used_ms
    };
    assert_eq!(last_used().await, None);
    tokio::time::pause();
    let closing = CancellationToken::new();
    let keeping = tokio::spawn({
        let (keys, closing) = (Arc::clone(&keys), closing.clone());
        async move { keys.keep(closing).await }
    });
    tokio::time::sleep(SAVING + Duration::from_millis(1)).await;
    closing.cancel();
    keeping.await.unwrap();
    tokio::time::resume();
    // Later than 2025: a real time.
    assert!(last_used().await > Some(1_735_689_600_000));
}

#[tokio::test]
async fn an_admitted_answers_body_ends_where_the_answer_does() {
    let (keys, _folder) = keys().await;
    let with = |body: Body| {
        let body = enter(&keys, None, 9).unwrap().with(body);
        (body.is_end_stream(), body.size_hint().exact())
    };
    assert_eq!(with(Body::from("word")), (false, Some(4)));
    assert_eq!(with(Body::empty()), (true, Some(0)));
}

#[test]
fn retry_after_is_in_whole_seconds_rounded_up() {
    let hint = |milliseconds| {
        let wait = Duration::from_millis(milliseconds);
        try_after("busy".to_owned(), wait).hint.unwrap()
    };
    assert_eq!(hint(2000), "try again in 2 s");
    assert_eq!(hint(2001), "try again in 3 s");
}
