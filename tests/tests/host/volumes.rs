//! A disk with models that is disconnected, and comes back.

use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tierbar_core::download::{DownloadState, DownloadStatus};
use tierbar_tests::{
    binaries::{self, STARTER},
    hub::{HubStandIn, Options, SMOLLM2},
    serving::{Data, Serving},
    wait::until,
};

/// A folder of models whose path can vanish, as a volume's does. What is open in it stays open.
struct Volume {
    mounted: PathBuf,
    away: PathBuf,
}

impl Volume {
    fn in_folder(data: &Data) -> Self {
        let volume = Self {
            mounted: data.path().join("disk"),
            away: data.path().join("in-a-drawer"),
        };
        fs::create_dir(&volume.mounted).unwrap();
        volume
    }

    fn config(&self) -> String {
        format!(
            "models_dir = \"{}\"\n[tiers.fast]\nmodel = \"{STARTER}\"\n",
            self.mounted.display()
        )
    }

    fn disconnect(&self) {
        fs::rename(&self.mounted, &self.away).unwrap();
    }

    fn connect(&self) {
        fs::rename(&self.away, &self.mounted).unwrap();
    }
}

async fn models(host: &Serving) -> usize {
    let (status, body) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    if status == 200 {
        body["models"].as_array().unwrap().len()
    } else {
        0
    }
}

async fn ask(host: &Serving) -> (u16, Value) {
    let answer = host.chat("fast", json!({"max_tokens": 2})).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn models_on_a_disk_that_comes_back_are_there_again() {
    let data = Data::empty("");
    let volume = Volume::in_folder(&data);
    data.configure(&volume.config());
    symlink(binaries::model(STARTER), volume.mounted.join(STARTER)).unwrap();
    let host = data.serve().await;
    assert_eq!(ask(&host).await.0, 200);

    volume.disconnect();
    let notice = until("a notice of it", async || {
        let notices = host.status().await.notices;
        notices
            .into_iter()
            .find(|notice| notice.starts_with("No models are listed"))
    })
    .await;
    let place = volume.mounted.display().to_string();
    assert!(
        notice.contains(&place) && notice.contains("connect its volume"),
        "{notice}"
    );
    // What is in memory answers; what has to be loaded says why it cannot be.
    assert_eq!(ask(&host).await.0, 200);
    let stop = Some(json!({"force": true}));
    let (status, _) = host
        .ask(Method::POST, "/tierbar/v1/tiers/fast/stop", stop)
        .await;
    assert_eq!(status, 200);
    let (status, refused) = ask(&host).await;
    assert_ne!(status, 200);
    let text = refused["error"].to_string();
    assert!(text.contains("connect its volume"), "{text}");

    volume.connect();
    until("the models", async || {
        (models(&host).await == 1).then_some(())
    })
    .await;
    until("no notice", async || {
        let notices = host.status().await.notices;
        (!notices.iter().any(|notice| notice.contains("No models"))).then_some(())
    })
    .await;
    assert_eq!(ask(&host).await.0, 200);
}

#[tokio::test]
async fn a_host_starts_without_the_disk_of_its_models() {
    let data = Data::empty("");
    let volume = Volume::in_folder(&data);
    data.configure(&volume.config());
    symlink(binaries::model(STARTER), volume.mounted.join(STARTER)).unwrap();
    volume.disconnect();
    let host = data.serve().await;
    let (status, refused) = ask(&host).await;
    assert_ne!(status, 200);
    assert!(
        refused["error"].to_string().contains("connect its volume"),
        "{refused}"
    );
    let (code, doctor, _) = data.run(&["doctor"]).await;
    assert_eq!(code, Some(1));
    assert!(doctor.contains("connect its volume"), "{doctor}");
    volume.connect();
    until("the models", async || {
        (models(&host).await == 1).then_some(())
    })
    .await;
    assert_eq!(ask(&host).await.0, 200);
}

async fn first(host: &Serving) -> Option<DownloadStatus> {
    host.status().await.downloads.into_iter().next()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

#[tokio::test]
async fn a_download_waits_for_its_disk_and_goes_on() {
    let hub = HubStandIn::start(Options {
        rate: 8_000_000,
        ..Options::default()
    })
    .await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let volume = Volume::in_folder(&data);
    data.configure(&volume.config());
    let host = data.serve().await;
    let body = json!({"reference": "tierbar-tests/tiny-GGUF:Q4_1"});
    let (status, _) = host
        .ask(Method::POST, "/tierbar/v1/downloads", Some(body))
        .await;
    assert_eq!(status, 201);
    until("a part of it", async || {
        (first(&host).await?.received_bytes > 2_000_000).then_some(())
    })
    .await;
    volume.disconnect();
    // The mount point that a volume leaves behind.
    fs::create_dir(&volume.mounted).unwrap();
    hub.set_rate(0);
    let stopped = until("its end", async || {
        let download = first(&host).await?;
        (!download.state.is_under_way()).then_some(download)
    })
    .await;
    assert_ne!(stopped.state, DownloadState::Done, "{stopped:?}");
    let reason = stopped.reason.unwrap_or_default();
    assert!(reason.contains(SMOLLM2), "{reason}");
    assert!(is_empty(&volume.mounted), "the mount point was filled");

    fs::remove_dir(&volume.mounted).unwrap();
    volume.connect();
    let path = format!("/tierbar/v1/downloads/{}", stopped.id);
    let (status, body) = host
        .ask(Method::PATCH, &path, Some(json!({"state": "queued"})))
        .await;
    assert_eq!(status, 200, "{body}");
    until("the model", async || {
        volume.mounted.join(SMOLLM2).exists().then_some(())
    })
    .await;
    let fetched = fs::read(volume.mounted.join(SMOLLM2)).unwrap();
    assert!(fetched == fs::read(binaries::model(SMOLLM2)).unwrap());
}
