//! The table of API keys, on real files.

use crate::support::Fixture;
use tierbar_core::keys::{ApiKey, KeyLimits};
use tierbar_store::{AddedKey, KeptKey, KeyUse, TokensUsed};

fn key(name: &str, hash: u8, limits: KeyLimits) -> KeptKey {
    KeptKey {
        key: ApiKey {
            name: name.to_owned(),
            limits,
            created_ms: u64::from(hash),
            last_used_ms: None,
            revoked_ms: None,
        },
        hash: [hash; 32],
        tokens: TokensUsed::default(),
    }
}

#[tokio::test]
async fn keys_survive_a_restart_with_limits_and_use() {
    let fixture = Fixture::new();
    let limits = KeyLimits {
        requests_per_minute: Some(60),
        tokens_per_day: Some(u64::from(u32::MAX) + 1),
        at_once: None,
    };
    let (mut limited, free) = (
        key("limited", 1, limits),
        key("free", 2, KeyLimits::default()),
    );
    {
        let store = fixture.store();
        assert_eq!(store.keys().await.unwrap(), []);
        assert_eq!(
            store.add_key(limited.clone()).await.unwrap(),
            AddedKey::Kept
        );
        assert_eq!(store.add_key(free.clone()).await.unwrap(), AddedKey::Kept);
        let tokens = TokensUsed {
            missing: 7,
            at_ms: 9_000,
        };
        let gone = KeyUse {
            hash: [9; 32],
            last_used_ms: 1,
            tokens,
        };
        let used = KeyUse {
            hash: [1; 32],
            last_used_ms: 8_000,
            tokens,
        };
        store.keys_used(vec![gone, used]).await.unwrap();
        limited.key.last_used_ms = Some(8_000);
        limited.tokens = tokens;
    }
    assert_eq!(fixture.store().keys().await.unwrap(), [limited, free]);
}

#[tokio::test]
async fn a_revoked_keys_name_can_be_used_again() {
    let store = Fixture::new();
    let store = store.store();
    let limits = KeyLimits::default();
    assert!(!store.revoke_key("job", 5).await.unwrap());
    store.add_key(key("job", 1, limits)).await.unwrap();
    assert_eq!(
        store.add_key(key("job", 2, limits)).await.unwrap(),
        AddedKey::Exists
    );
    assert!(store.revoke_key("job", 5).await.unwrap());
    assert!(!store.revoke_key("job", 6).await.unwrap());
    assert_eq!(store.keys().await.unwrap()[0].key.revoked_ms, Some(5));
    assert_eq!(
        store.add_key(key("job", 2, limits)).await.unwrap(),
        AddedKey::Kept
    );
    assert_eq!(store.keys().await.unwrap(), [key("job", 2, limits)]);
}

#[tokio::test]
async fn the_last_hundred_revoked_keys_are_listed() {
    let fixture = Fixture::new();
    let store = fixture.store();
    for at in 0..102u8 {
        let name = format!("k{at}");
        store
            .add_key(key(&name, at, KeyLimits::default()))
            .await
            .unwrap();
        store.revoke_key(&name, u64::from(at)).await.unwrap();
    }
    let kept = store.keys().await.unwrap();
    assert_eq!(kept.len(), 100);
    assert!(kept.iter().all(|kept| kept.key.revoked_ms >= Some(2)));
}
