//! Adding downloads.

use super::*;
use DownloadState::{Done, Downloading, Failed, Paused};
use Priority::{High, Low, Normal};

#[tokio::test(start_paused = true)]
async fn adding_a_reference_again_raises_its_priority() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    let call = stage.call().await;
    for (requested, priority) in [(Low, Normal), (High, High)] {
        let job = Job {
            priority: requested,
            ..stage.job("a", &["a"])
        };
        let (status, new) = stage.queue.add(job).await.unwrap();
        assert_eq!(
            (status.id.as_str(), new, status.priority),
            (id.as_str(), false, priority)
        );
    }
    assert_eq!(stage.list().len(), 1);
    assert!(!call.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_same_files_by_another_name_are_the_same_download() {
    let mut stage = Stage::new(1);
    let id = stage.add("owner/repo:Q4_K_M", Normal).await;
    stage.call().await;
    let job = stage.job("catalog-id", &["owner/repo:Q4_K_M"]);
    let (status, new) = stage.queue.add(job).await.unwrap();
    assert_eq!((status.id, new), (id, false));
}

#[tokio::test(start_paused = true)]
async fn another_file_of_the_same_name_is_refused_in_any_case() {
    let mut stage = Stage::new(1);
    stage.add("model.gguf", Normal).await;
    stage.call().await;
    for (reference, name) in [("else", "MODEL.gguf"), ("other", "model.GGUF")] {
        let mut job = stage.job(reference, &["part.gguf", name]);
        job.files[1].url = "https://other.example/x".parse().unwrap();
        let error = stage.queue.add(job).await.unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(
            error.message.contains(reference) && error.message.contains("model.gguf"),
            "{error}"
        );
        assert!(error.hint.is_some());
    }
    assert_eq!(stage.list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_server_s_file_of_the_same_name_is_refused() {
    let mut stage = Stage::new(1);
    stage.add("model.gguf", Normal).await;
    stage.call().await;
    let mut job = stage.job("else", &["model.gguf"]);
    job.files[0].url = "https://other.example/model.gguf".parse().unwrap();
    assert_eq!(
        stage.queue.add(job).await.unwrap_err().code,
        Code::BadRequest
    );
}

#[tokio::test(start_paused = true)]
async fn two_urls_that_differ_only_in_their_query_are_two_downloads() {
    let mut stage = Stage::new(1);
    stage
        .queue
        .add(stage.job("https://x.example/get", &["a"]))
        .await
        .unwrap();
    stage.call().await;
    let (_, new) = stage
        .queue
        .add(stage.job("https://x.example/get", &["b"]))
        .await
        .unwrap();
    assert!(new);
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_failed_download_resumes_it() {
    let mut stage = Stage::new(1);
    let old = stage.add("a", Normal).await;
    let call = stage.call().await;
    call.report(400, Phase::Receiving);
    call.fail(Error::new(Code::Corrupt, "the hash differs"));
    stage.until("a", Failed).await;

    let (status, new) = stage.queue.add(stage.job("a", &["a"])).await.unwrap();
    assert!(new && status.id != old);
    assert_eq!((status.state, status.received_bytes), (Downloading, 400));
    assert_eq!(stage.list().len(), 1);
    stage.call().await.finish();
    stage.until("a", Done).await;

    // Done once more, for it is there; and fetched once more, for it is gone.
    let (_, new) = stage.queue.add(stage.job("a", &["a"])).await.unwrap();
    assert!(new);
    stage.until("a", Done).await;
    std::fs::remove_file(stage.dest("a")).unwrap();
    stage.queue.add(stage.job("a", &["a"])).await.unwrap();
    let call = stage.call().await;
    call.report(0, Phase::Receiving);
    assert_eq!(stage.until("a", Downloading).await.received_bytes, 0);
    call.finish();
    stage.until("a", Done).await;
    assert_eq!(stage.list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_download_added_again_is_verified_again() {
    let mut stage = Stage::new(1);
    let mut job = stage.job("a", &["a"]);
    job.files[0].sha256 = Some("00".repeat(32));
    stage.queue.add(job.clone()).await.unwrap();
    stage.call().await.finish();
    stage.until("a", Done).await;
    let (status, _) = stage.queue.add(job).await.unwrap();
    assert_eq!(status.received_bytes, 0);
    // The transfer reads what is there.
    stage.call().await.finish();
    stage.until("a", Done).await;
}

/// Returns whether a retry downloads a complete file again, after `change` to the request.
async fn fetches_again(change: impl Fn(&mut FileSpec)) -> bool {
    let mut stage = Stage::new(1);
    let mut job = stage.job("split", &["1", "2"]);
    job.files[0].url = "https://x.example/1?token=abc".parse().unwrap();
    stage.queue.add(job.clone()).await.unwrap();
    stage.call().await.finish();
    let no_route = Error::new(Code::Unreachable, "no route");
    stage.call().await.fail(no_route);
    stage.until("split", Failed).await;
    change(&mut job.files[0]);
    stage.queue.add(job).await.unwrap();
    stage.call().await.name() == "1"
}

#[tokio::test(start_paused = true)]
async fn a_retry_downloads_only_missing_or_changed_files() {
    let url = |url: &str| url.parse().unwrap();
    assert!(!fetches_again(|_| {}).await);
    assert!(!fetches_again(|file| file.sha256 = Some("00".repeat(32))).await);
    assert!(!fetches_again(|file| file.url = url("https://x.example/1?token=def")).await);
    assert!(fetches_again(|file| file.sha256 = Some("ab".repeat(32))).await);
    assert!(fetches_again(|file| file.size = Some(999)).await);
    assert!(fetches_again(|file| file.url = url("https://x.example/other")).await);
}

#[tokio::test(start_paused = true)]
async fn unneeded_files_of_an_earlier_try_are_deleted() {
    let mut stage = Stage::new(1);
    stage
        .queue
        .add(stage.job("split", &["old-1", "old-2"]))
        .await
        .unwrap();
    stage.call().await.finish();
    stage
        .call()
        .await
        .fail(Error::new(Code::Unreachable, "no route"));
    stage.until("split", Failed).await;
    stage.queue.add(stage.job("split", &["new"])).await.unwrap();
    assert!(!stage.dest("old-1").exists());
}

#[tokio::test(start_paused = true)]
async fn adding_a_paused_download_again_resumes_it() {
    let mut stage = Stage::new(1);
    let id = stage.add("a", Normal).await;
    stage.call().await;
    stage.queue.pause(&id).await.unwrap();
    stage.until("a", Paused).await;
    let (status, new) = stage.queue.add(stage.job("a", &["a"])).await.unwrap();
    assert_eq!((status.id, new), (id, false));
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_job_is_refused() {
    let stage = Stage::new(1);
    let mut relative = stage.job("relative", &["a"]);
    relative.files[0].dest = PathBuf::from("a.gguf");
    for job in [
        stage.job("no files", &[]),
        stage.job("twice the same", &["part.gguf", "Part.gguf"]),
        relative,
    ] {
        let error = stage.queue.add(job.clone()).await.unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.contains(&job.reference), "{error}");
    }
    assert!(stage.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_list_is_bounded() {
    let stage = Stage::new(1);
    for number in 0..256 {
        stage.add(&number.to_string(), Low).await;
    }
    let error = stage
        .queue
        .add(stage.job("one more", &["more"]))
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Overloaded);
    assert!(error.message.contains("256"), "{error}");
}
