use super::*;
use std::{collections::HashMap, os::unix::fs::PermissionsExt, sync::Mutex};

mod slow;

const TOKEN: &str = "hf_SuperSecretValue123";

fn environment(values: &[(&str, &str)]) -> Environment {
    let mut values: HashMap<String, OsString> = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
        .collect();
    values.insert(STORE_VARIABLE.to_owned(), "file".into());
    Arc::new(move |name: &str| values.get(name).cloned())
}

fn secrets(home: &Path, values: &[(&str, &str)]) -> Secrets {
    Secrets::with(home, environment(values))
}

fn exposed(secret: Option<SecretString>) -> Option<String> {
    secret.map(|secret| secret.expose_secret().to_owned())
}

fn get(secrets: &Secrets) -> Option<String> {
    exposed(secrets.get(&Name::HuggingFace).unwrap())
}

fn file(home: &Path) -> PathBuf {
    home.join("secrets.json")
}

#[test]
fn a_secret_is_kept_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let first = secrets(home.path(), &[]);
    assert_eq!(get(&first), None);
    first
        .set(&Name::HuggingFace, &format!(" {TOKEN}\n").into())
        .unwrap();
    let second = secrets(home.path(), &[]);
    assert_eq!(get(&second).as_deref(), Some(TOKEN));
    assert_eq!(
        second.source(&Name::HuggingFace).unwrap(),
        Some(Source::File)
    );
    second.remove(&Name::HuggingFace).unwrap();
    assert_eq!(get(&first), None);
    second.remove(&Name::HuggingFace).unwrap();
    assert!(
        !fs::read_to_string(file(home.path()))
            .unwrap()
            .contains(TOKEN)
    );
}

#[test]
fn only_the_owner_can_read_the_file() {
    let home = tempfile::tempdir().unwrap();
    secrets(home.path(), &[])
        .set(&Name::HuggingFace, &TOKEN.into())
        .unwrap();
    let mode = || {
        fs::metadata(file(home.path()))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(), 0o600);
    // Another program, or a restored backup, opened it to everybody.
    fs::set_permissions(file(home.path()), fs::Permissions::from_mode(0o644)).unwrap();
    let (log, found) = logged(|| get(&secrets(home.path(), &[])));
    assert_eq!(found.as_deref(), Some(TOKEN));
    assert_eq!(mode(), 0o600);
    assert!(log.contains("was readable by other users"), "{log}");
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn a_link_instead_of_the_file_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = home.path().join("elsewhere.json");
    fs::write(&elsewhere, format!("{{\"hugging-face\":\"{TOKEN}\"}}")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, file(home.path())).unwrap();
    let error = secrets(home.path(), &[])
        .get(&Name::HuggingFace)
        .unwrap_err();
    assert_eq!(error.code, Code::Storage);
}

#[test]
fn the_environment_precedes_the_store_and_the_token_file() {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("hf");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("token"), "hf_own\n").unwrap();
    let own = own.to_str().unwrap();

    let all = secrets(home.path(), &[("HF_HOME", own), ("HF_TOKEN", " hf_env ")]);
    let without = secrets(home.path(), &[("HF_HOME", own), ("HF_TOKEN", "")]);
    let found = |secrets: &Secrets| {
        (
            get(secrets).unwrap(),
            secrets.source(&Name::HuggingFace).unwrap().unwrap(),
        )
    };

    assert_eq!(found(&without), ("hf_own".into(), Source::HuggingFace));
    without.set(&Name::HuggingFace, &"hf_store".into()).unwrap();
    assert_eq!(found(&without), ("hf_store".into(), Source::File));
    assert_eq!(found(&all), ("hf_env".into(), Source::Environment));
}

#[test]
fn environment_variables_set_the_token_file() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            path.strip_prefix(home.path()).unwrap().to_str().unwrap(),
        )
        .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let explicit = at("explicit");
    at("hf/token");
    at("cache/huggingface/token");
    at("user/.cache/huggingface/token");
    let below = |folder: &str| home.path().join(folder).to_str().unwrap().to_owned();
    let (hf, cache, user) = (below("hf"), below("cache"), below("user"));
    let all = [
        ("HF_TOKEN_PATH", explicit.as_str()),
        ("HF_HOME", hf.as_str()),
        ("XDG_CACHE_HOME", cache.as_str()),
        ("HOME", user.as_str()),
    ];
    for (from, expected) in [
        (0, "explicit"),
        (1, "hf/token"),
        (2, "cache/huggingface/token"),
        (3, "user/.cache/huggingface/token"),
    ] {
        assert_eq!(
            get(&secrets(home.path(), &all[from..])).as_deref(),
            Some(expected)
        );
    }
    let from_home = [("HF_HOME", "~/.cache/huggingface"), all[3]];
    assert_eq!(
        get(&secrets(home.path(), &from_home)).as_deref(),
        Some("user/.cache/huggingface/token")
    );
    assert_eq!(get(&secrets(home.path(), &[])), None);
}

