//! From a reference to the files to download.

use super::{GIB, Stand, repository, suit, url};
use crate::support::projector::{CAUSAL, Kind, WHOLE, write};
use std::path::Path;
use tierbar_core::{
    Code, Modality, budget::Placement, config::KvCache, download::Include, fit::Machine,
};
use tierbar_fetch::FileSpec;
use tierbar_library::{
    hub::{HubFile as PinnedFile, PinnedQuant, QuantTarget},
    reference::Reference,
};
use tierbar_tests::{
    binaries,
    hub::{GEMMA, HubFile, HubRepository, Options, PUBLIC, SMOLLM2},
};

const GEMMA_HASH: &str = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";

#[tokio::test]
async fn a_quant_resolves_to_a_file_at_a_commit() {
    let stand = Stand::new().await;
    let commit = HubRepository::tests_models().commit();
    let resolved = stand.resolve(&format!("{PUBLIC}:q4_k_m")).await.unwrap();
    assert_eq!(resolved.reference, format!("{PUBLIC}:Q4_K_M"));
    assert_eq!(resolved.revision.as_deref(), Some(commit.as_str()));
    assert_eq!(resolved.total_bytes(), Some(253_113_024));
    assert!(!resolved.estimated);
    assert_eq!(
        resolved.account.as_ref().unwrap(),
        &tierbar_gguf::read(&binaries::model(GEMMA)).unwrap()
    );
    let specs = resolved.specs(Path::new("/models"), Include::All);
    assert_eq!(specs.len(), 1);
    assert_eq!(
        specs[0].url,
        url(&format!(
            "{}/{PUBLIC}/resolve/{commit}/{GEMMA}",
            stand.hub.url()
        ))
    );
    assert_eq!(specs[0].dest, Path::new("/models").join(GEMMA));
    assert_eq!(specs[0].size, Some(253_113_024));
    assert_eq!(specs[0].sha256.as_deref(), Some(GEMMA_HASH));
}

/// One model in three quants by size; all have SmolLM2's header.
fn three_quants() -> HubRepository {
    let of = |quant: &str| HubFile::model(&format!("Smol-{quant}.gguf"), SMOLLM2);
    HubRepository {
        entries: vec![
            serde_json::json!({"type": "file", "path": "Smol-Q2_K.gguf", "size": 60_000_000}),
            serde_json::json!({"type": "file", "path": "Smol-F16.gguf", "size": 270_000_000}),
        ],
        ..HubRepository::new("a/Smol-GGUF", vec![of("Q4_K_M")])
    }
}

#[tokio::test]
async fn a_repository_resolves_to_the_quant_that_fits() {
    let stand = Stand::with(
        Options {
            repositories: vec![three_quants()],
            ..Options::default()
        },
        None,
    )
    .await;
    let reference = Reference::parse("a/Smol-GGUF", |_| None).unwrap();
    let chosen = async |ram: u64, context: u32| {
        let suit = QuantTarget {
            machine: Machine::mac(ram),
            context: (context, KvCache::F16).into(),
        };
        let offers = stand
            .client
            .offers(&repository("a/Smol-GGUF"), &suit, &|_| false)
            .await
            .unwrap();
        offers
            .files
            .iter()
            .find(|file| file.recommended)
            .map(|file| file.quant.clone())
    };
    // 16 bits only cost speed if a smaller quant exists.
    assert_eq!(chosen(16 * GIB, 4096).await.as_deref(), Some("Q4_K_M"));
    // Of 3 GiB, 3 are reserved for the system, so nothing runs.
    assert_eq!(chosen(3 * GIB, 4096).await, None);
    let resolved = stand
        .client
        .resolve(&reference, &suit(16 * GIB), &|_, _| false)
        .await
        .unwrap();
    assert_eq!(resolved.reference, "a/Smol-GGUF:Q4_K_M");
    assert_eq!(resolved.offers.len(), 3);
    // The smallest quant is resolved even if nothing runs, to give the reason.
    let resolved = stand
        .client
        .resolve(&reference, &suit(3 * GIB), &|_, _| false)
        .await;
    assert_eq!(
        resolved.unwrap_err().code,
        Code::RepositoryUnknown,
        "the tree names a file that is not there"
    );
}

