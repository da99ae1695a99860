//! What the answers to many clients take at once.

use super::{MESSAGES, MIB, endpoints, filled, hostile::Hostile};
use crate::memory::{NOISE_MIB, frugal, rise};
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::json;
use std::sync::atomic::Ordering;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};

/// What may be held of the answers to programs without a key: half of what may be held of all.
const ALL_MIB: u64 = 128;
const LINE: usize = 15 * MIB;
const CLIENTS: usize = 32;
/// There is room for the lines of the others.
const REFUSED: usize = CLIENTS - 8;

async fn ask(host: &Serving, model: &str, stream: bool) -> (u16, String) {
    let body = json!({"model": model, "max_tokens": 9, "stream": stream,
        "messages": [{"role": "user", "content": "Hi"}]});
    let request = host.http.post(format!("{}{MESSAGES}", host.url));
    let request = request.header("x-tierbar-queue", "never");
    let answer = request.json(&body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap())
}

/// Asks for as many answers as there is no room for, and returns those that are held.
async fn refused(host: &Serving, stream: bool) -> impl Sized {
    let asked = (0..CLIENTS).map(|_| ask(host, "gpt", stream));
    let mut asked: FuturesUnordered<_> = asked.collect();
    let refused = asked.by_ref().take(REFUSED).collect::<Vec<_>>();
    for (status, text) in within("refusals", refused).await {
        assert!(text.contains("limit of 128 MiB"), "{status}: {text:.999}");
        assert_eq!(status, if stream { 200 } else { 429 });
    }
    asked
}

/// Waits until the host has room for an answer.
async fn has_room(host: &Serving, hostile: &Hostile) {
    hostile.stalls.store(false, Ordering::Relaxed);
    until("room for an answer", async || {
        let (status, _) = ask(host, "gpt", false).await;
        (status == 200).then_some(())
    })
    .await;
    hostile.stalls.store(true, Ordering::Relaxed);
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn all_answers_together_take_no_more_than_their_share() {
    let (hostile, server) = Hostile::start().await;
    let (plain, beside) = Hostile::start().await;
    let tier = format!("[tiers.plain]\nmodel = \"m\"\nengine = {{ endpoint = \"{beside}\" }}\n");
    let (_data, host) = frugal(Data::empty(&(endpoints(&server) + &tier))).await;
    let events = "text/event-stream";
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
    let end = "\"},\"finish_reason\":\"stop\"}]}";
    let line = filled(LINE, event, "word ", end);
    hostile.stalls.store(true, Ordering::Relaxed);
    let short = format!("{event}Hi{end}\n\ndata: [DONE]\n\n");
    plain.will_answer(200, events, short);

    let most = ALL_MIB + 4 * NOISE_MIB;
    let crowd = async || {
        hostile.will_answer(200, events, line.clone());
        let asked = refused(&host, true).await;
        for stream in [true, false] {
            let (status, text) = within("a short answer", ask(&host, "plain", stream)).await;
            assert!(text.contains("\"Hi\""), "{status}: {text:.999}");
        }
        // What clients have left is given back.
        drop(asked);
        hostile.will_answer(200, events, format!("{line}\n\n"));
        has_room(&host, &hostile).await;
        200
    };
    let (_, rise) = rise(&host, most, crowd).await;
    assert!(rise <= most, "they took {rise} MiB");

    // What is gathered counts as well.
    drop(refused(&host, false).await);
    has_room(&host, &hostile).await;
}
