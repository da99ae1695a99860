use super::*;
use std::{os::unix::fs::symlink, process::Command, sync::mpsc, thread, time::Duration};

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn write(root: &Path, file: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn manifest(media_type: &str, digest: &str) -> String {
    serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:00", "size": 1},
        "layers": [
            {"mediaType": "application/vnd.ollama.image.projector", "digest": format!("sha256:{}", "f".repeat(64))},
            {"mediaType": "application/vnd.ollama.image.adapter", "digest": format!("sha256:{}", "e".repeat(64))},
            {"mediaType": media_type, "digest": digest, "size": 4},
        ],
    })
    .to_string()
}

fn names(found: &[OllamaModel]) -> Vec<&str> {
    found.iter().map(|model| model.name.as_str()).collect()
}

#[test]
fn ollama_models_are_blobs_with_ollama_names() {
    let models = tempfile::tempdir().unwrap();
    let root = models.path();
    let blob = write(root, &format!("blobs/sha256-{HASH}"), "GGUF");
    for extra in ["e", "f"] {
        write(root, &format!("blobs/sha256-{}", extra.repeat(64)), "");
    }
    let good = manifest(OLLAMA_MODEL, &format!("sha256:{HASH}"));
    for place in [
        "registry.ollama.ai/library/gemma3/1b",
        "registry.ollama.ai/someone/tuned/latest",
        "hf.co/owner/repo-GGUF/Q4_K_M",
    ] {
        write(root, &format!("manifests/{place}"), &good);
    }
    write(root, "manifests/registry.ollama.ai/library/stray", &good);
    let (_, kept) = ollama(root, 100);
    assert_eq!(
        names(&kept),
        [
            "hf.co/owner/repo-GGUF:Q4_K_M",
            "gemma3:1b",
            "someone/tuned:latest"
        ]
    );
    assert!(kept.iter().all(|model| model.file == blob));
    let projector = root.join(format!("blobs/sha256-{}", "f".repeat(64)));
    assert!(
        kept.iter()
            .all(|model| model.projector.as_ref() == Some(&projector))
    );
    assert_eq!(hash_in_name(&blob).as_deref(), Some(HASH));
}

#[test]
fn an_invalid_manifest_names_no_file() {
    let models = tempfile::tempdir().unwrap();
    let root = models.path();
    write(root, "secret", "");
    fs::create_dir_all(root.join("blobs/sha256-x")).unwrap();
    write(root, &format!("blobs/sha256-{HASH}"), "GGUF");
    let of = |digest: &str| manifest(OLLAMA_MODEL, digest);
    let good = format!("sha256:{HASH}");
    let cases = [
        of("sha256:../secret"),
        of("sha256:x/../../secret"),
        of("../../secret"),
        of("/etc/passwd"),
        of(&format!("sha256:{}", "a".repeat(64))),
        of(&format!("sha512:{HASH}")),
        of(&good.to_uppercase()),
        of(&format!("{good}/../../secret")),
        of(""),
        manifest("application/vnd.ollama.image.license", &good),
        "{}".to_owned(),
        "[]".to_owned(),
        "{\"layers\":[{}]}".to_owned(),
        String::new(),
        "[".repeat(100_000),
        format!("{}{}", of(&good), " ".repeat(MAX_SMALL_FILE as usize)),
    ];
    for (number, text) in cases.iter().enumerate() {
        let place = format!("manifests/registry.ollama.ai/library/bad/{number}");
        write(root, &place, text);
    }
    symlink(
        "/dev/zero",
        root.join("manifests/registry.ollama.ai/library/bad/zero"),
    )
    .unwrap();
    let pipe = root.join("manifests/registry.ollama.ai/library/bad/pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let (done, read) = mpsc::channel();
    let root = root.to_owned();
    thread::spawn(move || done.send(ollama(&root, 100).1).is_ok());
    // A reader of the pipe would wait for ever.
    let kept = read.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(names(&kept), Vec::<&str>::new());
}

#[test]
fn hugging_face_snapshots_come_current_first() {
    let hub = tempfile::tempdir().unwrap();
    let root = hub.path();
    write(root, &format!("models--o--r/blobs/{HASH}"), "GGUF");
    write(root, "models--o--r/blobs/123.incomplete", "GG");
    write(root, "models--o--r/refs/main", "bbb\n");
    for (revision, file, blob) in [
        ("aaa", "m.gguf", format!("../../blobs/{HASH}")),
        ("bbb", "m.gguf", format!("../../blobs/{HASH}")),
        ("bbb", "UD-Q4/n.gguf", format!("../../../blobs/{HASH}")),
        ("bbb", "gone.gguf", "../../blobs/none".to_owned()),
        ("bbb", "README.md", format!("../../blobs/{HASH}")),
    ] {
        let link = root
            .join("models--o--r/snapshots")
            .join(revision)
            .join(file);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(blob, link).unwrap();
    }
    write(root, "datasets--o--d/snapshots/ccc/d.gguf", "");
    let is_gguf = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".gguf");
    let kept = hugging_face(root, 100, is_gguf);
    let files: Vec<_> = kept
        .files
        .iter()
        .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        files,
        [
            "models--o--r/snapshots/bbb/m.gguf",
            "models--o--r/snapshots/bbb/UD-Q4/n.gguf",
            "models--o--r/snapshots/aaa/m.gguf",
        ]
    );
    let hash = hash_in_name(&kept.files[0]);
    assert_eq!(hash.as_deref(), Some(HASH));
    assert_eq!(hash_in_name(&root.join("models--o--r/refs/main")), None);
}

