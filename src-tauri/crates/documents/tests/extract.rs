//! The process that reads a document, with its limits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use flate2::{Compression, write::ZlibEncoder};
use std::{
    fs::{self, File},
    io::Write,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus, Stdio},
};
use tierbar_documents::extraction::{OutputReader, ProcessEnd};

fn extract(name: &str, bytes: &[u8]) -> (Option<i32>, String) {
    let (status, output) = run(name, bytes);
    (status.code(), output)
}

fn run(name: &str, bytes: &[u8]) -> (ExitStatus, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document");
    fs::write(&path, bytes).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tierbar-extract"))
        .arg(name)
        .stdin(File::open(path).unwrap())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    (output.status, String::from_utf8(output.stdout).unwrap())
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

/// A PDF whose pages draw these contents, packed if it says so.
fn pdf(contents: &[Vec<u8>], filter: &str, trailer: &str) -> Vec<u8> {
    let count = contents.len();
    let kids: String = (0..count)
        .map(|at| format!("{} 0 R ", 4 + 2 * at))
        .collect();
    let mut bytes = b"%PDF-1.5\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n".to_vec();
    bytes.extend(format!(
        "2 0 obj\n<< /Kids [{kids}] /Count {count} /Resources << /Font << /F1 3 0 R >> >> >>\nendobj\n\
         3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>\nendobj\n"
    ).bytes());
    for (content, at) in contents.iter().zip(0..) {
        let (page, stream) = (4 + 2 * at, 5 + 2 * at);
        let length = content.len();
        bytes.extend(
            format!(
                "{page} 0 obj\n<< /Type /Page /Parent 2 0 R /Contents {stream} 0 R >>\nendobj\n\
             {stream} 0 obj\n<< {filter} /Length {length} >>\nstream\n"
            )
            .bytes(),
        );
        bytes.extend(content);
        bytes.extend(b"\nendstream\nendobj\n");
    }
    bytes.extend(format!("trailer\n<< /Root 1 0 R {trailer} >>\n%%EOF").bytes());
    bytes
}

/// The process itself, with its limits: it ends well, with the text or the reason.
#[test]
fn large_encrypted_and_exploding_pdfs_end_well() {
    let page =
        |page: u32| format!("BT /F1 10 Tf 72 700 Td (This is page {page}.) Tj ET").into_bytes();
    let many: Vec<_> = (1..=5000).map(page).collect();
    let (code, output) = extract("a.pdf", &pdf(&many, "", ""));
    assert_eq!((code, output.lines().count()), (Some(0), 5001));
    assert!(output.lines().last().unwrap().contains("\"pages\":5000"));

    let locked = pdf(&[page(1)], "", "/Encrypt << /Filter /Standard >>");
    let (code, output) = extract("a.pdf", &locked);
    assert_eq!(
        (code, output.contains("is encrypted")),
        (Some(0), true),
        "{output}"
    );

    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&vec![b' '; 65 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let (code, output) = extract(
        "a.pdf",
        &pdf(&[packed.clone(), packed], "/Filter /FlateDecode", ""),
    );
    assert_eq!(
        (code, output.contains("unpacks to more")),
        (Some(0), true),
        "{output}"
    );
}

/// Checks what a limited process, which this one becomes, can still do.
fn limit_and_try() {
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
}

/// Whatever is cut off or changed, the process ends well and with a reason.
#[test]
fn damaged_pdfs_end_well() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut tried = 0;
    for fixture in fs::read_dir(fixtures).unwrap() {
        let path = fixture.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "pdf") {
            continue;
        }
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 24) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x15;
            for damaged in [&whole[..at], &flipped] {
                let (code, output) = extract("a.pdf", damaged);
                let last = output.lines().last().unwrap_or_default();
                let is_whole = last.starts_with("{\"end\":") || last.starts_with("{\"refused\":");
                assert_eq!(
                    (code, is_whole),
                    (Some(0), true),
                    "{path:?} at {at}: {output}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// What unpacks to more than the process may have ends it; the host says so.
#[test]
fn what_unpacks_to_gigabytes_is_ended() {
    let pack = |bytes: &[u8], times: usize| {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..times {
            packed.write_all(bytes).unwrap();
        }
        packed.finish().unwrap()
    };
    let once = pack(&vec![b' '; 1 << 20], 2 << 10);
    let twice = pack(&once, 1);
    let bomb = pdf(&[twice], "/Filter [/FlateDecode /FlateDecode]", "");
    let (status, output) = run("a.pdf", &bomb);
    let ended = ProcessEnd::Killed(status.signal().unwrap());
    let mut reader = OutputReader::default();
    assert!(reader.take(output.as_bytes()));
    let refusal = reader.finish(ended).unwrap_err().0;
    assert!(refusal.contains("more than 1 GB of memory"), "{refusal}");
}

/// What a hostile document could make the process do, the process cannot do. The test runs itself again, with the limits.
#[test]
fn the_limits_take_files_sockets_and_processes_away() {
    const LIMITED: &str = "TIERBAR_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_some() {
        return limit_and_try();
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
