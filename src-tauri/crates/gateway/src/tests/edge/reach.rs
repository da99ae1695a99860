//! Walks all routes with each kind of caller, and compares who gets in with the tables of `docs/reach.md` and `docs/security.md`.
//! `TIERBAR_WRITE_REACH=1` writes them.

use super::sessions::Browser;
use crate::testing::{Bench, json};
use axum::{
    body::Body,
    http::{HeaderName, Request, header},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
    time::Duration,
};
use tierbar_core::keys::KeyLimits;
use tierbar_edge::{
    now_ms,
    sessions::{FRESH_MS, HALF, IDLE_MS},
};
use tierbar_http::reach::{Part, Reach};
use tokio::time::timeout;

/// Longer than a busy machine stalls.
const STALL: Duration = Duration::from_secs(60);

/// How a server listens.
#[derive(Clone, Copy)]
enum Server {
    Here,
    HereWithKeys,
    Everywhere,
}

/// What a caller shows.
enum Shows {
    Nothing,
    Key,
    Token,
    Code,
    SessionSince(u64),
}

struct Caller {
    name: &'static str,
    server: Server,
    origin: Option<&'static str>,
    shows: Shows,
}

const fn caller(name: &'static str, server: Server, shows: Shows) -> Caller {
    Caller {
        name,
        server,
        origin: None,
        shows,
    }
}

const fn page(name: &'static str, origin: &'static str) -> Caller {
    Caller {
        origin: Some(origin),
        ..caller(name, Server::Here, Shows::Nothing)
    }
}

const CALLERS: [Caller; 12] = [
    caller("a program of this machine", Server::Here, Shows::Nothing),
    caller(
        "the same, with `require_keys`",
        Server::HereWithKeys,
        Shows::Nothing,
    ),
    caller("another machine", Server::Everywhere, Shows::Nothing),
    page("a window of an installed program", "app://obsidian.md"),
    page("a page that you have allowed", "https://friend.example"),
    page("any other page", "https://evil.example"),
    caller(
        "an API key, from this machine",
        Server::HereWithKeys,
        Shows::Key,
    ),
    caller("an API key, from another", Server::Everywhere, Shows::Key),
    caller(
        "a browser that signed in less than 10 minutes ago",
        Server::Here,
        Shows::SessionSince(FRESH_MS / 2),
    ),
    caller(
        "a browser that signed in before",
        Server::Everywhere,
        Shows::SessionSince(IDLE_MS / 14 * 13),
    ),
    caller("a one-time code", Server::Here, Shows::Code),
    caller("the token", Server::Everywhere, Shows::Token),
];

/// Groups of routes that let in the same callers, with what `docs/reach.md` says about each.
const GROUPS: [(&str, &str); 6] = [
    ("Public", "They say nothing about you, and need nothing."),
    (
        "Models",
        "For API keys, for the owner, and for programs of this machine unless `require_keys` is set. `x-tierbar-webhook` to a host beyond `webhook_hosts` needs the token, or a session begun less than 10 minutes ago. `POST /api/pull` downloads for the token or a session only.",
    ),
    (
        "Owner",
        "For the token, and for browsers that have signed in. What *may* run or open needs a session begun less than 10 minutes ago if it does: settings that widen access, a turn with an agent, and consent to what an agent does.",
    ),
    (
        "Widening",
        "For the token, and for browsers that have signed in less than 10 minutes ago.",
    ),
    (
        "Links",
        "For the token alone: a session that could begin another would never end.",
    ),
    (
        "Sign-in",
        "For the token, and for a one-time code, which works once.",
    ),
];

fn group(reach: Reach) -> usize {
    match reach {
        reach if reach.has(Part::Anyone) => 0,
        reach if reach.has(Part::Inference) => 1,
        reach if reach.has(Part::Token) => 4,
        reach if reach.has(Part::SignIn) => 5,
        reach if reach.widens() => 3,
        _ => 2,
    }
}

fn gives(reach: Reach) -> String {
    let words = [
        (Part::Reads, "reads"),
        (Part::Writes, "writes"),
        (Part::Spends, "spends"),
        (Part::Runs, "runs"),
        (Part::MayRun, "may run"),
        (Part::Opens, "opens"),
        (Part::MayOpen, "may open"),
    ];
    let words = words.iter().filter(|(part, _)| reach.has(*part));
    let words: Vec<_> = words.map(|(_, word)| *word).collect();
    words.join(", ")
}

/// The server of each kind, with the text of a key.
struct Servers([(Bench, String); 3]);

