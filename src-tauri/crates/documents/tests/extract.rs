//! The process that reads a document, with its limits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

fn extract(name: &str, bytes: &[u8]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document");
    fs::write(&path, bytes).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tierbar-extract"))
        .arg(name)
        .stdin(File::open(path).unwrap())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_document_comes_as_lines_with_an_end() {
    let (code, output) = extract("notes.md", b"# One\n\nTwo \"quoted\"\n");
    assert_eq!(code, Some(0));
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[0], r#"{"block":{"text":"One","heading":1,"line":1}}"#);
    assert_eq!(lines[1], r#"{"block":{"text":"Two \"quoted\"","line":3}}"#);
    assert!(
        lines[2].starts_with(r#"{"end":{"kind":"markdown","title":"One""#),
        "{output}"
    );
    let (code, output) = extract("a.pdf", b"%PDF-1.4 ");
    assert_eq!((code, output.contains(r#"{"refused":"#)), (Some(0), true));
}

/// What a hostile document could make the process do, the process cannot do. The test runs itself again, with the limits.
#[test]
fn the_limits_take_files_sockets_and_processes_away() {
    const LIMITED: &str = "TIERBAR_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_some() {
        tierbar_documents::limit_this_process().unwrap();
        assert!(File::open("/dev/null").is_err(), "a file");
        assert!(
            std::net::TcpStream::connect("127.0.0.1:9")
                .is_err_and(|error| error.raw_os_error() == Some(24)),
            "a socket"
        );
        // An administrator may begin one, which then can open nothing, not even its libraries.
        let begun = Command::new("true").status();
        assert!(!begun.is_ok_and(|status| status.success()), "a process");
        assert!(
            fs::write("/dev/shm/tierbar-limited", b"x").is_err(),
            "a write"
        );
        return;
    }
    let limited = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "the_limits_take_files_sockets_and_processes_away",
            "--test-threads=1",
        ])
        .env(LIMITED, "1")
        .output()
        .unwrap();
    assert!(limited.status.success(), "{limited:?}");
}
