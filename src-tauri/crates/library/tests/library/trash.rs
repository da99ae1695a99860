//! Deleting models. Each test runs in a process of its own, whose Trash is in a folder of its own.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};
use tierbar_core::{Code, Error};
use tierbar_library::{AppFolders, Library, LibraryOptions, Origin};

/// Set where a test's body shall run: the folder of this test alone.
const ROOM: &str = "TIERBAR_TRASH_TEST";

/// Runs `body` with a room whose `data` is `XDG_DATA_HOME`, and so holds the Trash; without, there is no home folder.
fn apart(test: &str, data: Option<&str>, body: fn(&Path)) {
    if let Some(room) = env::var_os(ROOM) {
        return body(Path::new(&room));
    }
    let room = tempfile::tempdir().unwrap();
    fs::create_dir(room.path().join("models")).unwrap();
    fs::write(room.path().join("file"), "").unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("trash::{test}"), "--nocapture"]);
    command.env(ROOM, room.path()).env_remove("HOME");
    match data {
        Some(data) => command.env("XDG_DATA_HOME", room.path().join(data)),
        None => command.env_remove("XDG_DATA_HOME"),
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // A filter that matches no test succeeds too.
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("1 passed"), "{summary}");
}

fn write(path: &Path, name: &str) -> PathBuf {
    let path = path.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, name).unwrap();
    path
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn origin() -> Origin {
    Origin {
        reference: "o/r".to_owned(),
        url: "https://example.com/x.gguf".parse().unwrap(),
        sha256: "00".to_owned(),
    }
}

#[cfg_attr(
    target_vendor = "apple",
    ignore = "the Trash of macOS is the user's own"
)]
#[test]
fn a_model_goes_to_the_trash_with_all_its_parts_and_its_record() {
    let test = "a_model_goes_to_the_trash_with_all_its_parts_and_its_record";
    apart(test, Some("data"), |room| {
        let models = room.join("models");
        let parts = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
        for part in parts {
            write(&models, part);
        }
        write(&models, "other.gguf");
        let library = Library::new(models.clone());
        library.record(&models.join(parts[0]), origin()).unwrap();
        assert!(library.remove("m", false, &[]).unwrap());
        assert_eq!(names(&models), [".tierbar", "other.gguf"]);
        assert_eq!(names(&models.join(".tierbar")), Vec::<String>::new());
        let record = "m-00001-of-00002.gguf.json";
        assert_eq!(
            names(&room.join("data/Trash/files")),
            [parts[0], record, parts[1]]
        );
        let info = room.join("data/Trash/info/m-00001-of-00002.gguf.trashinfo");
        let info = fs::read_to_string(info).unwrap();
        assert!(info.contains("/models/m-00001-of-00002.gguf"), "{info}");
    });
}

#[cfg_attr(
    target_vendor = "apple",
    ignore = "the Trash of macOS is the user's own"
)]
#[test]
fn deleting_a_link_keeps_its_target() {
    let test = "deleting_a_link_keeps_its_target";
    apart(test, Some("data"), |room| {
        let real = write(room, "elsewhere/real.gguf");
        symlink(&real, room.join("models/link.gguf")).unwrap();
        let library = Library::new(room.join("models"));
        assert!(library.remove("link", false, &[]).unwrap());
        assert_eq!(library.list().unwrap(), []);
        assert!(real.is_file());
    });
}

#[cfg_attr(
    target_vendor = "apple",
    ignore = "the Trash of macOS is the user's own"
)]
#[test]
fn without_a_trash_deletion_needs_permanently() {
    let test = "without_a_trash_deletion_needs_permanently";
    // No folder can be made below a file.
    apart(test, Some("file/data"), no_trash);
}

#[cfg_attr(
    target_vendor = "apple",
    ignore = "the Trash of macOS is the user's own"
)]
#[test]
fn a_user_without_a_home_folder_has_no_trash() {
    apart("a_user_without_a_home_folder_has_no_trash", None, no_trash);
}

fn no_trash(room: &Path) {
    let model = write(room, "models/a.gguf");
    let library = Library::new(room.join("models"));
    library.record(&model, origin()).unwrap();
    let error = library.remove("a", false, &[]).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains("cannot be moved to the Trash"));
    assert!(error.hint.unwrap().contains("permanently"));
    assert!(model.is_file());
    assert!(!library.remove("a", true, &[]).unwrap());
    assert_eq!(names(&room.join("models")), [".tierbar"]);
    assert_eq!(names(&room.join("models/.tierbar")), Vec::<String>::new());
}

