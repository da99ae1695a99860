//! The hub's refusals, with hints.

use super::{Stand, client, repository};
use tierbar_core::{Code, Error};
use tierbar_tests::hub::{Fault, GATED, Options, PUBLIC, Server, TOKEN};

async fn refused(stand: &Stand, reference: &str) -> Error {
    stand.resolve(reference).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_repository_is_unknown_with_or_without_a_token() {
    for token in [None, Some(TOKEN)] {
        let stand = Stand::with(Options::default(), token).await;
        let error = refused(&stand, "unknown/nothing").await;
        assert_eq!(error.code, Code::RepositoryUnknown);
        assert!(error.message.contains("unknown/nothing"), "{error}");
        assert!(error.hint.unwrap().contains("HF_TOKEN"));
        let error = refused(&stand, &format!("{PUBLIC}/missing.gguf")).await;
        assert_eq!(error.code, Code::RepositoryUnknown);
        assert!(
            error
                .hint
                .unwrap()
                .contains("SmolLM2-135M-Instruct.Q4_1.gguf")
        );
        let error = refused(&stand, &format!("https://huggingface.co/{PUBLIC}/tree/v9")).await;
        assert_eq!(error.code, Code::RepositoryUnknown);
        assert!(error.message.contains("v9"), "{error}");
    }
}

#[tokio::test]
async fn a_gated_repository_has_a_hint_for_access() {
    let stand = Stand::new().await;
    let error = refused(&stand, GATED).await;
    assert_eq!(error.code, Code::AccessDenied);
    let hint = error.hint.unwrap();
    assert!(
        hint.contains(&format!("{}/{GATED}", stand.hub.url())),
        "{hint}"
    );
    assert!(hint.contains("HF_TOKEN"), "{hint}");
    // Its contents are public.
    let found = stand
        .client()
        .repository(&repository(GATED), None)
        .await
        .unwrap();
    assert!(found.gated);
    assert_eq!(found.quants.len(), 1);
    // A token whose owner has not accepted the license: the file's own server decides.
    let stand = Stand::with(Options::default(), Some(TOKEN)).await;
    let forbidden = Fault::Status {
        status: 403,
        retry_after: None,
    };
    stand.hub.fail(Server::Storage, [forbidden]);
    let error = refused(&stand, GATED).await;
    assert_eq!(error.code, Code::AccessDenied);
    assert!(error.hint.unwrap().contains(GATED));
}

#[tokio::test]
async fn an_invalid_token_is_reported_and_not_quoted() {
    let stand = Stand::with(Options::default(), Some("hf_expired")).await;
    let error = refused(&stand, PUBLIC).await;
    assert_eq!(error.code, Code::AccessDenied);
    assert!(
        error.message.contains("rejected the access token"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("hf_expired"));
    let of_search = stand.client().search("x").await.unwrap_err();
    assert_eq!(of_search, error);
}

#[tokio::test]
async fn a_rate_limited_answer_names_its_wait() {
    let stand = Stand::new().await;
    let patience = Fault::Status {
        status: 429,
        retry_after: Some(42),
    };
    stand.hub.fail(Server::Hub, [patience]);
    let error = refused(&stand, PUBLIC).await;
    assert_eq!(error.code, Code::Unreachable);
    assert!(error.hint.unwrap().contains("in 42 s"));
    // A single request: the server is not retried.
    assert_eq!(stand.hub.seen().len(), 1);
    stand.hub.fail(Server::Hub, [patience]);
    let error = stand.client().search("x").await.unwrap_err();
    assert!(error.hint.unwrap().contains("in 42 s"));
}

#[tokio::test]
async fn hub_failures_are_distinguished() {
    let stand = Stand::new().await;
    let broken = Fault::Status {
        status: 503,
        retry_after: None,
    };
    stand.hub.fail(Server::Hub, [broken, Fault::WebPage]);
    assert_eq!(refused(&stand, PUBLIC).await.code, Code::Unreachable);
    let error = refused(&stand, PUBLIC).await;
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.hint.unwrap().contains("requires a login"));
    let address = stand.hub.url();
    let home = tempfile::tempdir().unwrap();
    drop(stand);
    let hub = client(&address, home.path(), None).0;
    let error = hub.search("x").await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error:?}");
}
