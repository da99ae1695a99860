//! What arrives as a file or from a store must not grow in memory: neither documents, nor imports, nor saved contexts.
#![expect(clippy::print_stdout, reason = "the figures are what a run is for")]

use crate::memory::{NOISE_MIB, begin, filled, frugal, rise_since, status_mib};
use base64::{Engine, prelude::BASE64_STANDARD};
use data_encoding::HEXLOWER;
use flate2::{
    Compression,
    write::{DeflateEncoder, ZlibEncoder},
};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write},
    path::Path,
    time::Duration,
};
use tierbar_contexts::{Contexts, Key};
use tierbar_core::{ModelId, config::KvCache};
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};
use tokio::time::sleep;

/// What may be in memory besides the bytes that arrived, and what of it may stay.
const PEAK_MIB: u64 = 64;
const KEPT_MIB: u64 = 16;
/// The main part of a document of Word's.
const WORD: &str = "word/document.xml";
/// The limit of an import.
const IMPORT: usize = 200 << 20;

/// How long the host may take to give back what is free: it looks every ten seconds, and less often once a look has found all in use.
const GIVEN_BACK: usize = 90;

/// The memory of a host since a reading before: its peak, and what it keeps.
async fn risen(host: &Serving, before: u64) -> (u64, u64) {
    let kept = || status_mib(host, "VmRSS:").saturating_sub(before);
    for _ in 0..GIVEN_BACK {
        if kept() <= KEPT_MIB {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    (rise_since(host, before), kept())
}

fn check(what: &str, (peak, kept): (u64, u64), carried: usize) {
    let carried = (carried >> 20) as u64;
    println!("{what}: {peak} MiB at most, {carried} of them carried; {kept} MiB kept");
    assert!(
        peak <= carried + PEAK_MIB + NOISE_MIB,
        "{what} took {peak} MiB, {carried} of them carried"
    );
    assert!(kept <= KEPT_MIB + NOISE_MIB, "{what} left {kept} MiB");
}

/// An archive with packed files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let begin = size(bytes.len());
        // What both headers say of it.
        let mut about = b"\x14\0\0\0\x08\0".to_vec();
        about.extend([0; 8]);
        about.extend(size(packed.len()));
        about.extend(size(text.len()));
        about.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        about.extend([0; 2]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&about);
        bytes.extend(name.as_bytes());
        bytes.extend(packed);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(about);
        directory.extend([0; 10]);
        directory.extend(begin);
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (length, begin) = (size(directory.len()), size(bytes.len()));
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].concat());
    bytes.extend([length, begin].concat());
    bytes.extend([0; 2]);
    bytes
}

/// A presentation that shows one slide so often.
fn presentation(slides: usize, slide: &str) -> Vec<u8> {
    let list = "<p:sldId id=\"256\" r:id=\"r1\"/>".repeat(slides);
    let main = format!("<p:presentation><p:sldIdLst>{list}</p:sldIdLst></p:presentation>");
    let relation = "<Relationship Id=\"r1\" Type=\"http://x/slide\" Target=\"slide.xml\"/>";
    let relations = format!("<Relationships>{relation}</Relationships>");
    archive(&[
        ("ppt/presentation.xml", &main),
        ("ppt/_rels/presentation.xml.rels", &relations),
        ("ppt/slide.xml", &format!("<p:sld>{slide}</p:sld>")),
    ])
}

/// A PDF whose pages all draw the same, which is packed.
fn pdf(pages: usize, content: &str) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let (mut objects, mut kids) = (String::new(), String::new());
    for number in 5..5 + pages {
        write!(kids, "{number} 0 R ").unwrap();
        writeln!(
            objects,
            "{number} 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 612 792] \
             /Resources << /Font << /F 3 0 R >> >> >> endobj"
        )
        .unwrap();
    }
    let begin = format!(
        "%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n\
         2 0 obj << /Type /Pages /Kids [{kids}] /Count {pages} >> endobj\n\
         3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n\
         {objects}4 0 obj << /Filter /FlateDecode /Length {} >> stream\n",
        packed.len()
    );
    let end = b"\nendstream endobj\ntrailer << /Root 1 0 R >>\n%%EOF\n";
    [begin.as_bytes(), &packed[..], &end[..]].concat()
}

