//! Repositories on the hub, and which servers get the token.

use super::{Stand, repository};
use tierbar_library::{hub::HubFile, reference::Pick};
use tierbar_tests::hub::{
    GATED, GEMMA, HubFile as File, HubRepository, Options, PUBLIC, SMOLLM2, Server, TOKEN,
};

#[tokio::test]
async fn a_listing_spans_pages_with_size_hash_and_commit() {
    let stand = Stand::with(
        Options {
            page: 1,
            ..Options::default()
        },
        None,
    )
    .await;
    let found = stand
        .client()
        .repository(&repository(PUBLIC), None)
        .await
        .unwrap();
    assert_eq!(found.commit, HubRepository::tests_models().commit());
    assert_eq!(found.licence.as_deref(), Some("apache-2.0"));
    assert!(!found.gated);
    let shown: Vec<_> = found
        .quants
        .iter()
        .map(|quant| (quant.name.as_str(), &quant.files[..]))
        .collect();
    let file = |path: &str, size: u64, sha256: &str| HubFile {
        path: path.to_owned(),
        size,
        sha256: Some(sha256.to_owned()),
    };
    let smollm2 = file(
        SMOLLM2,
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    );
    let gemma = file(
        GEMMA,
        253_113_024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    );
    assert_eq!(shown, [("Q4_1", &[smollm2][..]), ("Q4_K_M", &[gemma][..])]);
    // Two files of git's, two models; and the tree is requested at the commit, not at the branch.
    let pages: Vec<_> = stand
        .hub
        .seen()
        .into_iter()
        .filter(|seen| seen.path.contains("/tree/"))
        .collect();
    assert_eq!(pages.len(), 4);
    assert!(pages.iter().all(|seen| seen.path.ends_with(&found.commit)));
}

#[tokio::test]
async fn a_readme_comes_without_its_metadata() {
    let stand = Stand::new().await;
    let found = stand.client().readme(&repository(PUBLIC)).await.unwrap();
    assert_eq!(found.text, "# Models for tests");
    assert_eq!(found.url, format!("{}/{PUBLIC}", stand.hub.url()));
    let missing = stand.client().readme(&repository("unknown/nothing")).await;
    assert_eq!(
        missing.unwrap_err().code,
        tierbar_core::Code::RepositoryUnknown
    );
}

