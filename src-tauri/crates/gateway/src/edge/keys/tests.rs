//! What a key, a place and the memory of bodies are given back.

use super::*;

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

fn enter(keys: &Arc<Keys>, key: Option<&Arc<Key>>, most: usize) -> Result<Admitted, Error> {
    let weight = keys.weigh(key.cloned());
    keys.enter(key.cloned(), weight, most)
}

#[tokio::test]
async fn a_keys_place_is_free_again_when_its_answer_ends() {
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
async fn a_request_that_its_key_refuses_takes_no_place() {
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
async fn one_key_has_a_quarter_of_the_memory_of_bodies() {
    let (keys, _folder) = keys().await;
    let greedy = key(&keys, "greedy", KeyLimits::default()).await;
    let mut share = keys.weigh(Some(greedy));
    share.grow(128 * MIB).unwrap();
    assert!(share.grow(1).is_err());
    let mut others = keys.weigh(None);
    others.grow(384 * MIB).unwrap();
    assert!(others.grow(1).is_err());
}

#[tokio::test]
async fn a_refused_body_does_not_count_against_its_key() {
    let (keys, _folder) = keys().await;
    let one = key(&keys, "one", KeyLimits::default()).await;
    let mut all = keys.weigh(None);
    all.grow(BODIES).unwrap();
    let mut share = keys.weigh(Some(one));
    for _ in 0..3 {
        assert!(share.grow(OF_ONE_KEY).is_err());
    }
    drop(all);
    share.grow(OF_ONE_KEY).unwrap();
}