/// Adds a file to the documents and waits until it has been read; returns its source.
async fn index(host: &Serving, path: &Path) -> Value {
    let added = json!({"path": path});
    let (status, added) = host
        .ask(Method::POST, "/tierbar/v1/documents", Some(added))
        .await;
    assert_eq!(status, 201, "{added}");
    until("a document", async || {
        // Each look counts all passages.
        sleep(Duration::from_millis(500)).await;
        let (_, documents) = host.ask(Method::GET, "/tierbar/v1/documents", None).await;
        let sources = documents["sources"].as_array().unwrap();
        let source = sources.iter().find(|source| source["id"] == added["id"])?;
        let is_read = source["indexed"] == 1 || source["failed"] == 1;
        let is_idle = documents["indexing"]["state"] == "idle";
        (is_read && is_idle).then(|| source.clone())
    })
    .await
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_document_takes_much_memory() {
    let (_data, host) = frugal(Data::empty("")).await;
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small.txt");
    fs::write(&small, "Some words").unwrap();
    index(&host, &small).await;
    let paragraphs = "<w:p><w:r><w:t>a</w:t></w:r></w:p>".repeat((30 << 20) / 34);
    let document = format!("<w:document><w:body>{paragraphs}</w:body></w:document>");
    let heading = format!("# {}\n\na\n\n", "word ".repeat(60));
    let mail = "From a\nFrom: b\nSubject: c\n\nd\n\n";
    let slide = "<a:p><a:r><a:t>a</a:t></a:r></a:p>".repeat(250);
    let lines = "(word) Tj 0 -1.5 Td ".repeat(500);
    let lines = format!("BT /F 10 Tf 20 780 Td {lines}ET");
    for (name, bytes, is_read) in [
        ("lines.txt", "a\n\n".repeat(5 << 19).into_bytes(), true),
        ("pages.txt", "a.\n\u{c}".repeat(200_000).into_bytes(), true),
        (
            "words.txt",
            "word ".repeat((34 << 20) / 5).into_bytes(),
            true,
        ),
        ("headings.md", heading.repeat(80_000).into_bytes(), true),
        ("cells.html", "<td>a".repeat(1 << 20).into_bytes(), true),
        ("mails.mbox", mail.repeat(50_000).into_bytes(), true),
        ("bomb.docx", archive(&[(WORD, &document)]), true),
        (
            "large.docx",
            archive(&[(WORD, &" ".repeat(256 << 20))]),
            false,
        ),
        ("slides.pptx", presentation(2_000, &slide), true),
        ("pages.pdf", pdf(400, &lines), true),
        ("large.pdf", pdf(1, &" ".repeat(65 << 20)), false),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        drop(bytes);
        let before = begin(&host);
        let source = index(&host, &path).await;
        check(name, risen(&host, before).await, 0);
        assert_eq!(source["indexed"] == 1, is_read, "{name}: {source}");
    }
}

/// Sends a file of chats; returns the status and the answer.
async fn import(host: &Serving, file: String) -> (u16, Value) {
    let request = host
        .http
        .post(format!("{}/tierbar/v1/chats/import", host.url));
    let request = request.bearer_auth(&host.token).body(file);
    let answer = within("an import", request.send()).await.unwrap();
    let status = answer.status().as_u16();
    (status, within("its end", answer.json()).await.unwrap())
}

/// A chat of ChatGPT's with so many answers.
fn conversation(answers: u32, text: &str) -> String {
    let mut nodes = String::new();
    for answer in 1..=answers {
        let parent = answer - 1;
        write!(
            nodes,
            r#""{answer}":{{"parent":"{parent}","children":[],"message":{{"author":{{"role":"assistant"}},"metadata":{{"model_slug":"m","citations":[[0]]}},"content":{{"content_type":"text","parts":["{text}"]}}}}}},"#
        )
        .unwrap();
    }
    format!(r#"{{"title":"t","mapping":{{{nodes}"0":{{"parent":null}}}}}}"#)
}

/// A chat of ours with so many files of so many bytes.
fn exported(count: u8, bytes: usize) -> String {
    let files = (0..count).map(|number| {
        let data = vec![number; bytes];
        let hash = HEXLOWER.encode(&Sha256::digest(&data));
        (hash, BASE64_STANDARD.encode(data))
    });
    let files: Vec<_> = files.collect();
    let parts: Vec<_> = files
        .iter()
        .map(|(hash, _)| json!({"type": "file", "file": {"sha256": hash, "media_type": "text/plain", "name": "a", "bytes": bytes}}))
        .collect();
    let mut chat = json!({
        "id": "1f", "title": "t", "model": "auto", "created_at": "", "updated_at": "", "when_full": "refuse", "pinned": false,
        "turn": null, "leaf": 1, "messages": [{"id": 1, "parent": null, "role": "user", "parts": parts}],
    })
    .to_string();
    chat.pop();
    chat.push_str(r#","files":{"#);
    for (at, (hash, data)) in files.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(chat, "{comma}\"{hash}\":\"{data}\"").unwrap();
    }
    chat + "}}"
}

/// Chats of Open WebUI and LM Studio: how each begins, what it has many of, and how it ends.
type ChatFile = [&'static str; 3];
const WEB_UI_WORDS: ChatFile = [
    r#"{"title":"t","chat":{"history":{"messages":{"a":{"role":"user","content":""#,
    "word ",
    r#""}}}}}"#,
];
const WEB_UI_CALLS: ChatFile = [
    r#"{"title":"t","chat":{"history":{"messages":{"a":{"role":"assistant","content":""#,
    r#"<details type=\"tool_calls\" name=\"\"></details>"#,
    r#""}}}}}"#,
];
const WEB_UI_THOUGHTS: ChatFile = [
    r#"{"title":"t","chat":{"history":{"messages":{"a":{"role":"assistant","content":"<details type=\"reasoning\"><summary></summary>"#,
    r"&gt; word\n",
    r#"</details>x"}}}}}"#,
];
const STUDIO_WORDS: ChatFile = [
    r#"{"name":"t","messages":[{"versions":[{"role":"user","content":[{"type":"text","text":""#,
    "word ",
    r#""}]}]}]}"#,
];
const STUDIO_CALLS: ChatFile = [
    r#"{"name":"t","messages":[{"versions":[{"role":"assistant","content":["#,
    r#"{"type":"toolCallRequest"},"#,
    "0]}]}]}",
];
const STUDIO_VERSIONS: ChatFile = [
    r#"{"name":"t","messages":[{"versions":["#,
    r#"{"role":"user","content":"word word word word"},"#,
    "0]}]}",
];

/// What becomes of a file of chats.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// One chat is imported, with all that it has.
    Imported,
    /// So much is left out.
    LeftOut(Value),
    Refused,
}

async fn try_import(host: &Serving, what: &str, file: String, expected: Outcome) {
    let carried = file.len();
    let before = begin(host);
    let (status, answer) = import(host, file).await;
    check(what, risen(host, before).await, carried);
    let outcome = match (status, &answer["left_out"][0]["what"]) {
        (200, Value::Null) if answer["chats"] == 1 => Outcome::Imported,
        (200, left_out) => Outcome::LeftOut(left_out.clone()),
        _ => Outcome::Refused,
    };
    assert_eq!(outcome, expected, "{what}: {status} {answer}");
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_import_takes_much_memory() {
    let (_data, host) = frugal(Data::empty("")).await;
    import(&host, conversation(1, "x")).await;
    let large = || Outcome::LeftOut(json!("large_chats"));
    for part in ["[0],", "{\"\":0},", "\"\","] {
        let file = filled(IMPORT, "{\"x\":[", part, "0]}");
        try_import(&host, part, file, large()).await;
    }
    let text =
        r#"{"title":"t","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":[""#;
    let end = "\"]}}}}}";
    for part in ["word ", "\\n"] {
        try_import(&host, part, filled(IMPORT, text, part, end), large()).await;
    }
    let chat = format!("{{\"x\":[{}0]}},", "[0],".repeat(20));
    let chats = format!("[{}0]", chat.repeat(90_000));
    try_import(&host, "unknown chats", chats, Outcome::Refused).await;
    let answers = conversation(20_000, "x");
    try_import(&host, "answers", answers, large()).await;
    let answers = conversation(4000, &"word ".repeat(400));
    try_import(
        &host,
        "answers that a chat can hold",
        answers,
        Outcome::Imported,
    )
    .await;
    let files = exported(6, 22 << 20);
    try_import(&host, "files", files, Outcome::Imported).await;
    for (what, [start, part, end], count, expected) in [
        ("words of Open WebUI", WEB_UI_WORDS, usize::MAX, large()),
        ("calls of Open WebUI", WEB_UI_CALLS, 380_000, large()),
        (
            "thoughts of Open WebUI",
            WEB_UI_THOUGHTS,
            1_400_000,
            Outcome::Imported,
        ),
        ("words of LM Studio", STUDIO_WORDS, usize::MAX, large()),
        ("calls of LM Studio", STUDIO_CALLS, 150_000, large()),
        (
            "versions of LM Studio",
            STUDIO_VERSIONS,
            28_000,
            Outcome::Imported,
        ),
    ] {
        let file = match count {
            usize::MAX => filled(IMPORT, start, part, end),
            count => format!("{start}{}{end}", part.repeat(count)),
        };
        try_import(&host, what, file, expected).await;
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_saved_context_takes_much_memory() {
    let store = tempfile::tempdir().unwrap();
    let config = format!(
        "[tiers.fast]\nmodel = \"small\"\nengine = {{ endpoint = \"http://127.0.0.1:9\" }}\n[contexts]\nstore = \"{}\"\n",
        store.path().display()
    );
    let (data, host) = frugal(Data::empty(&config)).await;
    let contexts = Contexts::new(data.path().join("contexts"));
    let draft = contexts.draft("book").unwrap();
    let words: [u32; 6] = [0x6767_7371, 2, 3, 7, 8, 9];
    let mut state: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // It cannot be compressed.
    let noise = fs::File::open("/dev/urandom").unwrap();
    noise.take(200 << 20).read_to_end(&mut state).unwrap();
    fs::write(draft.path(), &state).unwrap();
    let key = Key {
        model: "m".into(),
        template: "t".into(),
        kv_cache: KvCache::F16,
        engine: "e".into(),
    };
    let model = ModelId("small".into());
    let saved = draft.seal(model, 3, key, state.len() as u64).unwrap();
    assert!(saved.bytes > 190 << 20, "{saved:?}");
    drop(state);
    let passphrase = json!({"value": "correct horse battery"});
    let path = "/tierbar/v1/secrets/context-passphrase";
    assert_eq!(
        host.send(Method::PUT, path, Some(passphrase))
            .await
            .status(),
        204
    );
    let name = json!({"name": "book"});
    for path in [
        "/v1/context/upload",
        "/v1/context/delete",
        "/v1/context/download",
    ] {
        let before = begin(&host);
        let (status, answer) = host.ask(Method::POST, path, Some(name.clone())).await;
        assert_eq!(status, 200, "{path}: {answer}");
        check(path, risen(&host, before).await, 0);
    }
    contexts.check("book").unwrap();
}