#[tokio::test]
async fn parts_are_one_model_and_other_files_are_skipped() {
    let parts = |prefix: &str, present: &[u16], count: u16| -> Vec<File> {
        let name = |number: &u16| format!("{prefix}-{number:05}-of-{count:05}.gguf");
        present
            .iter()
            .map(|number| File::new(&name(number), name(number).as_bytes()))
            .collect()
    };
    let single = |path: &str| File::new(path, path.as_bytes());
    let mut files = parts("UD-Q4_K_XL/Big-UD-Q4_K_XL", &[1, 2, 3], 3);
    files.extend(parts("Big-Q8_0", &[1, 3], 3));
    files.extend(parts("BF16/Big", &[1, 2], 2));
    files.extend(
        [
            "Big-UD-IQ2_M.gguf",
            "Big.Q5_K_S.gguf",
            "big_q6_k.GGUF",
            "mmproj-BF16.gguf",
            "imatrix.gguf",
            "Big.gguf",
            "notes.txt",
        ]
        .map(single),
    );
    let stand = Stand::with(
        Options {
            repositories: vec![HubRepository::new("a/Big-GGUF", files)],
            ..Options::default()
        },
        None,
    )
    .await;
    let found = stand
        .client()
        .repository(&repository("a/Big-GGUF"), None)
        .await
        .unwrap();
    let mut shown: Vec<_> = found
        .quants
        .iter()
        .map(|quant| {
            (
                quant.name.as_str(),
                quant.files.len(),
                quant.reference.as_str(),
            )
        })
        .collect();
    shown.sort_unstable();
    assert_eq!(
        shown,
        [
            ("BF16", 2, "a/Big-GGUF:BF16"),
            ("Big", 1, "a/Big-GGUF/Big.gguf"),
            ("Q5_K_S", 1, "a/Big-GGUF:Q5_K_S"),
            ("Q6_K", 1, "a/Big-GGUF:Q6_K"),
            ("UD-IQ2_M", 1, "a/Big-GGUF:UD-IQ2_M"),
            ("UD-Q4_K_XL", 3, "a/Big-GGUF:UD-Q4_K_XL"),
        ]
    );
    assert_eq!(
        found
            .projectors
            .iter()
            .map(|file| file.path.as_str())
            .collect::<Vec<_>>(),
        ["mmproj-BF16.gguf"]
    );
    let quant = |name: &str| found.picked(&Pick::Quant(name.to_owned()));
    let parts = quant("ud-q4_k_xl").unwrap().unwrap().files;
    let paths: Vec<_> = parts.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [1, 2, 3].map(|number| format!("UD-Q4_K_XL/Big-UD-Q4_K_XL-{number:05}-of-00003.gguf"))
    );
    assert_eq!(quant("iq2_m").unwrap().unwrap().name, "UD-IQ2_M");
    let hint = quant("Q8_0").unwrap_err().hint.unwrap();
    assert!(
        hint.contains("UD-Q4_K_XL") && hint.contains("BF16"),
        "{hint}"
    );
    let third = "UD-Q4_K_XL/Big-UD-Q4_K_XL-00003-of-00003.gguf";
    let picked = found
        .picked(&Pick::File(third.to_owned()))
        .unwrap()
        .unwrap();
    assert_eq!(picked.files.len(), 3);
    assert!(
        found
            .picked(&Pick::File("mmproj-BF16.gguf".into()))
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_quant_of_two_files_must_be_named_by_file() {
    let files = ["one-Q4_0.gguf", "two-Q4_0.gguf"].map(|path| File::new(path, path.as_bytes()));
    let stand = Stand::with(
        Options {
            repositories: vec![HubRepository::new("a/b", files.to_vec())],
            ..Options::default()
        },
        None,
    )
    .await;
    let found = stand
        .client()
        .repository(&repository("a/b"), None)
        .await
        .unwrap();
    let error = found.picked(&Pick::Quant("Q4_0".into())).unwrap_err();
    assert_eq!(error.code, tierbar_core::Code::BadRequest);
    assert_eq!(
        error.hint.unwrap(),
        "choose a file: a/b/one-Q4_0.gguf, a/b/two-Q4_0.gguf"
    );
}

#[tokio::test]
async fn a_search_lists_the_most_downloaded_first() {
    let stand = Stand::new().await;
    let names = |found: Vec<tierbar_core::catalog::HubModel>| -> Vec<String> {
        found.into_iter().map(|model| model.repository).collect()
    };
    let found = stand.client().search(" gguf ").await.unwrap();
    assert!(found[1].gated && !found[0].gated);
    assert_eq!(found[0].downloads, 1000);
    assert_eq!(
        found[0].updated.as_deref(),
        Some("2026-01-15T12:00:00.000Z")
    );
    assert_eq!(names(found), [PUBLIC, GATED]);
    assert_eq!(
        names(stand.client().search("gated").await.unwrap()),
        [GATED]
    );
    assert_eq!(
        names(stand.client().search("a&filter=x").await.unwrap()),
        Vec::<String>::new()
    );
    assert!(stand.client().search(&"x".repeat(201)).await.is_err());
    let query = stand.hub.seen()[0].query.clone().unwrap();
    assert!(query.contains("filter=gguf"), "{query}");
}

#[tokio::test]
async fn the_token_is_sent_only_to_the_hub() {
    let stand = Stand::with(Options::default(), Some(TOKEN)).await;
    let resolved = stand.resolve(GATED).await.unwrap();
    assert!(resolved.account.is_ok());
    let seen = stand.hub.seen();
    let (hub, storage): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| seen.server == Server::Hub);
    assert!(!hub.is_empty() && !storage.is_empty());
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        hub.iter()
            .all(|seen| seen.authorization.as_deref() == Some(bearer.as_str()))
    );
    assert!(
        storage
            .iter()
            .all(|seen| seen.authorization.is_none() && !seen.cookie)
    );
    // A direct request to the other server has no token either.
    let address = format!("{}/model.gguf", stand.hub.storage_url());
    stand.resolve(&address).await.unwrap_err();
    assert!(stand.hub.seen().last().unwrap().authorization.is_none());
    assert!(!format!("{:?} {:?}", stand.client(), resolved).contains(TOKEN));
}