#[test]
fn a_loaded_model_is_not_deleted() {
    let room = tempfile::tempdir().unwrap();
    let models = room.path().join("models");
    write(&models, "m-00001-of-00002.gguf");
    let second = write(&models, "m-00002-of-00002.gguf");
    // Whatever name it was loaded by.
    let link = room.path().join("link");
    symlink(&second, &link).unwrap();
    let library = Library::new(models);
    let error = library.remove("m", true, &[link]).unwrap_err();
    assert_eq!(error.code, Code::ModelInUse);
    assert_eq!(library.list().unwrap()[0].parts.len(), 2);
}

#[cfg_attr(
    target_vendor = "apple",
    ignore = "the Trash of macOS is the user's own"
)]
#[test]
fn our_models_are_deleted_by_any_name() {
    let test = "our_models_are_deleted_by_any_name";
    apart(test, Some("data"), |room| {
        let models = room.join("models");
        let first = write(&models, "a.gguf");
        fs::hard_link(&first, models.join("b.gguf")).unwrap();
        write(&models, "one/two/deep.gguf");
        write(&models, "mmproj-F16.gguf");
        write(&models, "c.gguf");
        symlink(&models, room.join("way")).unwrap();
        let library = Library::new(models.clone());
        let way = room.join("way/c.gguf");
        let loaded = library.remove("b", true, &[first]).unwrap_err();
        assert_eq!(loaded.code, Code::ModelInUse);
        for spec in [
            "b",
            "one/two/deep",
            "mmproj-F16.gguf",
            way.to_str().unwrap(),
        ] {
            assert!(library.remove(spec, false, &[]).unwrap(), "{spec}");
        }
        assert_eq!(names(&models), ["a.gguf", "one"]);
        assert_eq!(names(&models.join("one/two")), Vec::<String>::new());
    });
}

#[test]
fn other_files_are_not_deleted() {
    let room = tempfile::tempdir().unwrap();
    let models = room.path().join("models");
    let library = Library::new(models.clone());
    for name in ["notes.txt", "m.gguf.part", ".hidden.gguf", ".cache/m.gguf"] {
        let path = write(&models, name);
        let error = library.remove(name, true, &[]).unwrap_err();
        assert_eq!(error.code, Code::NotOurs, "{name}");
        assert!(path.is_file());
    }
}

#[test]
fn models_of_other_apps_are_never_deleted() {
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().join(name);
    fs::create_dir(at("models")).unwrap();
    let hash = "ab".repeat(32);
    let blob = write(&at("ollama/blobs"), &format!("sha256-{hash}"));
    let manifest = at("ollama/manifests/registry.ollama.ai/library/gemma3/1b");
    fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    let layer = "application/vnd.ollama.image.model";
    let text = format!(r#"{{"layers":[{{"mediaType":"{layer}","digest":"sha256:{hash}"}}]}}"#);
    fs::write(manifest, text).unwrap();
    write(&at("added"), "added.gguf");
    write(&at("lm/p/r"), "lm.gguf");
    write(&at("hub/models--o--r/snapshots/1"), "hub.gguf");
    let outside = write(&at("outside"), "outside.gguf");
    symlink(at("lm/p"), at("models/linked")).unwrap();
    let linked = at("models/linked/r/lm.gguf");
    let library = Library::new(LibraryOptions {
        models_dir: at("models"),
        folders: vec![at("added")],
        apps: AppFolders {
            lm_studio: vec![at("lm")],
            ollama: vec![at("ollama")],
            hugging_face: vec![at("hub")],
        },
        other_apps: true,
    });
    let listed = library.list().unwrap().len();
    assert_eq!(listed, 4);
    let refused = |spec: &str| -> Error { library.remove(spec, true, &[]).unwrap_err() };
    for (spec, how) in [
        ("gemma3:1b", "ollama rm gemma3:1b"),
        ("added", "library.folders"),
        ("lm", "LM Studio"),
        ("hub", "hf cache rm"),
        (outside.to_str().unwrap(), "where it is"),
        // Also by another way to it.
        (linked.to_str().unwrap(), "LM Studio"),
        (blob.to_str().unwrap(), "ollama rm"),
    ] {
        let error = refused(spec);
        assert_eq!(error.code, Code::NotOurs, "{spec}: {error}");
        assert!(error.hint.as_ref().unwrap().contains(how), "{error:?}");
    }
    assert!(
        refused("lm")
            .message
            .contains(at("models/linked").to_str().unwrap())
            || refused("lm").message.contains(at("lm").to_str().unwrap())
    );
    assert_eq!(library.list().unwrap().len(), listed);
    assert!(outside.is_file());
}
