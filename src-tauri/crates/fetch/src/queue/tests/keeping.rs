//! What survives the program, and what is never written.

use super::*;
use DownloadState::{Done, Downloading, Failed, Paused, Queued};
use Priority::{High, Low, Normal};
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test(start_paused = true)]
async fn the_list_survives_a_restart() {
    let mut stage = Stage::new(1);
    let paused = stage.add("paused", High).await;
    stage.call().await.report(300, Phase::Receiving);
    stage.queue.pause(&paused).await.unwrap();
    stage.add("failed", Normal).await;
    let refused = Error::new(Code::AccessDenied, "the server wants a token");
    stage.call().await.fail(refused.hint("give it one"));
    stage.until("failed", Failed).await;
    stage.add("done", Normal).await;
    stage.call().await.finish();
    stage.until("done", Done).await;
    let mut job = stage.job("running", &["running"]);
    job.warnings
        .push("the volume would be 90 % full".to_owned());
    stage.queue.add(job).await.unwrap();
    stage.call().await.report(500, Phase::Receiving);
    stage.add("waits", Low).await;

    let before = stage.list();
    let mut stage = stage.restart().await;
    let running = stage.call().await;
    assert_eq!(running.name(), "running");
    stage.until("running", Downloading).await;
    let after = stage.list();
    let summaries = |list: &[DownloadStatus]| -> Vec<_> {
        let mut list = list.to_vec();
        list.iter_mut().for_each(|it| {
            it.bytes_per_second = 0;
            it.eta_seconds = None;
            it.received_bytes = if it.reference == "running" {
                500
            } else {
                it.received_bytes
            };
        });
        list
    };
    assert_eq!(summaries(&after), summaries(&before));
    assert_eq!(stage.status("running").received_bytes, 500);
    assert_eq!(stage.status("paused").received_bytes, 300);
    assert_eq!(
        stage.status("failed").reason.as_deref(),
        Some("the server wants a token: give it one")
    );
    let states =
        ["running", "waits", "paused", "failed", "done"].map(|name| stage.status(name).state);
    assert_eq!(states, [Downloading, Queued, Paused, Failed, Done]);
    running.finish();
    stage.call().await.finish();
    stage.until("waits", Done).await;
    stage.no_call().await;
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_change_is_on_the_disk() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    stage.call().await;
    stage.queue.pause(&id).await.unwrap();
    let mut stage = stage.crash().await;
    assert_eq!(stage.status("a").state, Paused);
    stage.no_call().await;
    stage.queue.resume(&id).await.unwrap();
    let mut stage = stage.crash().await;
    assert_eq!(stage.call().await.name(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_verified_part_of_a_split_model_is_kept() {
    let mut stage = Stage::new(1);
    stage
        .queue
        .add(stage.job("split", &["1", "2", "3"]))
        .await
        .unwrap();
    stage.call().await.finish();
    let second = stage.call().await;
    assert_eq!(second.name(), "2");
    stage.no_call().await;
    let mut stage = stage.crash().await;
    assert_eq!(stage.status("split").received_bytes, 1000);
    let second = stage.call().await;
    assert_eq!(second.name(), "2");
    second.finish();
    // But one that has gone is.
    assert_eq!(stage.call().await.name(), "3");
    stage.no_call().await;
    std::fs::remove_file(stage.dest("1")).unwrap();
    let mut stage = stage.crash().await;
    assert_eq!(stage.call().await.name(), "1");
}

#[tokio::test(start_paused = true)]
async fn only_the_user_may_read_the_list() {
    let stage = Stage::new(1);
    stage.add("a", Normal).await;
    let mode = std::fs::metadata(stage.dest("downloads.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(start_paused = true)]
async fn a_signed_url_is_not_saved_and_needed_again_on_restart() {
    let mut stage = Stage::new(1);
    let mut job = stage.job("https://s3.example/a", &["a"]);
    job.files[0].url = "https://s3.example/a?X-Amz-Signature=5ec7e7"
        .parse()
        .unwrap();
    stage.queue.add(job.clone()).await.unwrap();
    let call = stage.call().await;
    assert_eq!(call.work.spec.url.query(), Some("X-Amz-Signature=5ec7e7"));
    call.report(700, Phase::Receiving);
    assert!(!stage.state_file().contains("5ec7e7"));
    assert!(!format!("{job:?}").contains("5ec7e7"));

    let mut stage = stage.restart().await;
    let status = stage.status("https://s3.example/a");
    assert_eq!((status.state, status.received_bytes), (Failed, 700));
    assert!(status.reason.unwrap().contains("secret"));
    stage.no_call().await;
    let mut stage = stage.restart().await;
    // Another signature for the same file.
    job.files[0].url = "https://s3.example/a?X-Amz-Signature=5ec7e8"
        .parse()
        .unwrap();
    let (status, new) = stage.queue.add(job).await.unwrap();
    assert_eq!((new, status.received_bytes), (true, 700));
    assert_eq!(
        stage.call().await.work.spec.url.query(),
        Some("X-Amz-Signature=5ec7e8")
    );
    assert_eq!(stage.list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plain_query_is_kept() {
    let mut stage = Stage::new(1);
    let mut job = stage.job("https://x.example/get", &["a"]);
    job.files[0].url = "https://x.example/get?file=a".parse().unwrap();
    stage.queue.add(job).await.unwrap();
    stage.call().await;
    let mut stage = stage.restart().await;
    assert_eq!(stage.call().await.work.spec.url.query(), Some("file=a"));
}

/// Starts over a list that is not one; the notice, and what was kept aside.
async fn opened(text: &[u8]) -> (String, Vec<u8>) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("downloads.json"), text).unwrap();
    let mut stage = Stage::within(folder, 1);
    assert!(stage.list().is_empty());
    let notices = stage.queue.notices().borrow().clone();
    assert_eq!(notices.len(), 1);
    // It works all the same, and the next start knows nothing of it.
    stage.add("a", Normal).await;
    stage.call().await;
    assert_eq!(*stage.queue.notices().borrow(), notices);
    let kept = std::fs::read(stage.dest("downloads.json.bad")).unwrap();
    let stage = stage.restart().await;
    assert!(stage.queue.notices().borrow().is_empty());
    assert_eq!(stage.list().len(), 1);
    (notices[0].clone(), kept)
}

#[tokio::test(start_paused = true)]
async fn a_damaged_list_is_set_aside_and_reported() {
    let text = {
        let stage = Stage::new(1);
        stage.queue.add(stage.job("a", &["a", "b"])).await.unwrap();
        stage.state_file()
    };
    let half = &text[..text.len() / 2];
    let other_parts = text.replace(
        "\"parts\": [",
        "\"parts\": [{\"received\": 1, \"total\": 1},",
    );
    let outside = text.replace("\"dest\": \"/", "\"dest\": \"../");
    assert_ne!(other_parts, text);
    assert_ne!(outside, text);
    for bad in ["", "\0\0\0", "[]", "{}", half, &other_parts, &outside] {
        let (notice, kept) = opened(bad.as_bytes()).await;
        assert!(
            notice.contains("damaged") && notice.contains("downloads.json.bad"),
            "{notice}"
        );
        assert_eq!(kept, bad.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_versions_list_is_set_aside_and_reported() {
    let (notice, _) = opened(br#"{"version": 2, "queue": {}}"#).await;
    assert!(
        notice.contains("newer") && notice.contains("format 2"),
        "{notice}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unwritable_list_is_reported_and_downloads_continue() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut stage = Stage::within(folder.clone(), 1);
    let id = stage.add("a", Normal).await;
    let call = stage.call().await;
    // Nothing can take the place of a folder that is not empty.
    std::fs::remove_file(stage.dest("downloads.json")).unwrap();
    std::fs::create_dir_all(stage.dest("downloads.json/x")).unwrap();
    stage.queue.prioritize(&id, High).await.unwrap();
    let notice = stage.queue.notices().borrow()[0].clone();
    assert!(notice.contains("downloads.json"), "{notice}");
    std::fs::remove_dir_all(stage.dest("downloads.json")).unwrap();
    call.finish();
    stage.until("a", Done).await;
    stage.queue.shutdown().await;
    assert!(stage.queue.notices().borrow().is_empty());
    assert!(stage.state_file().contains("\"done\""));
}
