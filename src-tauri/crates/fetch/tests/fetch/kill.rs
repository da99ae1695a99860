//! `kill -9` at seeded points, each of a file of its own, which is then fetched to its end.
//!
//! `TIERBAR_KILLS` (12) and `TIERBAR_KILL_MIB` (32) set how many points and how large the file.

use crate::{
    TestDownload,
    server::{Content, Server},
};
use std::{process::Stdio, sync::Arc};
use tokio::{process::Command, sync::Semaphore, task::JoinSet};

const MIB: u64 = 1 << 20;
/// Of the server, for each connection: a file takes long enough for several journals.
const PACE: u64 = 4 << 20;
const AT_ONCE: usize = 4;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => default,
    }
}

#[derive(Debug)]
struct Outcome {
    /// What the journal claimed after the kill.
    claimed: u64,
    /// What the server had sent until then.
    sent: u64,
}

/// Kills at `point`; if `journaled`, not before the journal claims something.
async fn kill_and_resume(content: Content, point: u64, journaled: bool) -> Outcome {
    let server = Server::start({
        let content = content.clone();
        move |request| content.answer(request).paced(PACE)
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.sha256 = Some(content.sha256());
    let mut child = Command::new(env!("CARGO_BIN_EXE_fetch-file"))
        .args([wanted.spec.url.as_str(), wanted.spec.dest.to_str().unwrap()])
        .args(["--sha256", &content.sha256(), "--margin", "0"])
        .env("NO_PROXY", "*")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut served = server.served();
    let due = served.wait_for(|served| {
        let all = *served == content.bytes.len() as u64;
        all || *served >= point && (!journaled || !wanted.claimed().is_empty())
    });
    due.await.unwrap();
    child.kill().await.unwrap();
    // More was sent until it was dead.
    let sent = *served.borrow();
    let claimed = wanted.claimed();
    server.forget_log();
    assert_eq!(
        wanted.fetch().await.unwrap().sha256,
        content.sha256(),
        "killed at {point}"
    );
    for (start, end) in server
        .log()
        .iter()
        .filter_map(crate::server::Request::range)
    {
        let again = claimed.iter().find(|&&(from, to)| start < to && from < end);
        assert_eq!(again, None, "{start}..{end} came twice, killed at {point}");
    }
    Outcome {
        claimed: claimed.iter().map(|(start, end)| end - start).sum(),
        sent,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_transfer_resumes_from_its_journal() {
    let (kills, mib) = (number("TIERBAR_KILLS", 12), number("TIERBAR_KILL_MIB", 32));
    let content = Content::new(usize::try_from(mib * MIB).unwrap(), 1);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut points = JoinSet::new();
    let seeds = Content::new(usize::try_from(kills * 8).unwrap(), 77).bytes;
    for (nth, seed) in seeds.chunks_exact(8).enumerate() {
        let point = u64::from_le_bytes(seed.try_into().unwrap()) % (mib * MIB);
        let (content, slots) = (content.clone(), slots.clone());
        // One in four is killed wherever it is, perhaps before its first journal.
        let journaled = nth % 4 != 0;
        points.spawn(async move {
            let _slot = slots.acquire().await.unwrap();
            (journaled, kill_and_resume(content, point, journaled).await)
        });
    }
    let mut from_zero = 0;
    while let Some(outcome) = points.join_next().await {
        let (journaled, Outcome { claimed, sent }) = outcome.unwrap();
        assert!(claimed <= sent);
        // What had all been sent may be finished, or not have been journaled yet.
        from_zero += u64::from(journaled && claimed == 0 && sent < mib * MIB);
    }
    assert_eq!(from_zero, 0, "restarts from zero");
}
