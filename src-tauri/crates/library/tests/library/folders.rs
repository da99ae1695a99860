//! Models in all the places where they may be, with real files.

#[allow(dead_code, reason = "written for the tests of another crate")]
#[path = "../../../gguf/tests/reading/writer.rs"]
mod writer;

use std::{
    env, fs,
    fs::File,
    io::{Seek, SeekFrom, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Modality, fit::Keeper};
use tierbar_library::{AppFolders, Entry, Library, LibraryOptions, Origin, Verification};
use tokio_util::sync::CancellationToken;
use writer::{F32, Gguf};

const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1";
const GEMMA: &str = "gemma-3-270m-q4_k_m";

fn real(model: &str) -> PathBuf {
    let folder = env::var_os("TIERBAR_TEST_MODELS")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cache/tierbar/models")))
        .unwrap();
    let path = folder.join(format!("{model}.gguf"));
    assert!(
        path.is_file(),
        "{} is missing: run `make setup`, or set TIERBAR_TEST_MODELS to a folder that has it",
        path.display()
    );
    path
}

/// The model at a place of its own: without a copy where the volume allows.
fn place(model: &str, at: &Path) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    if fs::hard_link(real(model), at).is_err() {
        fs::copy(real(model), at).unwrap();
    }
}

fn ids(entries: &[Entry]) -> Vec<(&str, Keeper)> {
    entries
        .iter()
        .map(|entry| (entry.id.as_str(), entry.keeper))
        .collect()
}

fn verify(library: &Library, spec: &str) -> Verification {
    let cancel = CancellationToken::new();
    library.verify(spec, &cancel).unwrap()
}

fn origin(sha256: &str) -> Origin {
    Origin {
        reference: "owner/repo:Q4_1".to_owned(),
        url: "https://example.com/m.gguf?token=x".parse().unwrap(),
        sha256: sha256.to_owned(),
    }
}

#[test]
fn the_models_of_other_apps_are_used_in_place() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("own")).unwrap();
    // As Ollama and the Hugging Face cache name it: by its hash, without an ending.
    let hash = verify(&scratch_copy(&root, SMOLLM2), "copy").sha256();
    place(SMOLLM2, &at(&format!("ollama/blobs/sha256-{hash}")));
    let manifest = at("ollama/manifests/registry.ollama.ai/library/smollm2/135m");
    fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    let layer = "application/vnd.ollama.image.model";
    let text = format!(r#"{{"layers":[{{"mediaType":"{layer}","digest":"sha256:{hash}"}}]}}"#);
    fs::write(manifest, text).unwrap();
    let blob = at("hub/models--o--r/blobs/00");
    fs::create_dir_all(blob.parent().unwrap()).unwrap();
    fs::copy(real(GEMMA), blob).unwrap();
    let snapshot = at("hub/models--o--r/snapshots/abc");
    fs::create_dir_all(&snapshot).unwrap();
    symlink("../../blobs/00", snapshot.join("gemma.gguf")).unwrap();
    let mut options = LibraryOptions {
        models_dir: at("own"),
        folders: Vec::new(),
        apps: AppFolders {
            lm_studio: vec![at("lm")],
            ollama: vec![at("ollama")],
            hugging_face: vec![at("hub")],
        },
        other_apps: true,
    };
    let library = Library::new(options.clone());
    let entries = library.list().unwrap();
    assert_eq!(
        ids(&entries),
        [
            ("gemma", Keeper::HuggingFace),
            ("smollm2:135m", Keeper::Ollama)
        ]
    );
    for entry in &entries {
        assert!(entry.account.is_ok(), "{:?}", entry.account);
        assert_eq!(library.resolve(entry.id.as_str()).as_ref(), Ok(&entry.path));
    }
    let found = verify(&library, "smollm2:135m");
    assert_eq!(found.expected().as_ref(), Some(&hash));
    assert_eq!(found.matches(), Some(true));
    assert_eq!(verify(&library, "gemma").matches(), None);
    // Nothing of ours is written there.
    assert!(!at("ollama/blobs/.tierbar").exists());
    assert!(!snapshot.join(".tierbar").exists());
    options.other_apps = false;
    assert_eq!(library.with(options).list().unwrap(), []);
}

/// A models folder with a copy of a real model, `copy.gguf`.
fn scratch_copy(root: &tempfile::TempDir, model: &str) -> Library {
    let folder = root.path().join("copies");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(real(model), folder.join("copy.gguf")).unwrap();
    Library::new(folder)
}

