//! Disks that are full, and names that are none.

use crate::{
    TestDownload, claimed,
    server::{Content, Server},
};
use std::{path::PathBuf, process::Stdio, sync::Mutex};
use tierbar_core::Code;
use tierbar_skip::skip;
use tokio::process::Command;

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_without_room_is_refused_before_the_first_byte() {
    let content = Content::new(MIB, 1);
    for ranges in [true, false] {
        let content = content.clone();
        let server = Server::start(move |request| {
            if ranges {
                content.answer(request)
            } else {
                content.whole()
            }
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.terms.margin = Some(1 << 60);
        let error = wanted.fetch().await.unwrap_err();
        assert_eq!(error.code, Code::Storage, "{error}");
        assert_eq!(error.details["missing_bytes"], MIB as u64);
        assert_eq!(error.details["margin_bytes"], 1u64 << 60);
        assert!(
            error.details["free_bytes"]
                .as_u64()
                .is_some_and(|free| free > 0)
        );
        assert!(wanted.names().is_empty(), "{:?}", wanted.names());
    }
}

/// A process that may write no file longer than `blocks` of 512 bytes.
async fn fetch_limited(wanted: &TestDownload, blocks: usize) -> (bool, String) {
    let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
    let output = Command::new("dash")
        .args([
            "-c",
            script,
            &blocks.to_string(),
            env!("CARGO_BIN_EXE_fetch-file"),
        ])
        .args([wanted.spec.url.as_str(), wanted.spec.dest.to_str().unwrap()])
        .args(["--margin", "0"])
        .env("NO_PROXY", "*")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_keeps_the_partial_file() {
    let content = Content::new(12 * MIB, 2);
    for ranges in [true, false] {
        let content = content.clone();
        let sha256 = content.sha256();
        let server = Server::start(move |request| match request.starts_at() {
            _ if !ranges => content.whole(),
            // What does not fit comes last.
            start if start > 4 * MIB as u64 => content.answer(request).paced(1 << 18),
            _ => content.answer(request),
        })
        .await;
        let wanted = TestDownload::new(&server);
        let (fetched, output) = fetch_limited(&wanted, 8 * MIB / 512).await;
        assert!(!fetched);
        assert!(
            output.contains("\"storage\"") && output.contains("the disk is full"),
            "{output}"
        );
        let kept: u64 = wanted
            .claimed()
            .iter()
            .map(|(start, end)| end - start)
            .sum();
        if ranges {
            assert!(kept >= MIB as u64, "{kept} bytes were kept");
        }
        server.forget_log();
        assert_eq!(wanted.fetch().await.unwrap().sha256, sha256);
        if ranges {
            assert!(server.log().iter().all(|request| request.starts_at() > 0));
        }
    }
}

/// A volume of 8 MiB, where the process may mount one.
struct SmallVolume(PathBuf);

impl SmallVolume {
    async fn mount(at: PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "none"])
            .arg(&at)
            .stderr(Stdio::null())
            .status()
            .await;
        mount
            .is_ok_and(|status| status.success())
            .then_some(Self(at))
    }
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

/// Beside the limit above, which works everywhere: a volume that is full has no room for the journal either.
#[expect(
    clippy::disallowed_methods,
    reason = "a server's answer is made outside the runtime's tasks"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_completely_full_volume_still_gets_a_journal() {
    let content = Content::new(7 * MIB, 3);
    let server = Server::of(&content).await;
    let mut wanted = TestDownload::new(&server);
    let folder = wanted.path("volume");
    let Some(volume) = SmallVolume::mount(folder.clone()).await else {
        return skip("a small volume can be mounted by root alone, and on Linux");
    };
    wanted.spec.dest = folder.join("model.gguf");
    wanted.terms.journal_every = std::time::Duration::from_secs(3600);
    // There was room when it was looked at. Until it is filled little arrives: the first answer alone, and slowly.
    let filler = folder.join("filler");
    let server = Server::start({
        let (content, filler) = (content.clone(), filler.clone());
        let journal = folder.join("model.gguf.part.json");
        let filled = Mutex::new(false);
        move |request| {
            if request.nth == 0 {
                return content.answer(request).paced(MIB as u64);
            }
            let mut filled = filled.lock().unwrap();
            if !std::mem::replace(&mut filled, true) {
                // The first journal is written at once, but by a thread of its own.
                for _ in 0..2_000 {
                    if journal.exists() {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                std::fs::write(&filler, vec![1; 4 * MIB]).unwrap();
            }
            content.answer(request)
        }
    })
    .await;
    wanted.spec.url = server.url("/model.gguf");
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::Storage, "{error}");
    let kept: u64 = claimed(&folder.join("model.gguf.part.json"))
        .iter()
        .map(|(start, end)| end - start)
        .sum();
    // All that fitted, but for what the journal needed.
    assert!(kept > 3 * MIB as u64, "{kept} bytes were kept");
    std::fs::remove_file(filler).unwrap();
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    drop(volume);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_stream_stops_before_the_volume_is_full() {
    let content = Content::new(64 * MIB, 5);
    let server = Server::start(move |_| {
        let reply = content.whole().framed(crate::server::Framing::Chunked);
        reply.paced(4 << 20)
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    let folder = wanted.path("volume");
    let Some(volume) = SmallVolume::mount(folder.clone()).await else {
        return skip("a small volume can be mounted by root alone, and on Linux");
    };
    wanted.spec.dest = folder.join("model.gguf");
    wanted.terms.margin = Some(7 * MIB as u64);
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::Storage, "{error}");
    assert!(error.message.contains("must stay free"), "{error}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    drop(volume);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_names_and_missing_folders_are_refused() {
    let server = Server::of(&Content::new(10, 4)).await;
    let mut wanted = TestDownload::new(&server);
    for (dest, code) in [
        (PathBuf::from("model.gguf"), Code::BadRequest),
        (PathBuf::from("/"), Code::BadRequest),
        (PathBuf::new(), Code::BadRequest),
        (wanted.path("gone").join("model.gguf"), Code::Storage),
        (wanted.path(&"n".repeat(255)), Code::Storage),
    ] {
        wanted.spec.dest = dest.clone();
        let error = wanted.fetch().await.unwrap_err();
        assert_eq!(error.code, code, "{}: {error}", dest.display());
    }
    assert!(server.log().is_empty() && wanted.names().is_empty());
}