#[test]
fn missing_apps_have_no_models() {
    let nowhere = Path::new("/nonexistent");
    assert!(ollama(nowhere, 9).1.is_empty());
    assert!(hugging_face(nowhere, 9, |_| true).files.is_empty());
}

#[test]
fn the_environment_sets_the_app_folders() {
    let home = Path::new("/home/u");
    let with = |set: &[(&str, &str)]| {
        AppFolders::by(home, |name| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    };
    let usual = with(&[]);
    assert_eq!(
        usual.lm_studio,
        [
            home.join(".cache/lm-studio/models"),
            home.join(".lmstudio/models")
        ]
    );
    assert_eq!(
        usual.ollama,
        [home.join(".ollama/models"), OLLAMA_SERVICE.into()]
    );
    assert_eq!(usual.hugging_face, [home.join(".cache/huggingface/hub")]);
    assert_eq!(with(&[("OLLAMA_MODELS", "/o")]).ollama[0], Path::new("/o"));
    let hub = |set: &[(&str, &str)]| with(set).hugging_face[0].to_str().unwrap().to_owned();
    let all = [
        ("HF_HUB_CACHE", "/a"),
        ("HUGGINGFACE_HUB_CACHE", "/b"),
        ("HF_HOME", "/c"),
        ("XDG_CACHE_HOME", "/d"),
    ];
    assert_eq!(hub(&all), "/a");
    assert_eq!(hub(&all[1..]), "/b");
    assert_eq!(hub(&all[2..]), "/c/hub");
    assert_eq!(hub(&all[3..]), "/d/huggingface/hub");
    assert_eq!(hub(&[("HF_HOME", "~/x")]), "/home/u/x/hub");
    // Empty and relative values are ignored.
    assert_eq!(with(&[("OLLAMA_MODELS", ""), ("HF_HOME", "hf")]), usual);
}

#[test]
fn lm_studio_settings_set_its_folder() {
    let home = tempfile::tempdir().unwrap();
    let moved = home.path().join("moved");
    write(
        home.path(),
        ".lmstudio-home-pointer",
        format!("{}\n", moved.display()),
    );
    write(
        &moved,
        "settings.json",
        "{\"downloadsFolder\": \"/big/models\", \"x\": 1}",
    );
    write(
        home.path(),
        ".lmstudio/settings.json",
        "{\"downloadsFolder\": 7}",
    );
    let folders = lm_studio(home.path());
    assert_eq!(folders.len(), 4, "{folders:?}");
    assert!(folders.contains(&moved.join("models")));
    assert!(folders.contains(&PathBuf::from("/big/models")));
}
