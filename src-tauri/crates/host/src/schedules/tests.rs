use super::*;
use crate::sources::tests::tempdir;
use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tempfile::TempDir;
use tierbar_core::journal::LogEvent;
use tierbar_core::lease::BoxFuture;
use tierbar_fetch::{Remote, Web, WebOptions};
use tierbar_inference::services::schedules::Schedules as _;
use tierbar_secrets::Secrets;
use tokio_util::sync::CancellationToken;

/// Half past one, as the calendar of these tests has it: UTC.
const BEFORE: &str = "2026-11-22T01:30:00Z";
const TURN: &str = "2026-11-22T02:00:10Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn later(from: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(from.as_second() + seconds).unwrap()
}

#[derive(Debug, Default, Clone)]
struct Sentences(Arc<Mutex<Vec<String>>>);

impl tierbar_core::journal::Journal for Sentences {
    fn record(&self, event: LogEvent) {
        self.0.lock().push(event.sentence);
    }
}

/// The requests of the task, and its answer: `None` is a success.
#[derive(Debug, Default, Clone)]
struct Api {
    requests: Arc<Mutex<Vec<String>>>,
    fails: Arc<Mutex<Option<Error>>>,
}

impl Api {
    fn answer(&self, text: String) -> Result<Value, Error> {
        self.requests.lock().push(text);
        if let Some(error) = self.fails.lock().clone() {
            return Err(error);
        }
        let answer = json!({"brief": "All is well.", "summary": "In short.", "tier": "primary", "model": "m", "saved": 7});
        Ok(answer)
    }
}

struct Bench {
    folder: TempDir,
    handle: Arc<Schedules>,
    runner: Runner,
    api: Api,
    recorded: Sentences,
    paused: Arc<Mutex<bool>>,
    _config: watch::Sender<Arc<Config>>,
}

