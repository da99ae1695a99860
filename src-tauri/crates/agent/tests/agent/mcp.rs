//! A server of the protocol in a process of its own, in the sandbox.

use crate::{launcher, place::skip_unsandboxed};
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tierbar_agent::mcp::{Failure, Place, Program, Session};
use tierbar_sandbox::{Network, enforcement};

/// A folder for the server, and one beside it that it may not see.
struct Home {
    _root: TempDir,
    work: PathBuf,
    hidden: PathBuf,
}

impl Home {
    /// Returns `None` where nothing enforces a sandbox.
    fn new() -> Option<Self> {
        enforcement().ok()?;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let (work, hidden) = (path.join("work"), path.join("hidden"));
        for folder in [&work, &hidden] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(work.join("note"), "milk").unwrap();
        fs::write(hidden.join("token"), "the token").unwrap();
        Some(Self {
            _root: root,
            work,
            hidden,
        })
    }

    fn program(&self, command: &str) -> Place {
        let server = Path::new(env!("CARGO_BIN_EXE_mcp-test-server"));
        let launcher = launcher().to_owned();
        assert!(launcher.exists(), "{} is not built", launcher.display());
        Place::Program(Program {
            launcher,
            command: vec![command.to_owned()],
            folder: Some(self.work.clone()),
            read: vec![server.parent().unwrap().to_owned()],
            network: Network::None,
            protected: vec![self.hidden.clone()],
            variables: Vec::new(),
            key: Some(("API_KEY".to_owned(), "secret".into())),
        })
    }
}

async fn call(session: &Session, name: &str, arguments: Value) -> Result<String, Failure> {
    let tools = session.tools().await?.tools;
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    let arguments = arguments.as_object().unwrap().clone();
    session.call(name, &tool.definition, arguments).await
}

#[tokio::test]
async fn a_program_serves_from_its_sandbox() {
    let Some(home) = Home::new() else {
        return skip_unsandboxed();
    };
    let place = home.program(env!("CARGO_BIN_EXE_mcp-test-server"));
    let session = Session::open(place).await.unwrap();
    let read = |path: PathBuf| call(&session, "read", json!({"path": path}));
    assert_eq!(read(home.work.join("note")).await.unwrap(), "milk");
    let token = read(home.hidden.join("token")).await;
    assert!(matches!(token, Err(Failure::Reported(_))), "{token:?}");

    let variable = |name: &str| call(&session, "variable", json!({"name": name}));
    assert_eq!(variable("API_KEY").await.unwrap(), "secret");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let hidden = variable("CARGO_MANIFEST_DIR").await.unwrap();
    assert_eq!(hidden, "[it ended without a result]");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let connected = call(&session, "connect", json!({"address": address})).await;
    assert!(
        matches!(connected, Err(Failure::Reported(_))),
        "{connected:?}"
    );

    let ended = call(&session, "end", json!({})).await;
    let told = " with code 7, and wrote: it is over";
    assert_eq!(ended, Err(Failure::Ended(told.to_owned())));
}

#[tokio::test]
async fn a_program_of_a_virtual_environment_is_told_what_it_needs() {
    let Some(home) = Home::new() else {
        return skip_unsandboxed();
    };
    let root = home.work.parent().unwrap();
    let (versions, venv) = (root.join("versions"), root.join("venv"));
    let (python, server) = (versions.join("bin/python3"), venv.join("bin/server"));
    for program in [&python, &server] {
        fs::create_dir_all(program.parent().unwrap()).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_mcp-test-server"), &python).unwrap();
    symlink(&python, venv.join("bin/python")).unwrap();
    let script = format!("#!{}\n", venv.join("bin/python").display());
    fs::write(&server, script).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let open = |read: &[&PathBuf]| {
        let place = Place::Program(Program {
            launcher: launcher().to_owned(),
            command: vec![server.to_str().unwrap().to_owned()],
            folder: Some(home.work.clone()),
            read: read.iter().copied().cloned().collect(),
            network: Network::None,
            protected: vec![home.hidden.clone()],
            variables: Vec::new(),
            key: None,
        });
        Session::open(place)
    };
    let places = [&server, &python].map(|program| program.parent().unwrap().display());
    let [own, interpreters] = places;
    let both = format!("{own} and {interpreters}");
    for (read, needed) in [(&[][..], both), (&[&venv], interpreters.to_string())] {
        let Err(Failure::Ended(why)) = open(read).await.map(drop) else {
            panic!("it has started");
        };
        let needed = format!("it needs what is in {needed}, which it may not read");
        assert!(why.ends_with(&needed), "{why}");
    }
    let session = open(&[&venv, &versions]).await.unwrap();
    let note = call(&session, "read", json!({"path": home.work.join("note")})).await;
    assert_eq!(note.unwrap(), "milk");
}

#[tokio::test]
async fn a_link_in_place_of_a_servers_folder_is_not_followed() {
    let Some(home) = Home::new() else {
        return skip_unsandboxed();
    };
    let place = || home.program(env!("CARGO_BIN_EXE_mcp-test-server"));
    let session = Session::open(place()).await.unwrap();
    drop(session);
    let private = home.hidden.with_file_name("private");
    fs::create_dir(&private).unwrap();
    fs::rename(&home.work, home.work.with_file_name("before")).unwrap();
    symlink(&private, &home.work).unwrap();
    let opened = Session::open(place()).await;
    let Err(Failure::NotRun(why)) = opened.map(drop) else {
        panic!("it runs in another folder");
    };
    assert!(why.contains("is a symbolic link"), "{why}");
    assert!(why.ends_with(private.to_str().unwrap()), "{why}");
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let Some(home) = Home::new() else {
        return skip_unsandboxed();
    };
    let opened = Session::open(home.program("no-such-program")).await;
    let Err(Failure::NotFound(told)) = opened.map(drop) else {
        panic!("it has started");
    };
    let why = "no-such-program cannot be run: it is in none of the folders of PATH";
    assert!(told.contains(why), "{told}");
}