impl Servers {
    async fn start() -> Self {
        let here = "127.0.0.1:11435";
        let benches = [
            Bench::new(here).await,
            Bench::configured(here, |config| config.server.require_keys = true).await,
            Bench::new("0.0.0.0:11435").await,
        ];
        let mut keyed = Vec::new();
        for bench in benches {
            let added = bench.keys.add("a".to_owned(), KeyLimits::default()).await;
            keyed.push((bench, added.unwrap().1));
        }
        Self(keyed.try_into().ok().unwrap())
    }

    /// Whether the route lets the caller in. No body and no id is right, so that nothing more happens.
    async fn lets_in(&self, caller: &Caller, method: &str, path: &str) -> bool {
        let (bench, key) = &self.0[caller.server as usize];
        let filled = path
            .split('/')
            .map(|part| if part.starts_with('{') { "NONE" } else { part });
        let filled: Vec<_> = filled.collect();
        let mut request = Request::builder()
            .method(method)
            .uri(filled.join("/"))
            .header(header::HOST, "localhost");
        if let Some(origin) = caller.origin {
            request = request.header(header::ORIGIN, origin);
        }
        let bearer = |text: &str| vec![(header::AUTHORIZATION, format!("Bearer {text}"))];
        let shown: Vec<(HeaderName, String)> = match caller.shows {
            Shows::Nothing => Vec::new(),
            Shows::Key => bearer(key),
            Shows::Token => bearer(bench.token.as_str()),
            Shows::Code => {
                let code = json(bench.ask("POST", "/tierbar/v1/session/code", "").await).await;
                bearer(code["code"].as_str().unwrap())
            }
            Shows::SessionSince(age) => {
                // Those used just now would leave no room for one that was not.
                bench.store.end_sessions(None).await.unwrap();
                let browser = Browser::begun(bench, now_ms() - age).await;
                vec![
                    (header::COOKIE, browser.cookie),
                    (HALF.clone(), browser.page),
                ]
            }
        };
        for (name, value) in shown {
            request = request.header(name, value);
        }
        let sent = bench.send(request.body(Body::from("[]")).unwrap());
        let answer = timeout(STALL, sent).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} {path} does not answer"));
        ![401, 403].contains(&answer.status().as_u16())
    }
}

/// Writes a part of a document between its marks, or compares them.
fn check(document: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs")
        .join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- reach -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of reach -->").unwrap();
    let wanted = format!("{before}<!-- reach -->\n{wanted}<!-- end of reach -->{after}");
    if std::env::var_os("TIERBAR_WRITE_REACH").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/{document} is out of date: review what changed, and write it with TIERBAR_WRITE_REACH=1"
    );
}

#[tokio::test]
async fn each_caller_gets_what_the_tables_say() {
    let servers = Servers::start().await;
    let mut matrix = "| |".to_owned();
    for (name, _) in GROUPS {
        let _ = write!(matrix, " [{name}](reach.md#{}) |", name.to_lowercase());
    }
    let _ = writeln!(matrix, "\n|---|{}", "---|".repeat(GROUPS.len()));
    for caller in &CALLERS {
        let mut groups = [const { BTreeMap::<bool, Vec<String>>::new() }; GROUPS.len()];
        for (path, method, reach) in servers.0[0].0.reaches.all() {
            let may_call = servers.lets_in(caller, method, path).await;
            let routes = groups[group(reach)].entry(may_call).or_default();
            routes.push(format!("{method} {path}"));
        }
        let _ = write!(matrix, "| {} |", caller.name);
        for (routes, (group, _)) in groups.iter().zip(GROUPS) {
            assert_eq!(routes.len(), 1, "{} at {group}: {routes:?}", caller.name);
            let _ = write!(
                matrix,
                " {} |",
                if routes.contains_key(&true) {
                    "yes"
                } else {
                    ""
                }
            );
        }
        matrix.push('\n');
    }
    check("security.md", &matrix);
}

#[tokio::test]
async fn the_documented_reach_is_that_of_the_routes() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let mut groups = [const { String::new() }; GROUPS.len()];
    let mut known = BTreeSet::new();
    for (path, method, reach) in bench.reaches.all() {
        let path = path.replace("{*", "{");
        let _ = writeln!(
            groups[group(reach)],
            "| `{method} {path}` | {} |",
            gives(reach)
        );
        known.insert((path, method.to_lowercase()));
    }
    let mut text = String::new();
    for (routes, (name, says)) in groups.iter().zip(GROUPS) {
        let _ = write!(
            text,
            "\n## {name}\n\n{says}\n\n| route | gives |\n|---|---|\n{routes}"
        );
    }
    check("reach.md", &(text + "\n"));
    // No route is mounted without one.
    let served = json(bench.get("/openapi.json").await).await;
    let paths = served["paths"].as_object().unwrap().iter();
    let documented = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| (path.clone(), method.clone()))
    });
    assert_eq!(documented.collect::<BTreeSet<_>>(), known);
}