impl Bench {
    /// A schedule `nightly` at two; `DIR` in its paths is the bench's folder.
    async fn new(task: &str, source: &str, to: &str) -> Self {
        let folder = tempdir();
        let place = |text: &str| text.replace("DIR", &folder.path().display().to_string());
        let config = format!(
            "[schedules.nightly]\nat = \"02:00\"\ntask = \"{task}\"\nsource = \"{}\"\nto = \"{}\"\nwords = 40\n",
            place(source),
            place(to)
        );
        let config = watch::Sender::new(Arc::new(toml::from_str::<Config>(&config).unwrap()));
        let path = folder.path().join("tierbar.db");
        let store = tokio::task::spawn_blocking(move || Store::open(&path))
            .await
            .unwrap()
            .unwrap();
        let (handle, requests) = Schedules::new(config.subscribe(), store, true);
        let (api, recorded, paused) = (
            Api::default(),
            Sentences::default(),
            Arc::new(Mutex::new(false)),
        );
        let web = WebOptions {
            proxies: false,
            ..WebOptions::default()
        };
        let runner = Runner {
            schedules: Arc::clone(&handle),
            requests,
            undelivered: Mutex::default(),
            run_task: {
                let api = api.clone();
                Box::new(move |_, text| Box::pin(std::future::ready(api.answer(text))))
            },
            web: Web::new(web).unwrap(),
            remote: Remote::new(Duration::from_secs(20)).unwrap(),
            secrets: Secrets::with(
                folder.path(),
                Arc::new(|name: &str| (name == "TIERBAR_SECRETS").then(|| "file".into())),
            ),
            journal: Arc::new(recorded.clone()),
            extract: Err(Error::new(Code::Internal, "there is no reader")),
            paused: {
                let paused = Arc::clone(&paused);
                Box::new(move || *paused.lock())
            },
            notice: Box::new(|| {}),
        };
        let bench = Self {
            folder,
            handle,
            runner,
            api,
            recorded,
            paused,
            _config: config,
        };
        std::fs::write(bench.path("day.jsonl"), "{\"msg\": \"a\"}\n").unwrap();
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn at(&mut self, now: Timestamp) -> Duration {
        self.runner.take_turns(now, &TimeZone::UTC).await
    }

    fn requests(&self) -> usize {
        self.api.requests.lock().len()
    }

    async fn kept(&self) -> Run {
        self.handle
            .store
            .schedule_run("nightly")
            .await
            .unwrap()
            .unwrap()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A real server on this machine.
async fn served(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}")
}

#[tokio::test]
async fn a_run_happens_once_and_writes_that_days_file() {
    let mut bench = Bench::new("brief", "DIR/day.jsonl", "DIR/briefs/{date}.md").await;
    bench.at(at(BEFORE)).await;
    assert_eq!(bench.requests(), 0);
    for _ in 0..3 {
        bench.at(at(TURN)).await;
    }
    assert_eq!(*bench.api.requests.lock(), ["{\"msg\": \"a\"}\n"]);
    let page = read(&bench.path("briefs/2026-11-22.md"));
    assert_eq!(
        page,
        "# nightly, 2026-11-22\n\nAll is well.\n\n---\n\nbrief of 1 file, 13 bytes, by primary (m)\n"
    );
    let recorded = bench.recorded.0.lock().clone();
    assert!(
        recorded.len() == 1 && recorded[0].starts_with("the schedule nightly wrote "),
        "{recorded:?}"
    );
    assert!(
        recorded[0].ends_with("from 1 file, 13 bytes; 7 tokens saved"),
        "{recorded:?}"
    );
    let run = bench.kept().await;
    assert!(run.finished && !run.failing && run.covers_to == Some(at(TURN).as_second()));
    // Missed by some hours, and made up.
    bench.at(at("2026-11-23T09:00:00Z")).await;
    assert_eq!(bench.requests(), 2);
    assert!(bench.path("briefs/2026-11-23.md").exists());
}

#[tokio::test]
async fn a_failure_is_logged_retried_and_cleared_by_success() {
    let mut bench = Bench::new("brief", "DIR/day.jsonl", "DIR/day.md").await;
    bench.at(at(BEFORE)).await;
    *bench.api.fails.lock() = Some(Error::new(Code::TierFailed, "primary has no model"));
    bench.at(at(TURN)).await;
    bench.at(later(at(TURN), 59)).await;
    assert_eq!(bench.requests(), 1);
    assert_eq!(
        bench.handle.notices(),
        ["The schedule nightly fails: primary has no model"]
    );
    let status = bench.handle.list().await.unwrap().remove(0);
    assert!(status.failing && !status.running);
    assert_eq!(status.outcome.as_deref(), Some("primary has no model"));
    assert!(
        bench.recorded.0.lock()[0].ends_with("failed and is tried again: primary has no model")
    );
    *bench.api.fails.lock() = None;
    bench.at(later(at(TURN), 60)).await;
    assert_eq!((bench.requests(), bench.handle.notices().len()), (2, 0));
    assert!(bench.path("day.md").exists());
}

#[tokio::test]
async fn a_run_waits_for_a_pause_without_using_an_attempt() {
    let mut bench = Bench::new("brief", "DIR/day.jsonl", "DIR/day.md").await;
    bench.at(at(BEFORE)).await;
    *bench.paused.lock() = true;
    bench.at(at(TURN)).await;
    assert_eq!(bench.requests(), 0);
    // A pause that starts at that moment.
    *bench.paused.lock() = false;
    *bench.api.fails.lock() = Some(Error::new(Code::Paused, "Tierbar is paused"));
    bench.at(at(TURN)).await;
    assert_eq!((bench.requests(), bench.kept().await.attempts), (1, 0));
    assert!(bench.handle.notices().is_empty() && bench.recorded.0.lock().is_empty());
    *bench.api.fails.lock() = None;
    bench.at(later(at(TURN), 60)).await;
    assert!(bench.path("day.md").exists());
}

#[tokio::test]
async fn a_run_that_killed_the_host_uses_an_attempt_and_says_so() {
    let mut bench = Bench::new("brief", "DIR/day.jsonl", "DIR/day.md").await;
    bench.at(later(at(BEFORE), -24 * 3600)).await;
    bench.at(later(at(TURN), -24 * 3600)).await;
    let before = bench.handle.list().await.unwrap().remove(0);
    assert!(before.outcome.unwrap().starts_with("wrote "));
    let requests_before = bench.requests();
    let (sender, mut requests) = mpsc::unbounded_channel();
    let never = move |_, _| -> BoxFuture<'static, _> {
        sender.send(()).unwrap();
        Box::pin(std::future::pending())
    };
    let answering = std::mem::replace(&mut bench.runner.run_task, Box::new(never));
    let (zone, handle) = (TimeZone::UTC, &bench.handle);
    tokio::select! {
        _ = bench.runner.take_turns(at(TURN), &zone) => panic!("it ended"),
        () = async {
            requests.recv().await.unwrap();
            let status = handle.list().await.unwrap().remove(0);
            assert!(status.running && status.outcome.is_none() && !status.failing);
        } => {}
    }
    assert!(bench.handle.running.lock().is_none());
    assert_eq!(bench.kept().await.attempts, 1);
    // The next host says what became of it, and not what came of the run before.
    let status = bench.handle.list().await.unwrap().remove(0);
    assert_eq!(
        status.outcome.as_deref(),
        Some("Tierbar quit or was ended while it ran")
    );
    assert!(status.failing && !status.running);
    assert_eq!(status.tried_at, Some(at(TURN).as_second()));
    bench.runner.run_task = answering;
    bench.at(later(at(TURN), 10)).await;
    assert_eq!(bench.requests(), requests_before);
    bench.at(later(at(TURN), 60)).await;
    assert_eq!(bench.requests(), requests_before + 1);
    let status = bench.handle.list().await.unwrap().remove(0);
    assert!(!status.failing && status.outcome.unwrap().starts_with("wrote "));
}

#[tokio::test]
async fn a_folder_is_read_from_the_last_success_on() {
    let mut bench = Bench::new("summarize", "DIR/notes", "DIR/out.md").await;
    std::fs::create_dir(bench.path("notes")).unwrap();
    let put = |name: &str, at: Timestamp| {
        let path = bench.folder.path().join("notes").join(name);
        std::fs::write(&path, name).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::from(at)).unwrap();
    };
    put("long-ago", at("2026-11-01T00:00:00Z"));
    put("today", at("2026-11-21T12:00:00Z"));
    let api = bench.api.clone();
    let texts = || api.requests.lock().clone();
    let after = |n: i64| later(at(TURN), n * 24 * 3600);
    let next = bench.path("notes/next");
    bench.at(at(BEFORE)).await;
    bench.at(after(0)).await;
    assert_eq!(texts(), ["today\n"]);
    // Nothing new: that is no failure, and no request is sent.
    bench.at(after(1)).await;
    assert_eq!(
        bench.kept().await.outcome.as_deref(),
        Some("found nothing new")
    );
    std::fs::write(&next, "next").unwrap();
    let file = std::fs::File::options().write(true).open(&next).unwrap();
    file.set_modified(std::time::SystemTime::from(later(after(1), 3600)))
        .unwrap();
    // A failure loses nothing.
    *bench.api.fails.lock() = Some(Error::new(Code::TierFailed, "no"));
    bench.at(after(2)).await;
    *bench.api.fails.lock() = None;
    bench.at(after(3)).await;
    assert_eq!(texts(), ["today\n", "next\n", "next\n"]);
}

