//! Documents stay on this machine: the real host in a network namespace that has loopback alone, whose kernel counts each attempt to
//! send elsewhere, by whatever process of it.

use serde_json::Value;
use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio};
use tierbar_skip::{or_skip, skip};
use tierbar_tests::{
    binaries::{self, MINILM, program},
    serving::Data,
    wait::{until, within},
};
use tokio::process::{Child, Command};

/// `tierbar serve` in its network.
struct Alone {
    data: Data,
    host: Child,
}

impl Alone {
    /// Returns `None` where the system allows no namespaces.
    async fn new(embedder: &Path) -> Option<Self> {
        let enter = |command: &mut Command| {
            command.args(["--map-root-user", "--net", "sh", "-c"]);
        };
        let mut trial = Command::new("unshare");
        enter(&mut trial);
        let trial = trial.arg("ip link set lo up").status();
        if !within("unshare", trial).await.ok()?.success() {
            return None;
        }
        let starter = binaries::STARTER;
        let data = Data::new(&format!(
            "[tiers.fast]\nmodel = \"{starter}\"\ncontext = 2048\n[tiers.embedder]\nmodel = \"{MINILM}\"\n"
        ));
        symlink(embedder, data.models().join(MINILM)).unwrap();
        let mut unshare = Command::new("unshare");
        enter(&mut unshare);
        let host = unshare
            .arg("ip link set lo up && exec \"$0\" serve --listen 127.0.0.1:0")
            .arg(program("tierbar"))
            .env("TIERBAR_HOME", data.path())
            .env("HOME", data.path().join("home"))
            .env("TIERBAR_SECRETS", "file")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        until("the host", async || {
            tierbar_host::find_running_host(Some(data.path()))
        })
        .await;
        Some(Self { data, host })
    }

    /// Runs a program in the network. Returns what it writes, if it succeeds.
    async fn run(
        &self,
        program: impl AsRef<std::ffi::OsStr>,
        arguments: &[&str],
    ) -> Option<String> {
        let mut enter = Command::new("nsenter");
        enter
            .args(["--user", "--preserve-credentials", "--net", "--target"])
            .arg(self.host.id().unwrap().to_string())
            .arg(program)
            .args(arguments)
            .env("TIERBAR_HOME", self.data.path())
            .env("HOME", self.data.path().join("home"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = within("a command", enter.output()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    async fn documents(&self, arguments: &[&str]) -> Value {
        let all = [&["documents", "--json"], arguments].concat();
        let answer = self.run(program("tierbar"), &all).await;
        let answer = answer.unwrap_or_else(|| panic!("{arguments:?} failed"));
        serde_json::from_str(&answer).unwrap()
    }

    /// Returns how often a process of the network has had no way to send, and how many datagrams were sent, such as names to look up.
    fn attempts(&self) -> u64 {
        let folder = format!("/proc/{}/net", self.host.id().unwrap());
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let snmp = read("snmp");
        let old = |protocol: &str, field: &str| {
            let mut lines = snmp.lines().filter(|line| line.starts_with(protocol));
            let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
            let place = names.split(' ').position(|name| name == field).unwrap();
            let value = values.split(' ').nth(place).unwrap();
            value.parse::<u64>().unwrap()
        };
        let all = old("Ip:", "OutNoRoutes") + old("Udp:", "OutDatagrams");
        // There is no such file without IPv6, and no way to send.
        let newer = fs::read_to_string(format!("{folder}/snmp6")).unwrap_or_default();
        let newer = newer.lines().filter_map(|line| {
            let (name, value) = line.split_once(char::is_whitespace)?;
            let counts = ["Ip6OutNoRoutes", "Udp6OutDatagrams"].contains(&name);
            counts.then(|| value.trim().parse::<u64>().unwrap())
        });
        all + newer.sum::<u64>()
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no namespaces")]
#[tokio::test]
async fn documents_are_indexed_and_asked_without_a_way_out() {
    let minilm = or_skip!(binaries::model_or_gone(MINILM));
    let Some(alone) = Alone::new(&minilm).await else {
        return skip("this machine allows no network namespaces");
    };
    let place = tempfile::tempdir().unwrap();
    let paper = place.path().join("lights.html");
    // A document that would have its reader fetch something.
    let text = "<link rel=stylesheet href=\"http://192.0.2.1/a.css\"><img src=\"http://192.0.2.1/a.png\">\
                <h1>Lighthouses</h1><p>The tower is painted every seven years.</p>";
    fs::write(&paper, text).unwrap();
    alone.documents(&["add", paper.to_str().unwrap()]).await;
    until("the document with its vectors", async || {
        let listed = alone.documents(&["list"]).await;
        let source = &listed["sources"][0];
        (source["indexed"] == 1 && source["without_vectors"] == 0).then_some(())
    })
    .await;
    let found = alone.documents(&["search", "painted beacons"]).await;
    assert_eq!(found["embedder"], "all-MiniLM-L6-v2.F32");
    let answer = alone
        .documents(&["ask", "When is the tower painted?"])
        .await;
    assert_eq!(answer["tier"], "fast", "{answer}");
    assert_eq!(alone.attempts(), 0);
    // What is counted is counted.
    let far = alone
        .run("curl", &["-s", "-m", "5", "http://192.0.2.1/"])
        .await;
    assert_eq!((far, alone.attempts()), (None, 1));
}
