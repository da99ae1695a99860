//! A disk with models that is disconnected, and comes back; a data folder whose disk is full.

use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
};
use tierbar_core::download::{DownloadState, DownloadStatus};
use tierbar_skip::skip;
use tierbar_tests::{
    binaries::{self, STARTER, program},
    hub::{HubStandIn, Options, SMOLLM2},
    serving::{Data, Serving},
    wait::{until, within},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
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

/// `tierbar serve` with its data folder on a full disk of 16 MB, 9 MB of which are saved conversations. Returns `None` where the system
/// allows no mounts.
async fn serve_on_a_full_disk(data: &Data) -> Option<(PathBuf, Serving)> {
    let mount = "mount -t tmpfs -o size=16m,mode=700 tmpfs \"$TIERBAR_HOME\"";
    let fill = "cd \"$TIERBAR_HOME\" && mkdir conversations && head -c 11000000 /dev/zero > conversations/old.context \
        && ! cat /dev/zero > fill 2> /dev/null";
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c", script])
            .arg(program("tierbar"))
            .env("TIERBAR_HOME", data.path())
            .env("HOME", data.path())
            .env("TIERBAR_SECRETS", "file")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    };
    let allowed = within("a mount", inside(mount).status()).await;
    if !allowed.ok()?.success() {
        return None;
    }
    let script = format!("{mount} && {fill} && exec \"$0\" serve --json --listen 127.0.0.1:0");
    let mut child = inside(&script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within("the host's start", lines.next_line()).await.unwrap();
    let ready: Value = serde_json::from_str(&line.expect("a host that starts")).unwrap();
    // Its mounts are its own; they are seen through its process.
    let root = PathBuf::from(format!("/proc/{}/root", child.id().unwrap()));
    let home = root.join(data.path().strip_prefix("/").unwrap());
    let host = Serving {
        child,
        url: ready["url"].as_str().unwrap().to_owned(),
        token: fs::read_to_string(home.join("token"))
            .unwrap()
            .trim()
            .to_owned(),
        http: tierbar_fetch::loopback().build().unwrap(),
    };
    Some((home, host))
}

#[tokio::test]
async fn a_host_starts_on_a_full_disk_without_its_conversations() {
    let data = Data::empty("");
    let Some((home, host)) = serve_on_a_full_disk(&data).await else {
        return skip("this system allows no mounts");
    };
    assert!(!home.join("conversations/old.context").exists());
    let (_, log) = host.ask(Method::GET, "/tierbar/v1/log", None).await;
    let text = log.to_string();
    assert!(
        text.contains("removed the saved conversations (11 MB)"),
        "{text}"
    );

    // What it cannot do is told in every view.
    let short = async || {
        let notices = host.status().await.notices;
        let is_short = |notice: &String| {
            notice.starts_with("The volume of the data folder") && notice.contains("Free up space")
        };
        notices.iter().any(is_short)
    };
    assert!(!short().await);
    let mut filler = fs::File::create(home.join("more")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    until("a notice of the full disk", async || {
        short().await.then_some(())
    })
    .await;
    drop(filler);
    fs::remove_file(home.join("more")).unwrap();
    until("no notice", async || (!short().await).then_some(())).await;
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
