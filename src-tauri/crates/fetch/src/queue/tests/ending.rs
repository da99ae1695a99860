//! How downloads end: done, failed, removed, or with the program.

use super::*;
use DownloadState::{Done, Downloading, Failed, Paused, Queued, Verifying};
use Priority::{High, Normal};

#[tokio::test(start_paused = true)]
async fn a_download_is_done_once_the_callback_succeeds() {
    let mut stage = Stage::new(1);
    let (agree, answer) = oneshot::channel();
    stage.cues.callback_answers.lock().push(answer);
    stage
        .queue
        .add(stage.job("split", &["1", "2"]))
        .await
        .unwrap();
    stage.call().await.finish();
    assert!(stage.cues.completed.lock().is_empty());
    stage.call().await.finish();
    let status = stage.until("split", Verifying).await;
    assert_eq!(status.received_bytes, 2000);
    assert_eq!(
        *stage.cues.completed.lock(),
        [("split".to_owned(), vec![fetched(), fetched()])]
    );
    agree.send(Ok(())).unwrap();
    stage.until("split", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_a_failed_callback_fetches_nothing() {
    let mut stage = Stage::new(1);
    let (refuse, answer) = oneshot::channel();
    stage.cues.callback_answers.lock().push(answer);
    refuse
        .send(Err(Error::new(Code::ModelInvalid, "it is a web page")))
        .unwrap();
    let id = stage.add("a", Normal).await;
    stage.call().await.finish();
    let status = stage.until("a", Failed).await;
    assert_eq!(status.reason.as_deref(), Some("it is a web page"));

    stage.queue.resume(&id).await.unwrap();
    stage.until("a", Done).await;
    assert_eq!(stage.cues.completed.lock().len(), 2);
    stage.no_call().await;
}

#[tokio::test(start_paused = true)]
async fn the_completion_callback_is_not_interrupted() {
    let mut stage = Stage::new(1);
    let (agree, answer) = oneshot::channel();
    stage.cues.callback_answers.lock().push(answer);
    let id = stage.add("a", Normal).await;
    stage.call().await.finish();
    stage.until("a", Verifying).await;
    stage.add("high", High).await;
    stage.queue.pause(&id).await.unwrap();
    stage.no_call().await;
    agree.send(Ok(())).unwrap();
    // It was too late to pause.
    stage.until("a", Done).await;
    assert_eq!(stage.call().await.name(), "high");
}

#[tokio::test(start_paused = true)]
async fn a_download_paused_at_its_last_byte_completes_on_resume() {
    let mut stage = Stage::new(1);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let id = stage.add("a", Normal).await;
    let call = stage.call().await;
    stage.queue.pause(&id).await.unwrap();
    call.finish();
    stage.no_call().await;
    assert_eq!(stage.status("a").state, Paused);
    assert!(stage.cues.completed.lock().is_empty());
    stage.queue.resume(&id).await.unwrap();
    stage.until("a", Done).await;
    stage.no_call().await;
}

#[tokio::test(start_paused = true)]
async fn a_download_removed_at_its_last_byte_is_deleted() {
    let mut stage = Stage::new(1);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let id = stage.add("a", Normal).await;
    let call = stage.call().await;
    let queue = stage.queue.clone();
    let removal = tokio::spawn(async move { queue.remove(&id).await });
    call.cancelled().await;
    call.finish();
    removal.await.unwrap().unwrap();
    assert!(stage.cues.completed.lock().is_empty());
    assert!(!stage.dest("a").exists());
}

#[tokio::test(start_paused = true)]
async fn a_failed_download_has_a_reason_and_the_next_starts() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    stage.add("b", Normal).await;
    stage
        .call()
        .await
        .fail(Error::new(Code::Storage, "the volume is full").hint("free 3 GB"));
    assert_eq!(
        stage.until("a", Failed).await.reason.as_deref(),
        Some("the volume is full: free 3 GB")
    );
    stage.call().await.finish();
    stage.until("b", Done).await;
    stage.no_call().await;
    assert_eq!(
        stage.queue.pause(&id).await.unwrap_err().code,
        Code::BadRequest
    );
    let resumed = stage.queue.resume(&id).await.unwrap();
    assert_eq!((resumed.state, resumed.reason), (Downloading, None));
    assert_eq!(stage.call().await.name(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_defect_fails_its_download_alone() {
    let mut stage = Stage::new(1);
    let (_, answer) = oneshot::channel();
    let id = stage.add("a", Normal).await;
    stage.add("b", Normal).await;
    stage
        .call()
        .await
        .end_with(|| panic!("index out of bounds"));
    let reason = stage.until("a", Failed).await.reason.unwrap();
    assert!(
        reason.contains("defect") && reason.contains("index out of bounds"),
        "{reason}"
    );
    stage.cues.callback_answers.lock().push(answer);
    stage.call().await.finish();
    let reason = stage.until("b", Failed).await.reason.unwrap();
    assert!(reason.contains("the callback panicked"), "{reason}");
    stage.queue.resume(&id).await.unwrap();
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_finished_download_can_neither_be_paused_nor_resumed() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    stage.call().await.finish();
    stage.until("a", Done).await;
    assert_eq!(
        stage.queue.pause(&id).await.unwrap_err().code,
        Code::BadRequest
    );
    assert_eq!(
        stage.queue.resume(&id).await.unwrap_err().code,
        Code::BadRequest
    );
}

#[tokio::test(start_paused = true)]
async fn a_removed_download_is_deleted_after_its_transfer_ends() {
    let mut stage = Stage::new(1);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let (status, _) = stage
        .queue
        .add(stage.job("split", &["1", "2"]))
        .await
        .unwrap();
    stage.call().await.finish();
    let second = stage.call().await;
    let queue = stage.queue.clone();
    let removal = tokio::spawn(async move { queue.remove(&status.id).await });
    second.cancelled().await;
    stage.no_call().await;
    assert!(!removal.is_finished());
    assert!(stage.list().is_empty());
    assert!(stage.dest("1").exists());
    second.fail(Error::new(Code::Cancelled, "stopped"));
    removal.await.unwrap().unwrap();
    assert!(!stage.dest("1").exists());
    assert!(!stage.state_file().contains("split"));
}

#[tokio::test(start_paused = true)]
async fn removing_a_download_keeps_a_file_that_existed_before() {
    let mut stage = Stage::new(1);
    std::fs::write(stage.dest("1"), [0; 1000]).unwrap();
    let (status, _) = stage
        .queue
        .add(stage.job("split", &["1", "2"]))
        .await
        .unwrap();
    stage.call().await.finish();
    stage.call().await;
    stage.queue.remove(&status.id).await.unwrap();
    assert!(stage.dest("1").exists());
}

#[tokio::test(start_paused = true)]
async fn removing_a_finished_download_keeps_its_file() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    stage.call().await.finish();
    stage.until("a", Done).await;
    stage.queue.remove(&id).await.unwrap();
    assert!(stage.list().is_empty());
    assert!(stage.dest("a").exists());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_removal_completes_at_the_next_start() {
    let mut stage = Stage::new(1);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let (status, _) = stage
        .queue
        .add(stage.job("split", &["1", "2"]))
        .await
        .unwrap();
    stage.call().await.finish();
    let second = stage.call().await;
    let queue = stage.queue.clone();
    let removal = tokio::spawn(async move { queue.remove(&status.id).await });
    second.cancelled().await;
    let mut seen = stage.queue.watch();
    seen.wait_for(|list| list.is_empty()).await.unwrap();
    stage.no_call().await;
    let mut stage = stage.crash().await;
    stage.no_call().await;
    assert!(stage.list().is_empty());
    assert!(!stage.dest("1").exists());
    removal.abort();
}

#[tokio::test(start_paused = true)]
async fn a_download_added_during_its_removal_starts_afterwards() {
    let mut stage = Stage::new(4);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let id = stage.add("a", Normal).await;
    let first = stage.call().await;
    let queue = stage.queue.clone();
    let removal = tokio::spawn(async move { queue.remove(&id).await });
    first.cancelled().await;
    stage.add("a", Normal).await;
    assert_eq!(stage.status("a").state, Queued);
    stage.no_call().await;
    first.fail(Error::new(Code::Cancelled, "stopped"));
    removal.await.unwrap().unwrap();
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_twenty_finished_downloads_stay_listed() {
    let mut stage = Stage::new(1);
    for number in 0..25 {
        let name = number.to_string();
        stage.add(&name, Normal).await;
        stage.call().await.finish();
        stage.until(&name, Done).await;
    }
    let names: Vec<_> = stage.list().into_iter().map(|it| it.reference).collect();
    let expected: Vec<_> = (5..25)
        .rev()
        .map(|number: u32| number.to_string())
        .collect();
    assert_eq!(names, expected);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_transfers_and_loses_nothing() {
    let mut stage = Stage::new(2);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    for name in ["a", "b", "c"] {
        stage.add(name, Normal).await;
    }
    let (a, b) = stage.two_calls().await;
    let queue = stage.queue.clone();
    let shutdown = tokio::spawn(async move { queue.shutdown().await });
    a.cancelled().await;
    b.cancelled().await;
    let error = stage.queue.add(stage.job("d", &["d"])).await.unwrap_err();
    assert_eq!(error.code, Code::ShuttingDown);
    a.report(900, Phase::Receiving);
    a.fail(Error::new(Code::Cancelled, "stopped"));
    stage.no_call().await;
    assert!(!shutdown.is_finished());
    b.finish();
    shutdown.await.unwrap();
    stage.queue.shutdown().await;

    let mut stage = stage.restart().await;
    assert_eq!(stage.status("a").received_bytes, 900);
    let a = stage.call().await;
    assert_eq!(a.name(), "a");
    a.finish();
    // All of it had arrived before the end, and only the answer was left.
    stage.until("b", Done).await;
    assert_eq!(stage.call().await.name(), "c");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_queue_ends_its_transfers() {
    let mut stage = Stage::new(1);
    stage.add("a", Normal).await;
    let call = stage.call().await;
    let Stage { folder, queue, .. } = stage;
    let mut seen = queue.watch();
    drop(queue);
    call.cancelled().await;
    // The owner's end.
    while seen.changed().await.is_ok() {}
    let mut stage = Stage::within(folder, 1);
    assert_eq!(stage.call().await.name(), "a");
}
