//! Queued requests across kills of their host: each is answered once.
//!
//! The tier is a server of the test's own that numbers its answers, so that no two are alike.

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    env,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};
use tokio::{net::TcpListener, time::sleep};

/// How often the host is killed: a few times, or `TIERBAR_KILLS`.
fn kills() -> usize {
    env::var("TIERBAR_KILLS").map_or(15, |count| count.parse().unwrap())
}

/// Requests sent per kill, if there is time.
const REQUESTS_PER_KILL: usize = 8;
const CLIENTS: usize = 3;
/// The longest that a host runs before it is killed, including its start.
const LONGEST_LIFE_MS: u64 = 500;
const START_MS: u64 = 250;

/// Numbers that are the same in each run (xorshift64).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The tier's server, and the receiver of webhooks.
#[derive(Default)]
struct Outside {
    answers: AtomicUsize,
    /// The results in the webhooks of each id.
    webhooks: Mutex<BTreeMap<String, Vec<Value>>>,
}

async fn complete(State(outside): State<Arc<Outside>>, Json(body): Json<Value>) -> Json<Value> {
    let count = outside.answers.fetch_add(1, Ordering::SeqCst);
    // Long enough for a host to die meanwhile.
    sleep(Duration::from_millis(5 + count as u64 * 7 % 40)).await;
    let content = &body["messages"][0]["content"];
    Json(
        json!({"choices": [{"message": {"role": "assistant", "content": content}}], "number": count}),
    )
}

async fn receive(State(outside): State<Arc<Outside>>, Json(job): Json<Value>) -> StatusCode {
    let id = job["id"].as_str().unwrap().to_owned();
    assert_eq!(job["state"], "done", "{job}");
    let mut webhooks = outside.webhooks.lock().unwrap();
    webhooks.entry(id).or_default().push(job["result"].clone());
    StatusCode::NO_CONTENT
}

async fn serve(listener: TcpListener) -> Arc<Outside> {
    let outside = Arc::new(Outside::default());
    let routes = Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/receive", post(receive))
        .with_state(Arc::clone(&outside));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    outside
}

fn config(url: &str) -> String {
    let queue = "[queue]\nat_once = 3\nwebhook_hosts = [\"127.0.0.1\"]";
    format!("{queue}\n[tiers.far]\nengine = {{ endpoint = \"{url}\" }}\n")
}

/// The requests still to send, by number, and the ids of accepted ones.
#[derive(Default)]
struct Sending {
    left: VecDeque<usize>,
    taken: BTreeMap<usize, String>,
}

/// Sends until nothing is left or the host is gone; unconfirmed requests are sent again.
async fn send(http: reqwest::Client, url: String, webhook: String, sending: Arc<Mutex<Sending>>) {
    loop {
        let Some(number) = sending.lock().unwrap().left.pop_front() else {
            return;
        };
        let body = json!({"model": "far", "messages": [{"role": "user", "content": format!("number {number}")}]});
        let request = http
            .post(format!("{url}/v1/chat/completions"))
            .header("x-tierbar-queue", "only")
            .header("x-tierbar-attempts", "1000")
            .header("x-tierbar-webhook", &webhook)
            .header("idempotency-key", format!("number {number}"))
            .json(&body);
        let job: Option<Value> = match request.send().await {
            Ok(response) if response.status() == 202 => response.json().await.ok(),
            Ok(response) => panic!("{}", response.status()),
            Err(_) => None,
        };
        let mut sending = sending.lock().unwrap();
        let Some(job) = job else {
            sending.left.push_back(number);
            return;
        };
        let id = job["id"].as_str().unwrap().to_owned();
        let before = sending.taken.insert(number, id);
        assert_eq!(before, None);
    }
}

fn senders(
    host: &Serving,
    webhook: &str,
    sending: &Arc<Mutex<Sending>>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let one = || {
        let (http, url) = (host.http.clone(), host.url.clone());
        tokio::spawn(send(http, url, webhook.to_owned(), Arc::clone(sending)))
    };
    (0..CLIENTS).map(|_| one()).collect()
}

