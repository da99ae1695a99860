//! Prompts are in no log, unless the user turns that on.

use super::{ANSWER, Serving, chat};
use std::{
    io::Write,
    sync::{Arc, Mutex},
};
use tracing_subscriber::fmt::MakeWriter;

/// A word that only these prompts contain.
const SECRET: &str = "marzipan-7f3a";

#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Sends requests of every kind: answered, refused and broken.
async fn ask_all(serving: &Serving) {
    let url = format!("{}/v1/chat/completions", serving.host.url());
    let secret = format!("{SECRET} is my secret");
    let mut streamed = chat(&secret);
    streamed["stream"] = true.into();
    let mut unknown = chat(&secret);
    unknown["model"] = "unknown".into();
    let mut wrong = chat(&secret);
    wrong["stream"] = secret.clone().into();
    let bodies = [
        chat(&secret).to_string(),
        streamed.to_string(),
        unknown.to_string(),
        wrong.to_string(),
        chat(&format!("refuse {secret}")).to_string(),
        format!("{{\"messages\": \"{secret}"),
        secret,
    ];
    let mut answered = 0;
    for body in bodies {
        let id = format!("ask-{answered}");
        let sent = serving
            .http
            .post(&url)
            .header("x-request-id", id)
            .body(body);
        let answer = sent.send().await.unwrap();
        answered += usize::from(answer.status() == 200);
        answer.text().await.unwrap();
    }
    assert_eq!(answered, 2);
}

/// One test, since all of a process has one log.
#[tokio::test]
async fn prompts_are_logged_only_where_configured() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .init();
    let serving = Serving::start("127.0.0.1:0", "").await.unwrap();
    ask_all(&serving).await;
    serving.host.shutdown().await;
    let silent = log.text();
    assert!(
        silent.contains("ask-1") && silent.contains("answered"),
        "{silent}"
    );
    assert!(!silent.contains(SECRET), "{silent}");
    assert!(!silent.contains(ANSWER), "{silent}");

    let serving = Serving::start("127.0.0.1:0", "[log]\nprompts = true\n")
        .await
        .unwrap();
    ask_all(&serving).await;
    serving.host.shutdown().await;
    let written = log.text();
    assert!(!written.contains(ANSWER));
    let lines: Vec<_> = written
        .lines()
        .filter(|line| line.contains(SECRET))
        .collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    let marked = |line: &&str| line.contains("tierbar::prompts") && line.contains("ask-");
    assert!(lines.iter().all(marked), "{lines:?}");
}
