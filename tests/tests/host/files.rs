//! What a model gets of a person's files: the text of documents, and never their bytes.

use axum::{
    Router,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use tierbar_tests::{serving::Data, wait::within};
use tokio::{io::AsyncWriteExt, net::TcpListener, sync::mpsc};

const PAGE: &str = "<!doctype html><title>Lease</title><style>p { color: red }</style><p>The lease ends in <b>May</b> and not in June.</p>";

/// One page, without a table of its objects.
fn pdf() -> String {
    let content = "BT /F1 12 Tf 72 700 Td (The lease ends in May and not in June.) Tj ET";
    format!(
        "%PDF-1.5\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
         2 0 obj\n<< /Type /Pages /Kids [4 0 R] /Count 1 >>\nendobj\n\
         3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>\nendobj\n\
         4 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>\nendobj\n\
         5 0 obj\n<< /Length {} >>\nstream\n{content}\nendstream\nendobj\n\
         trailer\n<< /Root 1 0 R /Size 6 >>\n",
        content.len()
    )
}

/// With an attachment that is no text.
fn mail() -> String {
    let (text, photo) = (
        "The lease ends in May and not in June. Grüße",
        [0xff_u8; 3000],
    );
    let (text, photo) = (BASE64_STANDARD.encode(text), BASE64_STANDARD.encode(photo));
    format!(
        "From: =?utf-8?q?J=C3=BCrgen?= <j@a.example>\r\nTo: me@a.example\r\nSubject: =?utf-8?q?K=C3=BCndigung?=\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{text}\r\n\
         --b\r\nContent-Type: image/jpeg; name=a.jpg\r\nContent-Transfer-Encoding: base64\r\n\r\n{photo}\r\n--b--\r\n"
    )
}

/// Plays a model that answers everything alike, and reports what it was asked.
async fn answer(State(asked): State<mpsc::UnboundedSender<String>>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let contents = messages.iter().filter_map(|one| one["content"].as_str());
    asked.send(contents.collect::<Vec<_>>().join("\n")).unwrap();
    let text = json!({
        "text": "In short.", "type": "fyi", "urgency": 0, "needs_cloud": false, "summary": "In short.",
    });
    let delta = json!({"choices": [{"index": 0, "delta": {"content": text.to_string()}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    let events = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    (kind, events).into_response()
}

struct Model {
    data: Data,
    asked: mpsc::UnboundedReceiver<String>,
}

impl Model {
    async fn new() -> Self {
        let (report, asked) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let routes = Router::new().route("/v1/chat/completions", post(answer));
        tokio::spawn(axum::serve(listener, routes.with_state(report)).into_future());
        let tier = |name: &str| {
            format!(
                "[tiers.{name}]\nmodel = \"m\"\nengine = {{ endpoint = \"http://{server}\" }}\n"
            )
        };
        let data = Data::empty(&(tier("fast") + &tier("primary")));
        Self { data, asked }
    }

    /// Runs a command with this input, and returns what the model was asked, if it was, and what stderr says.
    async fn run(&mut self, arguments: &[&str], stdin: &[u8]) -> (Option<String>, String) {
        let mut command = self.data.tierbar(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin).await.unwrap();
        drop(pipe);
        let output = within("the command", child.wait_with_output()).await;
        let errors = String::from_utf8(output.unwrap().stderr).unwrap();
        let first = self.asked.try_recv().ok();
        while self.asked.try_recv().is_ok() {}
        (first, errors)
    }
}

#[tokio::test]
async fn documents_are_read_before_a_model_gets_them() {
    let mut model = Model::new().await;
    let _host = model.data.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (pdf, mail) = (pdf(), mail());
    let latin = b"The lease ends in May and not in June, caf\xe9.";
    let files = [
        put("a.pdf", pdf.as_bytes()),
        put("a.eml", mail.as_bytes()),
        put("a.html", PAGE.as_bytes()),
        put("a.txt", latin),
    ];
    for file in &files {
        for arguments in [
            &["summarize", file][..],
            &["triage", file],
            &["compress", "--words", "5", file],
            &["chat", "--once", "When?", "--file", file],
        ] {
            let (asked, errors) = model.run(arguments, b"").await;
            let asked = asked.unwrap_or_else(|| panic!("{arguments:?}: {errors}"));
            assert!(
                asked.contains("The lease ends in May"),
                "{arguments:?}: {asked}"
            );
            for raw in ["%PDF", "endobj", "base64", "/////", "<p>", "color"] {
                assert!(!asked.contains(raw), "{arguments:?}: {asked}");
            }
            let is_guessed = errors.contains("was guessed as windows-1252");
            assert_eq!(is_guessed, file.ends_with(".txt"), "{errors}");
        }
    }
    for document in [pdf.as_bytes(), mail.as_bytes(), PAGE.as_bytes()] {
        for arguments in [
            &["summarize"][..],
            &["triage", "-"],
            &["chat", "--once", "-"],
        ] {
            let (asked, errors) = model.run(arguments, document).await;
            let asked = asked.unwrap_or_else(|| panic!("{arguments:?}: {errors}"));
            assert!(
                asked.contains("The lease ends in May"),
                "{arguments:?}: {asked}"
            );
            assert!(
                !asked.contains("%PDF") && !asked.contains("base64"),
                "{asked}"
            );
        }
    }
    let (asked, _) = model.run(&["triage", &files[1]], b"").await;
    let asked = asked.unwrap();
    let fields = "Subject: Kündigung\nFrom: Jürgen <j@a.example>\nTo: me@a.example";
    assert!(asked.contains(fields) && asked.contains("Grüße"), "{asked}");
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_a_text_is_not_changed() {
    let mut model = Model::new().await;
    let _host = model.data.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = path.to_str().unwrap();
    for (binary, reason) in [
        (&b"\x7fELF\0\0\0\x01"[..], "PDF, Word (.docx)"),
        (
            &b"PK\x03\x04 and no archive"[..],
            "its archive has no directory",
        ),
    ] {
        fs::write(&path, binary).unwrap();
        for arguments in [
            &["summarize", file][..],
            &["chat", "--once", "Why?", "--file", file],
        ] {
            let (asked, errors) = model.run(arguments, b"").await;
            assert_eq!(asked, None, "{arguments:?}");
            assert!(errors.contains(file) && errors.contains(reason), "{errors}");
        }
        let (asked, errors) = model.run(&["summarize"], binary).await;
        assert_eq!(asked, None);
        assert!(errors.contains("stdin cannot be read"), "{errors}");
    }
    fs::write(&path, "%PDF-1.4 and nothing else").unwrap();
    let (asked, errors) = model.run(&["summarize", file], b"").await;
    assert_eq!(asked, None);
    assert!(errors.contains("This PDF is damaged"), "{errors}");
    let code = "fn main() {\n\n\n\tlet x = \"ä\";  \n}\n";
    fs::write(&path, code).unwrap();
    let (asked, errors) = model.run(&["summarize", file], b"").await;
    assert!(asked.unwrap().contains(code.trim_end()), "{errors}");
}
