//! The real program on a network of its own: a namespace in which two addresses stand for this machine and another one, and
//! port 11434 is free.

use reqwest::Method;
use std::process::Stdio;
use tierbar_skip::skip;
use tierbar_tests::{
    binaries::program,
    serving::Data,
    wait::{until, within},
};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    process::{Child, Command},
};

const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2";
const CONFIG: &str = "listen = \"0.0.0.0:11435\"\n[server]\nnetwork = true\ntls = true\nact_as_ollama = true\n[tiers.fast]\n";

/// `tierbar serve` in its network.
struct Lan {
    data: Data,
    host: Child,
}

impl Lan {
    /// Returns `None` where the system allows no namespaces.
    async fn new() -> Option<Self> {
        let data = Data::empty(CONFIG);
        let script = format!(
            "ip link set lo up && ip addr add {HERE}/32 dev lo && ip addr add {THERE}/32 dev lo && exec \"$0\" serve"
        );
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--map-root-user", "--net", "sh", "-c", &script])
            .arg(program("tierbar"))
            .env("TIERBAR_HOME", data.path())
            .env("HOME", data.path().join("home"))
            .env("TIERBAR_SECRETS", "file")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let allowed = Command::new("unshare")
            .args(["--map-root-user", "--net", "ip", "link", "set", "lo", "up"])
            .status();
        if !within("unshare", allowed).await.ok()?.success() {
            return None;
        }
        let lan = Self {
            host: unshare.spawn().ok()?,
            data,
        };
        until("the host", async || {
            let health = lan.curl(&["https://127.0.0.1:11435/health"]).await;
            health.starts_with("200").then_some(())
        })
        .await;
        Some(lan)
    }

    /// Runs a program in the network.
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--preserve-credentials", "--net", "--target"])
            .arg(self.host.id().unwrap().to_string())
            .arg(program);
        command
    }

    /// Returns the status and the body, `000` without an answer.
    async fn curl(&self, arguments: &[&str]) -> String {
        let mut curl = self.inside("curl");
        curl.args(["-sk", "-m", "20", "-w", "\n%{http_code}"]);
        let output = within("curl", curl.args(arguments).output()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap_or(("", "000"));
        format!("{status} {body}")
    }

    /// As another machine of the network.
    async fn elsewhere(&self, method: &Method, url: &str, more: &[&str]) -> String {
        let fixed = ["--interface", THERE, "-X", method.as_str(), url];
        self.curl(&[&fixed, more].concat()).await
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no namespaces")]
#[tokio::test]
async fn another_machine_gets_nothing_without_a_key() {
    let Some(lan) = Lan::new().await else {
        return skip("this machine allows no network namespaces");
    };
    let token = std::fs::read_to_string(lan.data.path().join("token")).unwrap();
    let token = format!("authorization: Bearer {}", token.trim());
    let at = |path: &str| format!("https://{HERE}:11435{path}");
    let (get, post) = (Method::GET, Method::POST);
    // The page, and that Tierbar runs: nothing of the owner's.
    for path in ["/", "/health", "/openapi.json"] {
        let answer = lan.elsewhere(&get, &at(path), &[]).await;
        assert!(answer.starts_with("200"), "{path}: {answer}");
    }
    for (method, path) in [
        (&get, "/v1/models"),
        (&get, "/metrics"),
        (&get, "/api/tags"),
        (&get, "/api/version"),
        (&get, "/tierbar/v1/status"),
        (&get, "/tierbar/v1/events"),
        (&get, "/tierbar/v1/diagnosis"),
        (&get, "/v1/queue/1"),
        (&post, "/v1/chat/completions"),
        (&post, "/v1/context/save"),
        (&post, "/api/chat"),
        (&post, "/api/pull"),
        (&post, "/tierbar/v1/session"),
        (&post, "/tierbar/v1/keys"),
    ] {
        for claim in [
            "x-nothing: 1",
            "x-forwarded-for: 127.0.0.1",
            "forwarded: for=127.0.0.1",
        ] {
            let more = ["-H", claim, "-H", "content-type: application/json"];
            let answer = lan.elsewhere(method, &at(path), &more).await;
            assert!(answer.starts_with("401"), "{method} {path}: {answer}");
        }
    }
    let status = at("/tierbar/v1/status");
    let owner = lan.elsewhere(&get, &status, &["-H", &token]).await;
    assert!(owner.starts_with("200"), "{owner}");
    for claim in [
        "origin: https://evil.example",
        "host: evil.example",
        "sec-fetch-site: cross-site",
    ] {
        let answer = lan
            .elsewhere(&get, &status, &["-H", &token, "-H", claim])
            .await;
        assert!(answer.starts_with("403"), "{claim}: {answer}");
    }
    // Without TLS nothing is read.
    let plain = format!("http://{HERE}:11435/tierbar/v1/status");
    let plain = lan.elsewhere(&get, &plain, &["-H", &token]).await;
    assert!(
        plain.starts_with("400") && plain.contains("https://"),
        "{plain}"
    );
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no namespaces")]
#[tokio::test]
async fn ollamas_port_checks_credentials_too() {
    let Some(lan) = Lan::new().await else {
        return skip("this machine allows no network namespaces");
    };
    let at = |host: &str, path: &str| format!("http://{host}:11434{path}");
    let remote = lan.elsewhere(&Method::GET, &at(HERE, "/"), &[]).await;
    assert!(
        remote.starts_with("000"),
        "it listens on the network: {remote}"
    );
    let here = lan.curl(&[&at("127.0.0.1", "/")]).await;
    assert_eq!(here, "200 Ollama is running");
    for (path, claim, status) in [
        ("/api/tags", "x-nothing: 1", "401"),
        ("/tierbar/v1/status", "x-nothing: 1", "401"),
        ("/api/tags", "origin: https://evil.example", "403"),
        ("/api/tags", "host: evil.example", "403"),
        ("/api/chat", "sec-fetch-site: cross-site", "403"),
    ] {
        let answer = lan.curl(&["-H", claim, &at("127.0.0.1", path)]).await;
        assert!(answer.starts_with(status), "{path} {claim}: {answer}");
    }
}

#[tokio::test]
async fn unfinished_tls_handshakes_block_no_client() {
    let serving = super::Serving::start("0.0.0.0:0", "[server]\nnetwork = true\ntls = true\n")
        .await
        .unwrap();
    let at = super::network::outside().map_or("127.0.0.1".to_owned(), |ip| ip.to_string());
    let mut held = Vec::new();
    for number in 0..600 {
        let stream = TcpStream::connect((at.as_str(), serving.port()));
        let mut stream = within("a connection", stream).await.unwrap();
        // Nothing, the head of a client's hello, or a request without TLS.
        let begun: &[u8] = match number % 3 {
            0 => b"",
            1 => b"\x16\x03\x01\x02\x00\x01",
            _ => b"GET / HTTP/1.1\r\n",
        };
        stream.write_all(begun).await.unwrap();
        held.push(stream);
    }
    let health = format!("{}/health", serving.host.url());
    let answer = within("an answer among them", serving.http.get(health).send()).await;
    assert_eq!(answer.unwrap().status(), 200);
    serving.host.shutdown().await;
}