#[test]
fn a_file_is_compared_with_its_recorded_checksum() {
    let root = tempfile::tempdir().unwrap();
    let library = scratch_copy(&root, SMOLLM2);
    let path = library.models_dir().join("copy.gguf");
    let first = verify(&library, "copy");
    assert_eq!((first.expected(), first.matches()), (None, None));
    let again = verify(&library, "copy");
    assert_eq!(again.matches(), Some(true));
    library.record(&path, origin(&first.sha256())).unwrap();
    assert_eq!(verify(&library, "copy").matches(), Some(true));
    // One bit turns.
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::End(-1)).unwrap();
    file.write_all(&[0x55]).unwrap();
    drop(file);
    let broken = verify(&library, "copy");
    assert_eq!(broken.matches(), Some(false));
    assert_eq!(broken.expected(), Some(first.sha256()));
    let entry = library.list().unwrap().remove(0);
    let record = entry.record.unwrap();
    assert_eq!(record.reference.as_deref(), Some("owner/repo:Q4_1"));
    assert_eq!(record.last_sha256(), Some(broken.sha256().as_str()));
}

#[test]
fn a_check_can_be_cancelled() {
    let root = tempfile::tempdir().unwrap();
    let library = scratch_copy(&root, SMOLLM2);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = library.verify("copy", &cancel).unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
}

#[test]
fn each_part_of_a_split_model_has_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
    for part in parts {
        fs::write(folder.path().join(part), part).unwrap();
    }
    let library = Library::new(folder.path().to_owned());
    let first = verify(&library, "m");
    assert_eq!(first.parts.len(), 2);
    assert_ne!(first.parts[0].sha256, first.parts[1].sha256);
    assert_eq!(verify(&library, "m").matches(), Some(true));
    library
        .record(&folder.path().join(parts[1]), origin("00"))
        .unwrap();
    assert_eq!(verify(&library, "m").matches(), Some(false));
}

#[test]
fn an_incomplete_copy_is_reported_until_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let bytes = fs::read(real(SMOLLM2)).unwrap();
    let library = Library::new(folder.path().to_owned());
    let whole = bytes.len();
    for length in [whole / 2, whole - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = library.list().unwrap()[0].account.clone().unwrap_err();
        let reported = format!("m is incomplete ({length} of {whole} bytes)");
        assert!(error.message.starts_with(&reported), "{error}");
        assert_eq!(error.code, Code::ModelInvalid);
    }
    fs::write(&path, &bytes).unwrap();
    assert!(library.list().unwrap()[0].account.is_ok());
}

#[test]
fn a_projector_belongs_to_the_model_of_its_width() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let of_kind = |kind, width| {
        Gguf::empty()
            .text("general.architecture", "clip")
            .pair("clip.has_vision_encoder", 7, &[1])
            .text("clip.projector_type", kind)
            .number("clip.vision.projection_dim", width)
            .tensor("v.patch_embd.weight", &[4, 4], F32, 64)
    };
    let projector = |width| of_kind("gemma3", width);
    let narrow = Gguf::model("llama", 1)
        .number("llama.attention.head_count", 4)
        .number("llama.feed_forward_length", 64);
    for (name, file) in [
        ("narrow.gguf", narrow.clone()),
        ("mmproj-narrow.gguf", projector(64)),
        ("mmproj-other.gguf", projector(65)),
        ("seeing.gguf", projector(576)),
        ("sub/alone.gguf", narrow),
    ] {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        file.write(&at(name));
    }
    place(SMOLLM2, &at("smol.gguf"));
    let library = Library::new(folder.path().to_owned());
    let to_load = |name: &str| {
        let account = library.account(&at(name)).unwrap();
        library.projector(&at(name), &account)
    };
    let found = to_load("narrow.gguf").unwrap();
    assert_eq!(found.path, at("mmproj-narrow.gguf"));
    assert_eq!(found.account.unwrap().bytes, 64);
    assert!(to_load("sub/alone.gguf").is_none());
    // An unusable file is reported.
    of_kind("of next year", 64).write(&at("sub/mmproj.gguf"));
    let refused = to_load("sub/alone.gguf").unwrap();
    assert_eq!(refused.path, at("sub/mmproj.gguf"));
    assert_eq!(refused.account.unwrap_err().code, Code::ModelUnsupported);
    fs::remove_file(at("sub/mmproj.gguf")).unwrap();
    let entries = library.list().unwrap();
    let pairs: Vec<_> = entries
        .iter()
        .map(|entry| {
            assert!(entry.account.is_ok(), "{:?}", entry.account);
            let projector = entry.projector.as_ref();
            let loaded = to_load(entry.path.strip_prefix(&folder).unwrap().to_str().unwrap());
            assert_eq!(loaded.as_ref(), projector);
            (
                entry.id.as_str(),
                projector.map(|projector| projector.path.clone()),
            )
        })
        .collect();
    assert_eq!(
        pairs,
        [
            ("alone", None),
            ("narrow", Some(at("mmproj-narrow.gguf"))),
            // It is a projector whatever its name.
            ("smol", Some(at("seeing.gguf"))),
        ]
    );
}

