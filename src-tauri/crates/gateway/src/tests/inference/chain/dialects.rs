//! A chain's report of its answer, in each dialect's body.

use super::*;
use futures_util::future::join_all;

/// Where a dialect has it.
struct Place {
    path: &'static str,
    whole: &'static str,
    /// The last of the stream's events that has it.
    event: &'static str,
    streamed: &'static str,
}

const PLACES: [Place; 4] = [
    Place {
        path: "/v1/messages",
        whole: "/tierbar",
        event: "\"message_start\"",
        streamed: "/message/tierbar",
    },
    Place {
        path: "/v1/responses",
        whole: "/tierbar",
        event: "\"response.completed\"",
        streamed: "/response/tierbar",
    },
    Place {
        path: "/api/chat",
        whole: "/tierbar",
        event: "\"done\":true",
        streamed: "/tierbar",
    },
    Place {
        path: CHAT,
        whole: "/tierbar",
        event: "\"tierbar\"",
        streamed: "/tierbar",
    },
];

async fn ask(night: &Night, path: &str, model: &str, stream: bool) -> Response {
    let said = json!([{"role": "user", "content": "Hi"}]);
    let mut ask = json!({"model": model, "max_tokens": 5, "stream": stream});
    let conversation = match path {
        "/v1/responses" => "input",
        _ => "messages",
    };
    ask[conversation] = said;
    let answer = night.bench.post(path, ask.to_string()).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer
}

/// The data of the last event that has these words.
fn event(reply: &str, words: &str) -> Value {
    let line = reply.lines().rfind(|line| line.contains(words)).unwrap();
    serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).unwrap()
}

#[tokio::test]
async fn a_late_fallback_is_reported_in_the_stream() {
    let reply = PLACES.iter().map(async |place| {
        // Longer than a stream waits for its answer.
        let night = Night::new(|chain| {
            chain.wait = Span::seconds(1);
            chain.retries = 1;
        })
        .await;
        night.a.does(Does::Hang);
        let answer = ask(&night, place.path, "night", true).await;
        assert!(!answer.headers().contains_key("x-tierbar-fallback-from"));
        let reply = text(answer).await;
        let event = event(&reply, place.event);
        let about = event.pointer(place.streamed);
        let about = about.unwrap_or_else(|| panic!("{}: {reply}", place.path));
        assert_eq!(about["fallback_from"], "cloud-a");
        assert_eq!(about["tier"], "cloud-b");
        assert_eq!(about["tried"][0]["code"], "worker_timeout", "{about}");
    });
    join_all(reply).await;
}

#[tokio::test]
async fn only_answers_of_chains_have_a_trail() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Refuse(500));
    for Place { path, whole, .. } in PLACES {
        let reply = json(ask(&night, path, "night", false).await).await;
        let about = reply.pointer(whole).unwrap();
        assert_eq!(about["fallback_from"], "cloud-a", "{path} {reply}");
        for stream in [false, true] {
            let plain = text(ask(&night, path, "fast", stream).await).await;
            assert!(!plain.contains("\"fallback_from\""), "{path} {plain}");
        }
    }
}
