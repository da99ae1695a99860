use super::*;
use crate::AppFolders;
use std::{
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    process::Command,
};
use tierbar_skip::{Call, denying};

fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    folder
}

/// The models of a folder with `own` and `added` in it.
fn places(root: &tempfile::TempDir) -> LibraryOptions {
    LibraryOptions {
        models_dir: root.path().join("own"),
        folders: vec![root.path().join("added")],
        ..LibraryOptions::default()
    }
}

fn ids(options: &LibraryOptions) -> Vec<(String, Keeper)> {
    let models = take(options).models;
    models
        .into_iter()
        .map(|model| (model.id.0, model.keeper))
        .collect()
}

fn own(root: &tempfile::TempDir) -> Vec<String> {
    let ids = ids(&root.path().to_owned().into());
    ids.into_iter().map(|(id, _)| id).collect()
}

#[test]
fn the_models_folder_is_read_one_deep_an_added_one_four() {
    let root = folder(&[
        "own/b.gguf",
        "own/a.GGUF",
        "own/sub/c.gguf",
        "own/sub/deeper/d.gguf",
        "added/publisher/repository/quant/more/e.gguf",
        "added/1/2/3/4/5/f.gguf",
    ]);
    assert_eq!(
        ids(&places(&root)),
        [
            ("a".to_owned(), Keeper::Tierbar),
            ("b".to_owned(), Keeper::Tierbar),
            ("c".to_owned(), Keeper::Tierbar),
            ("e".to_owned(), Keeper::Folder),
        ]
    );
}

#[test]
fn only_complete_regular_gguf_files_are_models() {
    let root = folder(&[
        "a.gguf",
        "mmproj-BF16.gguf",
        "sub/model-mmproj-f16.gguf",
        ".hidden.gguf",
        ".cache/e.gguf",
        "f.gguf.part",
        "g.gguf.download",
        "h.gguf.crdownload",
        "i.gguf.tmp",
        "j.gguf",
        "j.gguf.aria2",
        "notes.txt",
        ".gguf",
    ]);
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("folder.gguf")).unwrap();
    symlink("nowhere", at("broken.gguf")).unwrap();
    symlink("/dev/null", at("device.gguf")).unwrap();
    let _socket = UnixListener::bind(at("socket.gguf")).unwrap();
    let made = Command::new("mkfifo").arg(at("pipe.gguf")).status();
    assert!(made.unwrap().success());
    assert_eq!(own(&root), ["a"]);
    assert_eq!(take(&root.path().to_owned().into()).projectors.len(), 2);
}

#[test]
fn a_file_with_several_paths_is_listed_once() {
    let root = folder(&["own/real.gguf", "added/other.gguf"]);
    let at = |name: &str| root.path().join(name);
    symlink(at("added/other.gguf"), at("own/link.gguf")).unwrap();
    fs::hard_link(at("own/real.gguf"), at("added/again.gguf")).unwrap();
    symlink("..", at("added/up")).unwrap();
    let options = places(&root);
    assert_eq!(
        ids(&options),
        [
            ("link".to_owned(), Keeper::Tierbar),
            ("real".to_owned(), Keeper::Tierbar)
        ]
    );
    // Its other names mean it still.
    let inventory = take(&options);
    for (spec, path) in [("again", "own/real.gguf"), ("other.gguf", "own/link.gguf")] {
        assert_eq!(inventory.find(spec).unwrap().path, at(path), "{spec}");
    }
}

#[test]
fn files_with_the_same_name_have_distinct_ids() {
    let root = folder(&[
        "own/m.gguf",
        "own/a/m.gguf",
        "added/b/m.gguf",
        "added/c/b/m.gguf",
        "lm/m.gguf",
    ]);
    let mut options = places(&root);
    options.other_apps = true;
    options.apps.lm_studio = vec![root.path().join("lm")];
    let ids: Vec<_> = ids(&options).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["m", "m@a", "m@b", "m@b-2", "m@lm-studio"]);
    let found = take(&options).find("m").unwrap().path.clone();
    assert_eq!(found, root.path().join("own/m.gguf"));
}

#[test]
fn unusual_file_names_are_listed() {
    let root = folder(&["Model.gguf", "model.gguf"]);
    let long = format!("{}.gguf", "x".repeat(250));
    fs::write(root.path().join(&long), "").unwrap();
    let broken = OsStr::from_bytes(b"z\xff.gguf");
    fs::write(root.path().join(broken), "").unwrap();
    let ids = own(&root);
    assert_eq!(ids[0], "Model");
    assert_eq!(ids[1], "model");
    assert_eq!(ids[2].len(), 250);
    assert_eq!(ids[3], "z\u{fffd}");
}