/// A projector for images, of a name and a width.
fn eyes(name: &str, width: u32) -> Gguf {
    Gguf::empty()
        .text("general.architecture", "clip")
        .text("general.name", name)
        .pair("clip.has_vision_encoder", 7, &[1])
        .text("clip.projector_type", "gemma3")
        .number("clip.vision.projection_dim", width)
        .tensor("v.patch_embd.weight", &[4, 4], F32, 64)
}

#[test]
fn a_downloaded_projector_is_for_its_repository_or_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let model = |name: &str| {
        Gguf::model("llama", 1)
            .text("general.name", name)
            .number("llama.attention.head_count", 4)
            .number("llama.feed_forward_length", 64)
    };
    for name in ["One", "Two", "Three"] {
        model(name).write(&at(&format!("{name}.gguf")));
    }
    eyes("Eyes", 64).write(&at("mmproj-a.gguf"));
    eyes("three", 64).write(&at("mmproj-b.gguf"));
    let library = Library::new(folder.path().to_owned());
    for (file, repository) in [
        ("One.gguf", "a/one"),
        ("Two.gguf", "b/two"),
        ("mmproj-a.gguf", "a/one"),
        ("mmproj-b.gguf", "c/other"),
    ] {
        let origin = Origin {
            url: format!("https://hub.test/{repository}/resolve/main/{file}")
                .parse()
                .unwrap(),
            ..origin("00")
        };
        library.record(&at(file), origin).unwrap();
    }
    let projectors: Vec<_> = library
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| (entry.id.0, entry.projector.map(|projector| projector.path)))
        .collect();
    assert_eq!(
        projectors,
        [
            ("One".to_owned(), Some(at("mmproj-a.gguf"))),
            ("Three".to_owned(), Some(at("mmproj-b.gguf"))),
            ("Two".to_owned(), None),
        ]
    );
}

#[test]
fn a_projector_of_ollamas_is_the_one_of_the_manifest() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("own")).unwrap();
    let blob = |digit: &str| format!("ollama/blobs/sha256-{}", digit.repeat(64));
    place(SMOLLM2, &at(&blob("a")));
    let layer = |kind: &str, digit: &str| {
        let media = format!("application/vnd.ollama.image.{kind}");
        format!(
            r#"{{"mediaType":"{media}","digest":"sha256:{}"}}"#,
            digit.repeat(64)
        )
    };
    let layers = [layer("model", "a"), layer("projector", "b")].join(",");
    let manifest = at("ollama/manifests/registry.ollama.ai/library/seeing/latest");
    fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    fs::write(manifest, format!(r#"{{"layers":[{layers}]}}"#)).unwrap();
    let library = Library::new(LibraryOptions {
        models_dir: at("own"),
        apps: AppFolders {
            ollama: vec![at("ollama")],
            ..AppFolders::default()
        },
        other_apps: true,
        ..LibraryOptions::default()
    });
    let found = || {
        let entry = library.list().unwrap().remove(0);
        let account = entry.account.unwrap();
        assert_eq!(library.projector(&entry.path, &account), entry.projector);
        entry.projector.unwrap()
    };
    let missing = found().account.unwrap_err();
    assert_eq!(missing.code, Code::ModelMissing, "{missing}");
    eyes("Eyes", 576).write(&at(&blob("b")));
    let projector = found();
    assert_eq!(projector.path, at(&blob("b")));
    assert_eq!(
        projector.input_modalities(),
        [Modality::Text, Modality::Image]
    );
}

#[test]
fn a_projector_of_another_model_or_cut_short_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    place(SMOLLM2, &at("smol.gguf"));
    let library = Library::new(folder.path().to_owned());
    let problem = || {
        let entry = library.list().unwrap().remove(0);
        assert!(entry.account.is_ok());
        let projector = entry.projector.unwrap();
        assert_eq!(projector.input_modalities(), [Modality::Text]);
        let error = projector.account.unwrap_err();
        assert!(
            error
                .hint
                .is_some_and(|hint| hint.contains("download the projector"))
        );
        error.message
    };
    eyes("Other", 2048).write(&at("mmproj.gguf"));
    let foreign = problem();
    for part in [
        "mmproj.gguf is the projector of another model",
        "2048",
        "576",
    ] {
        assert!(foreign.contains(part), "{foreign}");
    }
    eyes("Smol", 576).write(&at("mmproj.gguf"));
    let bytes = fs::read(at("mmproj.gguf")).unwrap();
    fs::write(at("mmproj.gguf"), &bytes[..bytes.len() - 8]).unwrap();
    let cut = problem();
    assert!(cut.starts_with("mmproj.gguf is incomplete"), "{cut}");
    // Of two models, neither is known to be the one.
    place(GEMMA, &at("gemma.gguf"));
    let entries = library.list().unwrap();
    assert!(entries.iter().all(|entry| entry.projector.is_none()));
}