#[tokio::test]
async fn a_url_can_be_the_source_and_a_webhook_the_target() {
    let (posted, mut posts) = mpsc::unbounded_channel::<Value>();
    let refuse = Arc::new(Mutex::new(true));
    let refusing = Arc::clone(&refuse);
    let hook = move |Json(body): Json<Value>| {
        posted.send(body).unwrap();
        let status = if *refusing.lock() {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::NO_CONTENT
        };
        std::future::ready(status)
    };
    let routes = Router::new()
        .route("/day.jsonl", get(|| async { "{\"msg\": \"far\"}\n" }))
        .route("/secret/hook/", post(hook));
    let server = served(routes).await;
    let mut bench = Bench::new(
        "brief",
        &format!("{server}/day.jsonl"),
        &format!("{server}/secret/hook/"),
    )
    .await;
    bench.at(at(BEFORE)).await;
    bench.at(at(TURN)).await;
    let first = posts.recv().await.unwrap();
    let outcome = bench.kept().await.outcome.unwrap();
    assert!(
        outcome.contains("503") && !outcome.contains("secret"),
        "{outcome}"
    );
    *refuse.lock() = false;
    bench.at(later(at(TURN), 60)).await;
    let second = posts.recv().await.unwrap();
    assert_eq!(first, second);
    assert_eq!(
        (&second["schedule"], &second["date"], &second["text"]),
        (
            &json!("nightly"),
            &json!("2026-11-22"),
            &json!("All is well.")
        )
    );
    assert_eq!(second["answer"]["saved"], 7);
    // The result is delivered again without another request, and covers what was read then.
    assert_eq!(*bench.api.requests.lock(), ["{\"msg\": \"far\"}\n"]);
    assert_eq!(bench.kept().await.covers_to, Some(at(TURN).as_second()));
    let outcome = bench.kept().await.outcome.unwrap();
    assert!(outcome.starts_with("posted to 127.0.0.1:"), "{outcome}");
    bench.at(later(at(TURN), 24 * 3600)).await;
    let next = posts.recv().await.unwrap();
    assert_eq!((&next["date"], bench.requests()), (&json!("2026-11-23"), 2));
}