#[test]
fn the_parts_of_a_split_model_are_one_model() {
    let root = folder(&[
        "m-00002-of-00003.gguf",
        "m-00001-of-00003.gguf",
        "m-00003-of-00003.gguf",
        "n-00002-of-00004.gguf",
        "sub/m-00001-of-00003.gguf",
    ]);
    let models = take(&root.path().to_owned().into()).models;
    let [whole, broken, other] = models.as_slice() else {
        panic!("{models:?}");
    };
    assert_eq!(whole.id.as_str(), "m");
    assert_eq!(whole.path, root.path().join("m-00001-of-00003.gguf"));
    assert_eq!(whole.parts.len(), 3);
    assert_eq!(whole.size_bytes(), 3 * 21);
    assert_eq!(whole.incomplete, None);
    let reason_of = |model: &ModelFiles| model.incomplete.clone().unwrap().message;
    assert_eq!(
        reason_of(broken),
        "3 of the 4 parts of n are missing: n-00001-of-00004.gguf and 2 more"
    );
    assert_eq!(other.id.as_str(), "m@sub");
    assert!(reason_of(other).starts_with("2 of the 3 parts of m are missing"));
}

#[test]
fn an_unreadable_added_folder_only_causes_a_notice() {
    let root = folder(&["own/a.gguf", "other/b.gguf"]);
    let mut options = places(&root);
    options.folders.push(root.path().join("other"));
    let inventory = take(&options);
    assert_eq!(inventory.models.len(), 2);
    assert_eq!(inventory.notices.len(), 1);
    let notice = &inventory.notices[0];
    let gone = root.path().join("added");
    assert!(notice.contains(gone.to_str().unwrap()), "{notice}");
    assert!(notice.contains("Connect its volume"), "{notice}");
}

#[test]
fn a_missing_models_folder_does_not_hide_other_models() {
    let root = folder(&["added/a.gguf"]);
    let inventory = take(&places(&root));
    assert_eq!(inventory.models.len(), 1);
    assert_eq!(inventory.own.unwrap().code, Code::Storage);
}

#[test]
fn what_cannot_be_read_is_named_in_a_notice() {
    let root = folder(&[
        "own/a.gguf",
        "own/locked/b.gguf",
        "lm/publisher/c.gguf",
        "ollama/manifests/registry.ollama.ai/library/m/tag",
        "hub/models--o--r/snapshots/1/d.gguf",
    ]);
    let at = |name: &str| root.path().join(name);
    let options = LibraryOptions {
        models_dir: at("own"),
        other_apps: true,
        apps: AppFolders {
            lm_studio: vec![at("lm"), at("not/installed")],
            ollama: vec![at("ollama"), at("not/installed")],
            hugging_face: vec![at("hub"), at("not/installed")],
        },
        ..LibraryOptions::default()
    };
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(root.path(), 0o755);
    let closed = ["own/locked", "lm", "ollama", "hub"];
    // Their names cannot be read; they can, and nothing about them.
    for mode in [0o000, 0o444] {
        for name in closed {
            set_mode(&at(name), mode);
        }
        let taken = tierbar_skip::as_ordinary_user(|| take(&options));
        for name in closed {
            set_mode(&at(name), 0o755);
        }
        let Some(taken) = taken else {
            return tierbar_skip::skip("a thread has the user of its process here");
        };
        assert_eq!(taken.models.len(), 1, "{mode:o}: {:?}", taken.models);
        for name in closed {
            let path = at(name).display().to_string();
            let is_named = |notice: &String| {
                notice.starts_with(&path) && notice.ends_with("permission denied.")
            };
            let notices = &taken.notices;
            assert!(
                notices.iter().any(is_named),
                "{mode:o}, {name}: {notices:?}"
            );
        }
        assert!(!taken.notices.concat().contains("not/installed"));
    }
}

/// As macOS does for folders that its privacy settings deny, whichever call it refuses.
#[test]
fn a_place_that_the_system_denies_is_named_in_a_notice() {
    let root = folder(&[
        "own/a.gguf",
        "added/b.gguf",
        "lm/publisher/c.gguf",
        "ollama/manifests/registry.ollama.ai/library/m/tag",
        "hub/models--o--r/snapshots/1/d.gguf",
    ]);
    let at = |name: &str| root.path().join(name);
    let options = LibraryOptions {
        other_apps: true,
        apps: AppFolders {
            lm_studio: vec![at("lm")],
            ollama: vec![at("ollama")],
            hugging_face: vec![at("hub")],
        },
        ..places(&root)
    };
    for call in [Call::Open, Call::ReadNames, Call::Stat] {
        let Some(taken) = denying(call, || take(&options)) else {
            return tierbar_skip::skip("no call can be denied to a thread here");
        };
        assert!(taken.models.is_empty(), "{call:?}: {:?}", taken.models);
        let own = taken.own.unwrap().message;
        assert!(
            own.ends_with("cannot be read: permission denied"),
            "{call:?}: {own}"
        );
        let notices = &taken.notices;
        for name in ["added", "lm", "ollama", "hub"] {
            let path = at(name).display().to_string();
            let is_named = |notice: &String| {
                notice.contains(&path) && notice.contains("not listed: permission denied.")
            };
            assert!(
                notices.iter().any(is_named),
                "{call:?}, {name}: {notices:?}"
            );
        }
        assert_eq!(notices.len(), 4, "{call:?}: {notices:?}");
    }
}

