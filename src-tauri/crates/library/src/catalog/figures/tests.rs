use super::*;
use crate::{catalog::catalog, hub::HubFile, reference::Repository};

const LATER: &str = "2099-01-01T00:00:00Z";
const COMMIT: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

fn entry() -> &'static Entry {
    catalog().find("qwen3.5-27b").unwrap()
}

fn hub(files: &[(&str, u64)]) -> HubFiles {
    let files = files.iter().map(|(path, size)| HubFile {
        path: (*path).to_owned(),
        size: *size,
        sha256: Some("ab".repeat(32)),
    });
    HubFiles::new(
        Repository::new(&entry().repository).unwrap(),
        COMMIT.to_owned(),
        files.collect(),
    )
}

fn merged(figures: &HubFigures) -> Entry {
    catalog().with(figures).find(&entry().id).unwrap().clone()
}

#[test]
fn files_get_the_hubs_figures_and_facts_stay() {
    let mut figures = HubFigures::default();
    let file = &entry().quant("UD-IQ2_M").unwrap().file;
    figures.update(entry(), &hub(&[(file, 7)]), LATER);
    let now = merged(&figures);
    let quant = now.quant("UD-IQ2_M").unwrap();
    assert_eq!(quant.size_bytes, Some(7));
    assert_eq!(quant.sha256.as_deref(), Some("ab".repeat(32).as_str()));
    assert_eq!(now.revision(quant), Some(COMMIT));
    assert_eq!(now.architecture, entry().architecture);
    // What the hub has no more stays as it was, with its own commit.
    let gone = now.quant("Q4_K_M").unwrap();
    assert_eq!(Some(gone), entry().quant("Q4_K_M"));
    assert_eq!(now.revision(gone), entry().revision.as_deref());
}

#[test]
fn a_renamed_file_is_found_by_its_quant() {
    let mut figures = HubFigures::default();
    figures.update(entry(), &hub(&[("new/Qwen-27B-Q4_K_M.gguf", 9)]), LATER);
    let now = merged(&figures);
    assert_eq!(
        now.quant("Q4_K_M").unwrap().file,
        "new/Qwen-27B-Q4_K_M.gguf"
    );
}

#[test]
fn a_split_file_keeps_what_was_known() {
    let parts = [
        ("Q-Q4_K_M-00001-of-00002.gguf", 1),
        ("Q-Q4_K_M-00002-of-00002.gguf", 1),
    ];
    let mut figures = HubFigures::default();
    figures.update(entry(), &hub(&parts), LATER);
    assert_eq!(merged(&figures), *entry());
}

#[test]
fn a_projector_that_the_hub_lacks_is_not_listed() {
    let entry = catalog().find("gemma-4-e4b").unwrap();
    assert!(entry.projector.is_some());
    let listed = |figures: &HubFigures| {
        let catalog = catalog().with(figures);
        catalog.find(&entry.id).unwrap().projector.clone()
    };
    let mut figures = HubFigures::default();
    figures.update(entry, &hub(&[("a-Q4_K_M.gguf", 9)]), LATER);
    assert_eq!(listed(&figures), None);
    let stored = serde_json::to_vec(&figures).unwrap();
    assert_eq!(HubFigures::parse(&stored), Ok(figures.clone()));
    // What was seen before the list says nothing, also after an update that did not reach this repository.
    let mut older = HubFigures {
        refreshed: Some(LATER.to_owned()),
        ..HubFigures::default()
    };
    let seen = "2001-01-01T00:00:00Z";
    older.update(entry, &hub(&[("a-Q4_K_M.gguf", 9)]), seen);
    assert_eq!(listed(&older), entry.projector);
    let files = [("a-Q4_K_M.gguf", 9), ("mmproj-F16.gguf", 1)];
    figures.update(entry, &hub(&files), LATER);
    assert_eq!(listed(&figures), entry.projector);
}

#[test]
fn a_newer_catalog_wins_over_older_figures() {
    let mut figures = HubFigures::default();
    let known = |quant: &str| KnownFile {
        quant: quant.to_owned(),
        file: "x.gguf".to_owned(),
        size_bytes: 5,
        sha256: None,
        revision: COMMIT.to_owned(),
        seen: "2001-01-01T00:00:00Z".to_owned(),
    };
    figures.keep(&entry().id, known("Q4_K_M"));
    // Its hash is not in the catalog: older figures are better than none.
    figures.keep(&entry().id, known("UD-IQ2_M"));
    let now = merged(&figures);
    assert_eq!(now.quant("Q4_K_M"), entry().quant("Q4_K_M"));
    assert_eq!(now.quant("UD-IQ2_M").unwrap().file, "x.gguf");
}

#[test]
fn figures_survive_a_catalog_without_the_entry() {
    let mut figures = HubFigures {
        refreshed: Some(LATER.to_owned()),
        ..HubFigures::default()
    };
    figures.update(entry(), &hub(&[("a-Q4_K_M.gguf", 9)]), LATER);
    let mut other = figures.clone();
    let files = other.files.remove(&entry().id).unwrap();
    other.files.insert("gone".to_owned(), files);
    assert_eq!(catalog().with(&other), *catalog());
    let stored = serde_json::to_vec(&other).unwrap();
    assert_eq!(HubFigures::parse(&stored), Ok(other));
}

#[test]
fn unusable_stored_figures_are_refused() {
    let stored = |version: u32, file: &str, sum: &str| {
        let known = serde_json::json!({
            "quant": "Q4_K_M", "file": file, "size_bytes": 9, "sha256": sum, "revision": COMMIT, "seen": LATER,
        });
        serde_json::to_vec(&serde_json::json!({
            "version": version, "refreshed": LATER, "files": {"qwen3.5-27b": [known]},
        }))
        .unwrap()
    };
    let sum = "ab".repeat(32);
    let good = HubFigures::parse(&stored(1, "a.gguf", &sum)).unwrap();
    assert!(good.known_file("qwen3.5-27b", "Q4_K_M").is_some());
    let other = HubFigures::parse(&stored(0, "a.gguf", &sum)).unwrap_err();
    assert!(other.contains("version 0"), "{other}");
    for broken in [b"".as_slice(), b"{", b"[]", b"{\"version\":1}"] {
        assert!(HubFigures::parse(broken).is_err(), "{broken:?}");
    }
    for (file, sum) in [("../a.gguf", &*sum), ("a.txt", &sum), ("a.gguf", "x")] {
        let left = HubFigures::parse(&stored(1, file, sum)).unwrap();
        assert_eq!(
            left.known_file("qwen3.5-27b", "Q4_K_M"),
            None,
            "{file} {sum}"
        );
    }
}