#[test]
fn a_model_goes_with_its_projector_unless_another_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let model = Gguf::model("llama", 1)
        .number("llama.attention.head_count", 4)
        .number("llama.feed_forward_length", 64);
    for name in ["one.gguf", "two.gguf"] {
        model.write(&at(name));
    }
    eyes("Eyes", 64).write(&at("mmproj.gguf"));
    let library = Library::new(folder.path().to_owned());
    library.remove("one", true, &[]).unwrap();
    assert!(!at("one.gguf").exists() && at("mmproj.gguf").exists());
    let verified = verify(&library, "two");
    let projector = verified.projector.unwrap();
    assert_eq!(projector.path, at("mmproj.gguf"));
    // Its hash counts as the model's does.
    let mut bytes = fs::read(at("mmproj.gguf")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(at("mmproj.gguf"), bytes).unwrap();
    library.record(&at("mmproj.gguf"), origin("00")).unwrap();
    let damaged = verify(&library, "two");
    assert_eq!(damaged.matches(), Some(false));
    assert_eq!(damaged.damaged(), [at("mmproj.gguf")]);
    library.remove("two", true, &[]).unwrap();
    assert!(!at("two.gguf").exists() && !at("mmproj.gguf").exists());
}

#[test]
fn a_split_model_is_read_again_if_any_part_changes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let first = Gguf::model("llama", 1).part(0, 2, 2);
    let second = |bytes| {
        Gguf::empty()
            .part(1, 2, 2)
            .tensor("output.weight", &[64, bytes / 256], F32, bytes)
    };
    first.write(&at("m-00001-of-00002.gguf"));
    second(1024).write(&at("m-00002-of-00002.gguf"));
    let library = Library::new(folder.path().to_owned());
    let entry = library.list().unwrap().remove(0);
    let account = entry.account.unwrap();
    assert_eq!((entry.id.as_str(), account.parts), ("m", 2));
    assert_eq!(account.file_bytes, entry.size_bytes);
    second(2048).write(&at("m-00002-of-00002.gguf"));
    let again = library.account(&entry.path).unwrap();
    assert_eq!(again.file_bytes, account.file_bytes + 1024);
    assert_eq!(library.list().unwrap()[0].account, Ok(again));
    fs::remove_file(at("m-00002-of-00002.gguf")).unwrap();
    let error = library.account(&entry.path).unwrap_err();
    assert_eq!(error.code, Code::ModelMissing);
    let error = library.list().unwrap().remove(0).account.unwrap_err();
    assert!(error.message.contains("m-00002-of-00002.gguf"), "{error}");
}

#[test]
fn ten_thousand_files_hide_no_model() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10_000 {
        fs::write(folder.path().join(format!("{number}.gguf")), "WORD").unwrap();
    }
    place(SMOLLM2, &folder.path().join("real.gguf"));
    let library = Library::new(folder.path().to_owned());
    let entries = library.list().unwrap();
    assert_eq!(entries.len(), 10_001);
    assert!(entries.iter().any(|entry| entry.account.is_ok()));
    assert_eq!(library.list().unwrap(), entries);
}

#[test]
fn only_listed_models_are_verified() {
    let root = tempfile::tempdir().unwrap();
    let library = scratch_copy(&root, SMOLLM2);
    let secret = root.path().join("secret");
    fs::write(&secret, "a password").unwrap();
    let cancel = CancellationToken::new();
    let spec = secret.to_str().unwrap();
    let error = library.verify(spec, &cancel).unwrap_err();
    assert_eq!(error.code, Code::ModelMissing, "{error}");
}