#[test]
fn what_is_in_icloud_only_is_not_looked_into() {
    let root = folder(&[
        "own/a.gguf",
        "own/sub/b.gguf",
        "lm/publisher/c.gguf",
        "ollama/blobs/sha256-0",
        "ollama/manifests/registry.ollama.ai/library/m/tag",
        "hub/models--o--r/snapshots/1/d.gguf",
    ]);
    let at = |name: &str| root.path().join(name);
    let options = LibraryOptions {
        models_dir: at("own"),
        other_apps: true,
        apps: AppFolders {
            lm_studio: vec![at("lm")],
            ollama: vec![at("ollama")],
            hugging_face: vec![at("hub")],
        },
        ..LibraryOptions::default()
    };
    assert_eq!(take(&options).notices, Vec::<String>::new());
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for name in [
        "own/sub",
        "lm",
        "ollama",
        "ollama/manifests",
        "ollama/blobs",
        "hub",
        "hub/models--o--r",
        "hub/models--o--r/snapshots",
        "hub/models--o--r/snapshots/1",
    ] {
        let place = at(name);
        set_mode(&place, 0o4755);
        let taken = take(&options);
        set_mode(&place, 0o755);
        let notices = &taken.notices;
        assert_eq!(notices.len(), 1, "{name}: {notices:?}");
        assert!(notices[0].ends_with("it is in iCloud only."), "{notices:?}");
        let is_read = taken.folders.iter().any(|path| path.starts_with(&place));
        assert!(!is_read, "{name}");
    }
    set_mode(&at("own/a.gguf"), 0o4644);
    let taken = take(&options);
    assert!(taken.models.iter().all(|model| model.id.as_str() != "a"));
    assert!(taken.notices[0].starts_with("a.gguf is in iCloud only"));
}

#[test]
fn models_in_icloud_only_are_named_in_a_notice() {
    let file = |name: &str| PathBuf::from("/models").join(name);
    assert_eq!(cloud_notice(&[]), None);
    let one = cloud_notice(&[file("a.gguf")]).unwrap();
    assert!(one.starts_with("a.gguf is in iCloud only"), "{one}");
    let three = cloud_notice(&["a.gguf", "b.gguf", "c.gguf"].map(file)).unwrap();
    assert!(
        three.starts_with("a.gguf and 2 more model files"),
        "{three}"
    );
}

#[test]
fn a_folder_beyond_the_file_limit_causes_a_notice() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..=MOST {
        fs::write(root.path().join(number.to_string()), "").unwrap();
    }
    let notices = take(&root.path().to_owned().into()).notices;
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("more than 20000 files"), "{notices:?}");
}

#[test]
fn files_in_an_apps_folder_belong_to_the_app() {
    let root = folder(&["lm/publisher/a.gguf", "own/b.gguf", "disk/c.gguf"]);
    let at = |name: &str| root.path().join(name);
    symlink(at("lm/publisher"), at("own/linked")).unwrap();
    symlink(at("disk"), at("own/disk")).unwrap();
    let apps = AppFolders {
        lm_studio: vec![at("lm")],
        ..AppFolders::default()
    };
    let mut options = places(&root);
    options.folders.clear();
    options.apps = apps.clone();
    assert_eq!(
        ids(&options),
        [
            ("b".to_owned(), Keeper::Tierbar),
            ("c".to_owned(), Keeper::Folder),
            ("a".to_owned(), Keeper::LmStudio),
        ]
    );
    // A models folder inside of an app's: only what was fetched by us is ours.
    let options = LibraryOptions {
        models_dir: at("lm/publisher"),
        apps,
        ..LibraryOptions::default()
    };
    assert_eq!(ids(&options)[0].1, Keeper::LmStudio);
    let origin = crate::Origin {
        reference: "a".to_owned(),
        url: "https://example.com/a.gguf".parse().unwrap(),
        sha256: String::new(),
    };
    records::record_download(&at("lm/publisher/a.gguf"), origin).unwrap();
    assert_eq!(ids(&options)[0].1, Keeper::Tierbar);
    // The app has fetched it again since, and so it is the app's.
    let file = fs::File::create(at("lm/publisher/a.gguf")).unwrap();
    file.set_len(18).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    file.set_modified(later).unwrap();
    assert_eq!(ids(&options)[0].1, Keeper::LmStudio);
}