#[tokio::test]
async fn a_schedule_can_be_run_by_hand() {
    let Bench {
        folder,
        handle,
        runner,
        api,
        _config,
        ..
    } = Bench::new("brief", "DIR/day.jsonl", "DIR/by-hand.md").await;
    let closing = CancellationToken::new();
    let owner = tokio::spawn(runner.run(closing.clone()));
    let outcome = handle.run("nightly".to_owned()).await.unwrap();
    assert!(outcome.contains("by-hand.md"), "{outcome}");
    assert!(folder.path().join("by-hand.md").exists());
    let status = handle.list().await.unwrap().remove(0);
    assert!(status.tried_at.is_some() && !status.failing);
    assert_eq!(status.outcome, Some(outcome));
    assert_eq!(
        handle.run("other".to_owned()).await.unwrap_err().code,
        Code::NotFound
    );
    *api.fails.lock() = Some(Error::new(Code::TierFailed, "primary has no model"));
    handle.run("nightly".to_owned()).await.unwrap_err();
    *api.fails.lock() = Some(Error::new(Code::Paused, "Tierbar is paused"));
    assert_eq!(
        handle.run("nightly".to_owned()).await.unwrap_err().code,
        Code::Paused
    );
    let status = handle.list().await.unwrap().remove(0);
    assert_eq!(status.outcome.as_deref(), Some("primary has no model"));
    assert!(status.failing && handle.notices().is_empty());
    closing.cancel();
    owner.await.unwrap();
    assert_eq!(
        handle.run("nightly".to_owned()).await.unwrap_err().code,
        Code::ShuttingDown
    );
}

#[test]
fn the_api_sets_schedules_of_documents_alone() {
    let config = |text: &str| toml::from_str::<Config>(text).unwrap();
    let one_text =
        "[schedules.a]\nat = \"02:00\"\ntask = \"brief\"\nsource = \"/a\"\nto = \"/b\"\n";
    let (none, one, other) = (
        config(""),
        config(one_text),
        config(&one_text.replace("/b", "/c")),
    );
    let document = config(&one_text.replace("/b", "/b.md"));
    for (before, after) in [(&none, &one), (&one, &other)] {
        let error = check_changes(before, after).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.starts_with("schedules.a.to: "), "{error}");
    }
    assert_eq!(check_changes(&none, &document), Ok(()));
    assert_eq!(check_changes(&one, &one), Ok(()));
    assert_eq!(check_changes(&one, &none), Ok(()));
}