#[test]
fn a_pipe_instead_of_the_token_file_does_not_block() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let secrets = secrets(home.path(), &[("HF_TOKEN_PATH", pipe.to_str().unwrap())]);
    let (done, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(get(&secrets)));
    let hang = std::time::Duration::from_secs(60);
    assert_eq!(found.recv_timeout(hang), Ok(None));
}

#[test]
fn invalid_tokens_are_neither_saved_nor_quoted() {
    let home = tempfile::tempdir().unwrap();
    let secrets = secrets(home.path(), &[("HF_TOKEN", "hf_env with\nlines")]);
    let long = "x".repeat(MAX_BYTES + 1);
    for value in [
        "",
        "  ",
        "two words",
        "a\r\nHost: evil",
        "nul\0",
        "größe",
        long.as_str(),
    ] {
        let error = secrets.set(&Name::HuggingFace, &value.into()).unwrap_err();
        assert_eq!(error.code, Code::BadRequest, "{value:?}");
        if !value.trim().is_empty() {
            assert!(!error.to_string().contains(value), "{error}");
        }
    }
    let (log, found) = logged(|| get(&secrets));
    assert_eq!(found, None);
    assert!(
        log.contains("HF_TOKEN is not used") && !log.contains("hf_env"),
        "{log}"
    );
}

#[test]
fn a_damaged_file_is_reported_without_its_contents() {
    let home = tempfile::tempdir().unwrap();
    let secrets = secrets(home.path(), &[]);
    for content in [
        format!("\"{TOKEN}\""),
        format!("{{\"hugging-face\": [\"{TOKEN}\"]}}"),
        format!("{{\"hugging-face\": \"{TOKEN}"),
        String::new(),
    ] {
        fs::write(file(home.path()), &content).unwrap();
        let error = secrets.get(&Name::HuggingFace).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("damaged"), "{error}");
        assert!(!format!("{error:?}").contains("Secret"), "{error:?}");
        // It is not overwritten either: the user may want to recover it.
        secrets.set(&Name::HuggingFace, &TOKEN.into()).unwrap_err();
        assert_eq!(fs::read_to_string(file(home.path())).unwrap(), content);
    }
}

#[test]
fn no_output_contains_a_secret() {
    let home = tempfile::tempdir().unwrap();
    let (log, ()) = logged(|| {
        let secrets = secrets(home.path(), &[("HF_TOKEN", TOKEN)]);
        secrets.set(&Name::HuggingFace, &TOKEN.into()).unwrap();
        let secret = secrets.get(&Name::HuggingFace).unwrap();
        assert!(!format!("{secrets:?} {secret:?}").contains(TOKEN));
    });
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn a_key_is_used_only_for_its_server() {
    let home = tempfile::tempdir().unwrap();
    let secrets = secrets(home.path(), &[("HF_TOKEN", "hub")]);
    let of = |url| exposed(secrets.get(&Name::of_server(url)).unwrap());
    let name = Name::of_server("https://api.example.com/v9");
    secrets.set(&name, &TOKEN.into()).unwrap();
    assert_eq!(of("https://api.example.com").as_deref(), Some(TOKEN));
    for other in [
        "https://example.com",
        "https://api.example.com:444",
        "https://evil.com/api.example.com",
    ] {
        assert_eq!(of(other), None, "{other}");
    }
}

#[test]
fn secret_names_are_valid_and_not_tokens() {
    let server = Name::of_server("https://API.example.com:8443/openai");
    assert_eq!(server.as_str(), "api.example.com:8443");
    for name in [
        Name::HuggingFace,
        server,
        Name::of_server("http://[::1]:80/x"),
        Name::of_mcp_server("notes"),
    ] {
        assert_eq!(name.as_str().parse::<Name>().unwrap(), name);
    }
    for wrong in [
        "",
        "../x",
        "HUGGING-FACE",
        TOKEN,
        "sk-proj-0123",
        "a.b/c",
        "me@a.b",
        "mcp-",
        "mcp-sk_0123",
    ] {
        let error = wrong.parse::<Name>().unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        assert!(!format!("{error:?}").contains(TOKEN));
    }
}

/// What is logged, at every level, while `act` runs on this thread.
fn logged<T>(act: impl FnOnce() -> T) -> (String, T) {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let result = tracing::subscriber::with_default(subscriber, act);
    let bytes = log.0.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), result)
}

#[test]
fn a_passphrase_may_have_spaces_but_not_be_short() {
    let home = tempfile::tempdir().unwrap();
    let secrets = secrets(home.path(), &[]);
    let name: Name = "context-passphrase".parse().unwrap();
    for wrong in ["", "short", "elf Zeichen", "two lines of\nwords"] {
        let error = secrets.set(&name, &wrong.into()).unwrap_err();
        assert_eq!(error.code, Code::BadRequest, "{wrong:?}");
    }
    secrets.set(&name, &" zwölf große Wörter ".into()).unwrap();
    let kept = exposed(secrets.get(&name).unwrap());
    assert_eq!(kept.as_deref(), Some("zwölf große Wörter"));
    let other: Name = "context-store".parse().unwrap();
    secrets.set(&other, &"has a space".into()).unwrap_err();
}