#[tokio::test]
#[ignore = "slow"]
async fn each_job_is_answered_once_whenever_the_host_is_killed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let outside = serve(listener).await;
    let webhook = format!("{url}/receive");
    let data = Data::empty(&config(&url));
    let sending = Arc::new(Mutex::new(Sending::default()));
    let mut random = Seeded(0x9e37_79b9_7f4a_7c15);
    let kills = kills();
    for kill in 0..kills {
        let numbers = kill * REQUESTS_PER_KILL..(kill + 1) * REQUESTS_PER_KILL;
        sending.lock().unwrap().left.extend(numbers);
        if kill % 4 == 3 {
            // Before it serves, while it takes over the previous host's requests.
            let mut host = data
                .tierbar(&["serve", "--json", "--listen", "127.0.0.1:0"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(random.below(START_MS))).await;
            host.kill().await.unwrap();
            continue;
        }
        let mut host = data.serve().await;
        let senders = senders(&host, &webhook, &sending);
        sleep(Duration::from_millis(random.below(LONGEST_LIFE_MS))).await;
        host.child.kill().await.unwrap();
        for sender in senders {
            within("a sender", sender).await.unwrap();
        }
    }
    let host = data.serve().await;
    for sender in senders(&host, &webhook, &sending) {
        within("a sender", sender).await.unwrap();
    }
    let taken = std::mem::take(&mut sending.lock().unwrap().taken);
    let requests = kills * REQUESTS_PER_KILL;
    assert_eq!(taken.len(), requests);
    let counts = until("the end of all", async || {
        let (_, listed) = host
            .ask(Method::GET, "/tierbar/v1/queue?limit=1", None)
            .await;
        let counts = listed["counts"].as_object().unwrap().clone();
        let open = ["waiting", "running"]
            .iter()
            .any(|state| counts.contains_key(*state));
        (!open).then_some(counts)
    })
    .await;
    // None was lost, none was kept twice, and each was answered.
    assert_eq!(Value::from(counts), json!({"done": requests}));
    until("all webhooks", async || {
        (outside.webhooks.lock().unwrap().len() >= requests).then_some(())
    })
    .await;
    let webhooks = std::mem::take(&mut *outside.webhooks.lock().unwrap());
    let mut numbers = Vec::new();
    for (number, id) in &taken {
        let (status, job) = host
            .ask(Method::GET, &format!("/v1/queue/{id}"), None)
            .await;
        assert_eq!((status, &job["state"]), (200, &json!("done")), "{job}");
        let result = &job["result"];
        let content = &result["body"]["choices"][0]["message"]["content"];
        assert_eq!(content, &json!(format!("number {number}")));
        assert!(
            webhooks[id].iter().all(|webhook| webhook == result),
            "{:?}",
            webhooks[id]
        );
        numbers.push(result["body"]["number"].as_u64().unwrap());
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), requests, "an answer was given to two");
    let received: usize = webhooks.values().map(Vec::len).sum();
    println!(
        "{kills} kills: {requests} requests, {requests} answers kept of {} that were made, {received} webhooks received",
        outside.answers.load(Ordering::SeqCst)
    );
}

#[tokio::test]
async fn a_job_waits_until_a_tier_can_answer_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let data = Data::empty(&config(&format!("http://{address}")));
    let host = data.serve().await;
    let body = json!({"model": "far", "messages": [{"role": "user", "content": "later"}]});
    let request = || {
        let request = host.http.post(format!("{}/v1/chat/completions", host.url));
        request.json(&body)
    };
    let refused = within("an answer", request().send()).await.unwrap();
    assert_eq!(refused.status(), 502);
    let waits = request().header("x-tierbar-queue", "allow").send();
    let waits = within("an answer", waits).await.unwrap();
    assert_eq!(waits.status(), 202);
    let job: Value = waits.json().await.unwrap();
    let id = job["id"].as_str().unwrap();
    let (code, listed, _) = data.run(&["queue"]).await;
    assert_eq!(code, Some(0));
    assert!(listed.contains(id), "{listed}");
    serve(TcpListener::bind(address).await.unwrap()).await;
    let events = host
        .send(Method::GET, &format!("/v1/queue/{id}/events"), None)
        .await;
    let events = within("its end", events.text()).await.unwrap();
    assert!(events.contains("\"state\":\"done\""), "{events}");
    let raw = host
        .send(Method::GET, &format!("/v1/queue/{id}/result"), None)
        .await;
    assert_eq!(
        (raw.status().as_u16(), &raw.headers()["x-tierbar-tier"]),
        (200, &"far".parse().unwrap())
    );
    let raw: Value = raw.json().await.unwrap();
    assert_eq!(raw["choices"][0]["message"]["content"], "later");
    let (code, secret, _) = data.run(&["queue", "secret"]).await;
    assert_eq!((code, secret.trim().len()), (Some(0), 64));
    let (code, _, _) = data.run(&["queue", "cancel", id]).await;
    assert_eq!(code, Some(0));
    let (code, _, error) = data.run(&["queue", "show", id]).await;
    assert_eq!(code, Some(4));
    assert!(error.contains("no queued request"), "{error}");
}