#[tokio::test]
async fn offers_have_verdicts_from_one_header() {
    let stand = Stand::with(
        Options {
            repositories: vec![three_quants()],
            ..Options::default()
        },
        None,
    )
    .await;
    let offers = stand
        .client
        .offers(&repository("a/Smol-GGUF"), &suit(16 * GIB), &|reference| {
            reference.ends_with(":Q2_K")
        })
        .await
        .unwrap();
    let shown: Vec<_> = offers
        .files
        .iter()
        .map(|file| {
            let fit = file.fit.as_ref().unwrap();
            (
                file.quant.as_str(),
                fit.placement,
                fit.estimated,
                file.installed,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("Q2_K", Placement::Resident, true, true),
            ("Q4_K_M", Placement::Resident, false, false),
            ("F16", Placement::Resident, true, false),
        ]
    );
    let of_models = stand
        .hub
        .seen()
        .iter()
        .filter(|seen| seen.path.contains("/resolve/"))
        .count();
    assert_eq!(of_models, 1);
}

#[tokio::test]
async fn catalog_facts_are_checked_against_the_hub() {
    let stand = Stand::new().await;
    let commit = HubRepository::tests_models().commit();
    let known = PinnedQuant {
        repository: repository(PUBLIC),
        revision: Some(commit),
        quant: "Q4_K_M".to_owned(),
        file: GEMMA.to_owned(),
        size: Some(253_113_024),
        sha256: Some(GEMMA_HASH.to_uppercase()),
        projector: None,
    };
    let resolve = async |pinned: &PinnedQuant| {
        stand
            .client
            .pinned(pinned, &suit(16 * GIB), &|_, _| false)
            .await
    };
    let resolved = resolve(&known).await.unwrap();
    assert_eq!(resolved.files[0].sha256.as_deref(), Some(GEMMA_HASH));
    let unknown = PinnedQuant {
        size: None,
        sha256: None,
        ..known.clone()
    };
    assert_eq!(resolve(&unknown).await.unwrap().files, resolved.files);
    let other_hash = PinnedQuant {
        sha256: Some("0".repeat(64)),
        ..known.clone()
    };
    let error = resolve(&other_hash).await.unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert!(error.message.contains(GEMMA_HASH), "{error}");
    let other_size = PinnedQuant {
        size: Some(1),
        ..known.clone()
    };
    assert_eq!(resolve(&other_size).await.unwrap_err().code, Code::Corrupt);
    // A size without a hash is not reliable: the hub's counts.
    let only_size = PinnedQuant {
        sha256: None,
        ..other_size.clone()
    };
    assert_eq!(resolve(&only_size).await.unwrap().files, resolved.files);
    // A branch may have other contents; so may a commit that no longer exists.
    for revision in [None, Some("0".repeat(40))] {
        let moved = PinnedQuant {
            revision,
            ..other_hash.clone()
        };
        let resolved = resolve(&moved).await.unwrap();
        assert_eq!(resolved.files[0].sha256.as_deref(), Some(GEMMA_HASH));
    }
}

#[tokio::test]
async fn a_file_that_is_gone_is_found_on_the_main_branch() {
    let stand = Stand::new().await;
    let commit = HubRepository::tests_models().commit();
    let pinned = |revision: Option<&str>, file: &str, quant: &str| PinnedQuant {
        repository: repository(PUBLIC),
        revision: revision.map(str::to_owned),
        quant: quant.to_owned(),
        file: file.to_owned(),
        size: Some(1),
        sha256: Some("0".repeat(64)),
        projector: None,
    };
    let resolve = async |pinned: &PinnedQuant| {
        let suit = suit(16 * GIB);
        stand.client.pinned(pinned, &suit, &|_, _| false).await
    };
    // The commit is gone, and the file has another name since.
    for revision in [None, Some("0".repeat(40)), Some(commit)] {
        let renamed = pinned(revision.as_deref(), "old-name-Q4_K_M.gguf", "Q4_K_M");
        let resolved = resolve(&renamed).await.unwrap();
        assert_eq!(
            resolved.files[0].path.as_deref(),
            Some(GEMMA),
            "{revision:?}"
        );
        assert_eq!(resolved.files[0].sha256.as_deref(), Some(GEMMA_HASH));
    }
    // Neither the file nor the quant: the error names the file, and what there is.
    let gone = resolve(&pinned(None, "old-name-Q2_K.gguf", "Q2_K")).await;
    let error = gone.unwrap_err();
    assert_eq!(error.code, Code::RepositoryUnknown);
    assert!(error.message.contains("old-name-Q2_K.gguf"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains(GEMMA)));
}

#[tokio::test]
async fn a_url_resolves_to_a_file_with_its_servers_facts() {
    let stand = Stand::new().await;
    let commit = HubRepository::tests_models().commit();
    let address = format!("{}/{PUBLIC}/resolve/{commit}/{SMOLLM2}", stand.hub.url());
    let resolved = stand
        .resolve(&format!("{address}?download=true"))
        .await
        .unwrap();
    assert_eq!(resolved.reference, address);
    assert_eq!(resolved.quant.as_deref(), Some("Q4_1"));
    assert_eq!(resolved.files[0].name, SMOLLM2);
    assert_eq!(resolved.files[0].size, Some(98_362_432));
    assert!(
        resolved.files[0]
            .sha256
            .as_deref()
            .is_some_and(|hash| hash.starts_with("b179c9"))
    );
    assert_eq!(
        resolved.files[0].url,
        url(&format!("{address}?download=true"))
    );
}

#[tokio::test]
async fn a_taken_name_gets_the_repositorys_prefix() {
    let stand = Stand::new().await;
    let reference = Reference::parse(&format!("{PUBLIC}:Q4_K_M"), |_| None).unwrap();
    let taken = |name: &str, from: &tierbar_fetch::Url| {
        assert!(from.path().ends_with(GEMMA));
        name.eq_ignore_ascii_case(GEMMA)
    };
    let resolved = stand
        .client
        .resolve(&reference, &suit(16 * GIB), &taken)
        .await
        .unwrap();
    assert_eq!(resolved.files[0].name, format!("tiny-{GEMMA}"));
}

/// A repository whose first projector is another model's.
fn seeing(others: &[(&str, Kind)]) -> HubRepository {
    let folder = tempfile::tempdir().unwrap();
    let projector = |(name, kind): &(&str, Kind)| {
        let path = folder.path().join("mmproj.gguf");
        write(*kind, &path);
        HubFile::new(name, &std::fs::read(path).unwrap())
    };
    let mut files = vec![HubFile::model("Seeing-Q4_1.gguf", SMOLLM2)];
    files.extend(others.iter().map(projector));
    HubRepository::new("a/Seeing-GGUF", files)
}

#[tokio::test]
async fn a_model_resolves_with_the_projector_that_fits() {
    let repository_of = |projectors: &[(&str, Kind)]| Options {
        repositories: vec![seeing(projectors)],
        ..Options::default()
    };
    let several = repository_of(&[
        ("mmproj-F32.gguf", CAUSAL),
        ("mmproj-F16.gguf", WHOLE),
        ("mmproj-BF16.gguf", CAUSAL),
    ]);
    let stand = Stand::with(several, None).await;
    let resolved = stand.resolve("a/Seeing-GGUF:Q4_1").await.unwrap();
    let projector = resolved.usable_projector().unwrap();
    assert_eq!(projector.file.path.as_deref(), Some("mmproj-BF16.gguf"));
    assert_eq!(projector.file.name, "mmproj-Seeing-BF16.gguf");
    assert_eq!(
        projector.account.modalities(),
        [Modality::Text, Modality::Image]
    );
    let names = |include| -> Vec<String> {
        let specs = resolved.specs(Path::new("/m"), include);
        let name = |spec: &FileSpec| spec.dest.file_name().unwrap().to_str().unwrap().to_owned();
        specs.iter().map(name).collect()
    };
    let (model, file) = ("Seeing-Q4_1.gguf", "mmproj-Seeing-BF16.gguf");
    assert_eq!(names(Include::All), [model, file]);
    assert_eq!(names(Include::Model), [model]);
    assert_eq!(names(Include::Projector), [file]);
    // The catalog's facts are a check on it, too.
    let published = seeing(&[("mmproj-F16.gguf", CAUSAL)]);
    let sha256 = published.files.last().unwrap().sha256.clone();
    let size = published.files.last().unwrap().content.size();
    let pinned = |sha256: String| PinnedQuant {
        repository: repository("a/Seeing-GGUF"),
        revision: Some(published.commit()),
        quant: "Q4_1".to_owned(),
        file: "Seeing-Q4_1.gguf".to_owned(),
        size: None,
        sha256: None,
        projector: Some(PinnedFile {
            path: "mmproj-F16.gguf".to_owned(),
            size,
            sha256: Some(sha256),
        }),
    };
    let options = Options {
        repositories: vec![published.clone()],
        ..Options::default()
    };
    let stand = Stand::with(options, None).await;
    let resolve = async |pinned: PinnedQuant| {
        let suit = suit(16 * GIB);
        stand.client.pinned(&pinned, &suit, &|_, _| false).await
    };
    assert!(
        resolve(pinned(sha256))
            .await
            .unwrap()
            .usable_projector()
            .is_some()
    );
    let error = resolve(pinned("0".repeat(64))).await.unwrap_err();
    assert!(error.message.contains("mmproj-F16.gguf"), "{error}");
}

#[tokio::test]
async fn projectors_of_other_models_are_explained() {
    let options = Options {
        repositories: vec![seeing(&[("mmproj-F16.gguf", WHOLE)])],
        ..Options::default()
    };
    let stand = Stand::with(options, None).await;
    let resolved = stand.resolve("a/Seeing-GGUF:Q4_1").await.unwrap();
    assert!(resolved.account.is_ok());
    assert_eq!(resolved.specs(Path::new("/m"), Include::All).len(), 1);
    let why = resolved.projector.unwrap_err().message;
    assert!(
        why.contains("mmproj-F16.gguf") && why.contains("another model"),
        "{why}"
    );
    assert!(why.contains("640") && why.contains("576"), "{why}");
}
