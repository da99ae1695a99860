//! The invariants of ARCHITECTURE.md, checked over `cargo metadata` and the sources.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The workspace's packages and the names that each depends on; `dev` adds those for tests alone.
fn dependencies(dev: bool) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let is_ours = |name: &String| name != FEATURES;
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let depends = package["dependencies"].as_array().unwrap().iter();
            let wanted = depends.filter(|dependency| dev || dependency["kind"] != "dev");
            (name(package), wanted.map(name).filter(is_ours).collect())
        })
        .filter(|(name, _)| is_ours(name))
        .collect()
}

/// What every package depends on, and no code uses: it chooses the features of third-party crates.
const FEATURES: &str = "workspace-hack";

/// The third-party crates that Cargo would build for this target with these arguments, each with its features.
fn third_party_crates(target: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree", "--locked", "--prefix", "none", "--format", "{p} {f}",
        ])
        // With one, `cargo tree` tells crates of build scripts from those of the target.
        .args(["--target", target])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    crates
        .filter(|line| !line.contains("(/") && !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Such as `x86_64-unknown-linux-gnu`.
fn host_triple() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let about = String::from_utf8(output.stdout).unwrap();
    let mut lines = about.lines();
    lines
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}

/// Cargo builds a crate again for each set of features. With one set, `cargo test -p` finds what `make run` has built.
#[test]
fn each_package_needs_third_party_crates_with_the_same_features() {
    const EDGES: [&str; 2] = ["normal,build", "normal,build,dev"];
    let target = &host_triple();
    let all = &third_party_crates(target, &["--workspace", "--edges", EDGES[1]]);
    let (packages, without_dev) = (dependencies(true), dependencies(false));
    thread::scope(|scope| {
        for (package, depends) in &packages {
            // What has no dependencies for tests alone has one tree.
            let trees = 1 + usize::from(depends.len() > without_dev[package].len());
            scope.spawn(move || {
                for edges in &EDGES[..trees] {
                    let own = third_party_crates(target, &["--package", package, "--edges", edges]);
                    let others: Vec<_> = own.difference(all).collect();
                    assert!(
                        others.is_empty(),
                        "run `cargo hakari generate` and `cargo hakari manage-deps`, as CONTRIBUTING.md says: {package} needs {others:?}"
                    );
                }
            });
        }
    });
}

/// The packages that depend on a crate whose name starts with `prefix`.
fn users_of(prefix: &str) -> Vec<String> {
    let uses = |depends: &[String]| depends.iter().any(|name| name.starts_with(prefix));
    let all = dependencies(true).into_iter();
    all.filter(|(_, depends)| uses(depends))
        .map(|(name, _)| name)
        .collect()
}

/// Files below `folder` with one of the endings, of which "" is for names without a dot, but for what was built or installed.
fn sources(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["node_modules", "dist", "target", "gen"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| match *ending {
                "" => !name.contains('.'),
                ending => name.ends_with(ending),
            }) {
                let relative = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                let bytes = fs::read(&path).unwrap();
                files.push((relative, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    assert!(!files.is_empty(), "nothing was read below {folder}");
    files
}

/// Lines of code that hold `word`, as `file:line`, without comment lines.
fn lines_with<'a>(
    files: &'a [(String, String)],
    word: &'a str,
) -> impl Iterator<Item = (&'a str, usize)> {
    files.iter().flat_map(move |(path, text)| {
        let code = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"));
        code.filter(move |(_, line)| line.contains(word))
            .map(move |(at, _)| (path.as_str(), at + 1))
    })
}

fn in_platform_module(path: &str) -> bool {
    path.contains("/platform/") || path.ends_with("/platform.rs")
}

#[test]
fn only_the_app_sees_tauri() {
    assert_eq!(users_of("tauri"), ["tierbar-app"]);
}

#[test]
fn only_the_engine_sees_llama_cpp() {
    assert_eq!(users_of("llama-cpp"), ["tierbar-engine"]);
}

#[test]
fn only_the_store_sees_sqlite() {
    assert_eq!(users_of("rusqlite"), ["tierbar-store"]);
}

/// Every other HTTP client is one without TLS, for our own loopback.
#[test]
fn only_fetch_sends_requests_and_only_the_host_serves_tls() {
    assert_eq!(users_of("rustls"), ["tierbar-fetch", "tierbar-host"]);
    assert_eq!(users_of("tokio-rustls"), ["tierbar-host"]);
    // Its own tests ask as a client.
    let files: Vec<_> = sources("src-tauri/crates/host/src", &[".rs"])
        .into_iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs"))
        .collect();
    for word in ["ClientConfig", "TlsConnector"] {
        if let Some((path, line)) = lines_with(&files, word).next() {
            panic!("{path}:{line} uses {word}");
        }
    }
}

#[test]
fn only_the_tauri_platform_of_the_page_imports_tauri() {
    let files = sources("ui/src", &[".ts", ".svelte"]);
    for (path, line) in lines_with(&files, "@tauri-apps/") {
        assert!(path.starts_with("ui/src/platform/tauri"), "{path}:{line}");
    }
}

/// Those without I/O and clocks. Only `core` stands on none of the others.
const PURE_CRATES: [&str; 8] = [
    "chats",
    "connect",
    "core",
    "grammar",
    "measure",
    "request-fields",
    "routing",
    "tasks",
];

#[test]
fn pure_crates_have_no_io_and_no_clock() {
    let depends = dependencies(false);
    for pure in PURE_CRATES {
        for name in &depends[&format!("tierbar-{pure}")] {
            let is_pure_crate = name
                .strip_prefix("tierbar-")
                .is_some_and(|name| PURE_CRATES.contains(&name));
            let is_pure_library = [
                "memchr",
                "pulldown-cmark",
                "regex-syntax",
                "serde",
                "serde_json",
                "serde_path_to_error",
                "strsim",
                "thiserror",
                "tierbar-openapi",
            ]
            .contains(&name.as_str());
            assert!(
                is_pure_library || is_pure_crate && pure != "core",
                "{pure} uses {name}"
            );
        }
        let files: Vec<_> = sources(&format!("src-tauri/crates/{pure}/src"), &[".rs"])
            .into_iter()
            // Tests may read files.
            .filter(|(path, _)| !path.ends_with("/tests.rs"))
            .collect();
        for word in [
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "std::env",
            "Instant",
            "SystemTime",
            "tokio",
        ] {
            if let Some((path, line)) = lines_with(&files, word).next() {
                panic!("{path}:{line} uses {word}");
            }
        }
    }
}

#[test]
fn the_api_and_the_supervisor_meet_only_in_core() {
    let depends = dependencies(true);
    let supervisor = "tierbar-supervisor".to_owned();
    for name in API.map(|name| format!("tierbar-{name}")) {
        assert!(!depends[&name].contains(&supervisor), "{name}");
        assert!(!depends[&supervisor].contains(&name), "{name}");
    }
}

#[test]
fn system_specific_code_is_in_platform_modules() {
    let files = sources("src-tauri", &[".rs"]);
    for word in ["target_os", "target_family", "cfg(unix)", "cfg(windows)"] {
        for (path, line) in lines_with(&files, word) {
            assert!(in_platform_module(path), "{path}:{line} has {word}");
        }
    }
    for (path, _) in files
        .iter()
        .filter(|(path, _)| path.ends_with("/platform/macos.rs"))
    {
        let twin = path.replace("macos.rs", "linux.rs");
        assert!(root().join(&twin).is_file(), "{path} has no twin");
    }
}

/// What of the shell asks the system or another process, and may wait long. Each is called in the background, in the file that is named.
const WAITING: [(&str, &[&str]); 6] = [
    ("platform::login_item", &["login_item.rs"]),
    ("login_item::places(", &["login_item.rs"]),
    ("platform::notify(", &["server.rs"]),
    ("platform::notification_permission(", &["commands.rs"]),
    // Before the event loop, or in the background.
    ("platform::has_tray(", &["startup.rs"]),
    ("block_on(", &["startup.rs"]),
];
/// The commands of windows that run on the main thread: they read what the shell has in memory, or need that thread.
const ON_MAIN_THREAD: [&str; 5] = [
    "connection",
    "open_chat",
    "close_popover",
    "open_settings",
    "check_shortcut",
];

/// A menu and windows that wait for the system look as if the app had crashed. The status of the login item, for one, is a call to another
/// process at each event of the host, unless it is read once and kept.
#[test]
fn the_main_thread_of_the_app_waits_for_nothing() {
    let files = sources("src-tauri/src", &[".rs"]);
    let shell: Vec<_> = files
        .into_iter()
        .filter(|(path, _)| !in_platform_module(path))
        .collect();
    for (word, places) in WAITING {
        for (path, line) in lines_with(&shell, word) {
            let is_allowed = places
                .iter()
                .any(|place| path.ends_with(&format!("/{place}")));
            assert!(is_allowed, "{path}:{line} has {word}");
        }
    }
    let commands = shell
        .iter()
        .find(|(path, _)| path.ends_with("/commands.rs"));
    let functions = commands
        .unwrap()
        .1
        .split("#[tauri::command]\npub(crate) ")
        .skip(1);
    let waiting: Vec<_> = functions
        .filter_map(|function| function.strip_prefix("fn "))
        .map(|function| function.split('(').next().unwrap())
        .collect();
    assert_eq!(waiting, ON_MAIN_THREAD, "on the main thread");
    // What it does there, in one place and in a thread of its own.
    let (_, kept) = shell
        .iter()
        .find(|(path, _)| path.ends_with("src/login_item.rs"))
        .unwrap();
    let asked = kept.split("spawn_blocking(move ||").nth(1).unwrap();
    assert_eq!(kept.matches("login_item::places(").count(), 1);
    assert!(asked.contains("login_item::places("));
}

/// An error of one name in a folder is no reason to treat the folder as empty: macOS denies private folders so.
#[test]
fn names_in_a_folder_are_not_dropped_with_their_errors() {
    // Each of these reads what is its own, or what may end meanwhile.
    const OWN: [&str; 10] = [
        "contexts/src/lib.rs",
        "contexts/src/swapped.rs",
        "engine/src/platform/",
        "host/src/log.rs",
        "host/src/platform/",
        "library/src/lib.rs",
        "sandbox/src/",
        "store/src/wal.rs",
        "supervisor/src/sockets.rs",
        "telemetry/src/platform/",
    ];
    let files: Vec<_> = sources("src-tauri/crates", &[".rs"])
        .into_iter()
        .filter(|(path, _)| !path.contains("tests") && !OWN.iter().any(|own| path.contains(own)))
        .collect();
    for (path, text) in &files {
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, _) in code
            .match_indices("read_dir(")
            .chain(code.match_indices(".entries()"))
        {
            let statement = code[at..].split(';').next().unwrap();
            for dropped in [".flatten()", ".ok()"] {
                let line = code[..at].lines().count();
                assert!(
                    !statement.contains(dropped),
                    "{path}:{line} drops errors of names"
                );
            }
        }
    }
}

/// What opens files and folders that a person agreed to. Their paths may lead elsewhere by now.
const OPENERS: [&str; 15] = [
    "crates/agent/src/mcp/program.rs",
    "crates/agent/src/tools/files.rs",
    "crates/agent/src/tools/workplace.rs",
    "crates/cli/src/chats.rs",
    "crates/cli/src/reading.rs",
    "crates/fetch/src/objects/folder.rs",
    "crates/host/src/documents.rs",
    "crates/host/src/documents/extract.rs",
    "crates/host/src/documents/files.rs",
    "crates/host/src/schedules/source.rs",
    "crates/host/src/schedules/target.rs",
    "crates/host/src/sources.rs",
    "crates/jobs/src/mcp.rs",
    "crates/sandbox/src/launcher.rs",
    "src/dropped.rs",
];

/// What goes by a path, and where that is right: before an agreement, with an open file, or with what is Tierbar's own.
const BY_PATH: [(&str, &[&str]); 19] = [
    ("fs::read", &[]),
    ("fs::write", &[]),
    ("fs::copy", &[]),
    ("fs::rename", &[]),
    ("fs::hard_link", &[]),
    ("fs::remove", &[]),
    ("fs::set_permissions", &[]),
    ("fs::metadata", &["dropped.rs"]),
    ("File::open", &[]),
    ("File::create", &[]),
    ("File::options", &[]),
    ("OpenOptions", &[]),
    ("create_dir", &["chats.rs"]),
    ("set_current_dir", &[]),
    (".exists()", &[]),
    (".is_dir()", &["dropped.rs", "reading.rs"]),
    (".is_file()", &["dropped.rs", "reading.rs"]),
    (".metadata()", &["dropped.rs", "reading.rs"]),
    (
        "canonicalize",
        &["chats.rs", "src/documents.rs", "launcher.rs"],
    ),
];

#[test]
fn what_was_agreed_to_is_opened_without_following_links() {
    for file in OPENERS {
        let path = format!("src-tauri/{file}");
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let files = [(path, code.to_owned())];
        for (word, places) in BY_PATH {
            if places.iter().any(|place| file.ends_with(*place)) {
                continue;
            }
            if let Some((path, line)) = lines_with(&files, word).next() {
                panic!("{path}:{line} uses {word}: use tierbar_nofollow");
            }
        }
    }
}

#[test]
fn unsafe_code_is_in_the_engine_and_in_platform_modules() {
    let files = sources("src-tauri", &[".rs"]);
    for word in ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"] {
        for (path, line) in lines_with(&files, word) {
            let allowed =
                path.starts_with("src-tauri/crates/engine/src/llama") || in_platform_module(path);
            assert!(allowed, "{path}:{line}");
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (path, text) in sources("src-tauri", &["Cargo.toml"])
        .iter()
        .chain(&sources("tests", &["Cargo.toml"]))
    {
        assert!(text.contains("[lints]\nworkspace = true"), "{path}");
    }
}

/// The other half, that each path of the document is answered, is the gateway's own test.
#[test]
fn each_path_of_the_api_is_in_its_document() {
    let text = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let documented = document["paths"].as_object().unwrap();
    let others = ["tests.rs", "testing.rs", "/tests/", "/testing/"];
    let mut found = BTreeSet::new();
    let folders = API.map(|name| sources(&format!("src-tauri/crates/{name}/src"), &[".rs"]));
    for (file, text) in folders.into_iter().flatten() {
        if others.iter().any(|other| file.contains(other)) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        // A route that is added by hand would be in no document.
        // Ollama's greeting is no part of the API.
        let greetings = code.matches(".route(\"/\", ").count();
        let by_hand = code.matches(".route(\"").count() - greetings;
        assert_eq!(by_hand, 0, "{file}: use `routes!`");
        // Another macro would collect the description at each start of the program.
        let others_macro = code.contains("utoipa_axum::{") || code.contains("utoipa_axum::routes");
        assert!(
            !others_macro || file.ends_with("/http/src/mount.rs"),
            "{file}: use `tierbar_http::routes`"
        );
        let starts = [
            "/v1/",
            "/api/",
            "/tierbar/v1/",
            "/health",
            "/metrics",
            "/openapi.json",
            "/mcp",
        ];
        for start in starts {
            for (at, _) in code.match_indices(&format!("\"{start}")) {
                // A path may have slashes in its last part, which OpenAPI has no way to write.
                let path = code[at + 1..].split('"').next().unwrap().replace("{*", "{");
                // What ends so is the beginning of some, and one is between the gateway and our workers.
                if !path.ends_with('/') && path != "/v1/chat/tokens" {
                    assert!(documented.contains_key(&path), "{file}: {path}");
                    found.insert(path);
                }
            }
        }
    }
    let documented: BTreeSet<_> = documented.keys().cloned().collect();
    assert_eq!(found, documented);
}

/// What a person reads about the project, each with its path.
fn documents() -> Vec<(String, String)> {
    let mut documents = sources("docs", &[".md"]);
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            let text = fs::read_to_string(root().join(&name)).unwrap();
            documents.push((name, text));
        }
    }
    documents
}

/// The lines of a document that are no code block.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings
        .map(|heading| {
            let words = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = words
                .chars()
                .filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter));
            kept.map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

/// Code in a document that begins with one of these folders, or with a crate's, is a path.
const FOLDERS: [&str; 5] = ["src-tauri", "ui", "tests", "bundle", "docs"];

/// What `make ui` generates.
const GENERATED: [&str; 1] = ["ui/src/platform/openapi.ts"];

#[test]
fn every_path_in_the_documents_exists() {
    let crates = root().join("src-tauri/crates");
    for (document, text) in documents() {
        for (line, text) in prose(&text) {
            for code in text.split('`').skip(1).step_by(2) {
                if let Some((first, rest)) = code.split_once("::") {
                    let module = rest.split("::").next().unwrap();
                    let is_module = module.starts_with(|letter: char| letter.is_lowercase());
                    if is_module && crates.join(first).is_dir() {
                        let file = crates.join(first).join(format!("src/{module}.rs"));
                        assert!(file.exists(), "{document}:{line} names {code}");
                    }
                    continue;
                }
                let Some((first, _)) = code.split_once('/') else {
                    continue;
                };
                if code.contains(|letter: char| " *{}<>…".contains(letter))
                    || GENERATED.contains(&code)
                {
                    continue;
                }
                let place = if FOLDERS.contains(&first) {
                    root().join(code)
                } else if !first.is_empty() && crates.join(first).is_dir() {
                    crates.join(code)
                } else {
                    continue;
                };
                assert!(place.exists(), "{document}:{line} names {code}");
            }
        }
    }
}

#[test]
fn every_link_in_the_documents_resolves() {
    for (document, text) in documents() {
        let folder = root().join(&document);
        let folder = folder.parent().unwrap();
        for (line, part) in prose(&text) {
            for part in part.split('`').step_by(2) {
                for (at, start) in part.match_indices("](") {
                    let link = part[at + start.len()..].split(')').next().unwrap();
                    if link.contains("://") {
                        continue;
                    }
                    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                    let path = match path {
                        "" => root().join(&document),
                        path => folder.join(path),
                    };
                    assert!(path.exists(), "{document}:{line} links to {link}");
                    if !anchor.is_empty() {
                        let text = fs::read_to_string(path).unwrap();
                        assert!(
                            anchors(&text).contains(anchor),
                            "{document}:{line} links to {link}"
                        );
                    }
                }
            }
        }
    }
}

/// Its details belong into the modules' doc comments, and its figures into `docs/`.
#[test]
fn the_map_for_contributors_has_at_most_27_000_bytes() {
    let bytes = fs::read(root().join("ARCHITECTURE.md")).unwrap().len();
    assert!(bytes <= 27_000, "ARCHITECTURE.md has {bytes} bytes");
}

/// Modules of core that were a circle once, from the ground up. Each imports those before it alone, of these.
const CORE_STOREYS: [&str; 5] = ["run", "model", "config", "budget", "fit"];

#[test]
fn the_plan_and_the_configuration_in_core_import_downwards() {
    let storey = |module: &str| CORE_STOREYS.iter().position(|storey| *storey == module);
    let mut upwards = Vec::new();
    for (file, text) in sources("src-tauri/crates/core/src/", &[".rs"]) {
        let place = file.split_once("core/src/").unwrap().1;
        let module = place.split(['/', '.']).next().unwrap();
        let is_test = place.ends_with("tests.rs") || place.contains("/tests/");
        let Some(own) = storey(module).filter(|_| !is_test) else {
            continue;
        };
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for imported in imports_of_the_crate(code) {
            if storey(&imported).is_some_and(|other| other > own) {
                upwards.push(format!("{file} imports crate::{imported}"));
            }
        }
    }
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
}

/// The crates of the API from the ground up. Each uses those before it alone.
const API: [&str; 6] = ["inference", "http", "dialects", "edge", "jobs", "gateway"];

#[test]
fn the_crates_of_the_api_are_storeys() {
    let depends = dependencies(true);
    let place = |name: &str| {
        let name = name.strip_prefix("tierbar-")?;
        API.iter().position(|other| *other == name)
    };
    for name in API {
        let name = format!("tierbar-{name}");
        for other in &depends[&name] {
            assert!(place(other) < place(&name), "{name} uses {other}");
        }
    }
    let shipped = dependencies(false);
    let uses_axum = |depends: &[String]| depends.contains(&"axum".to_owned());
    for (name, depends) in shipped.iter().filter(|(_, depends)| uses_axum(depends)) {
        let is_above = place(name) >= place("tierbar-http");
        let may = is_above
            || ["tierbar-engine", "tierbar-host", "tierbar-tests"].contains(&name.as_str());
        assert!(may, "{name} uses axum: {depends:?}");
    }
}

/// The modules of a storey from the ground up. Each imports those before it alone.
const INFERENCE: [&str; 42] = [
    "moment",
    "error",
    "headers",
    "body",
    "response",
    "services",
    "metrics",
    "caller",
    "held",
    "answers",
    "pieces",
    "vector_encoding",
    "hints",
    "wire",
    "calls",
    "lines",
    "chat_calls",
    "chat_text",
    "files",
    "original",
    "event_reader",
    "content",
    "media",
    "source",
    "prompts",
    "limits",
    "endpoints",
    "models",
    "speed",
    "charge",
    "upstream",
    "clouds",
    "stream_meter",
    "request",
    "fields",
    "route",
    "send",
    "exams",
    "auto",
    "relay",
    "chain",
    "dispatch",
];
const EDGE: [&str; 11] = [
    "openapi",
    "encoding",
    "nearest",
    "paused",
    "request_id",
    "token",
    "sign_in",
    "sessions",
    "origin",
    "ui",
    "keys",
];
const ADMIN: &[&str] = &[
    "models",
    "tiers",
    "chat_files",
    "chats",
    "config",
    "connect",
    "costs",
    "diagnosis",
    "documents",
    "downloads",
    "grades",
    "hub",
    "keys",
    "log",
    "measures",
    "origins",
    "presets",
    "queue",
    "route",
    "schedules",
    "secrets",
    "mcp_servers",
    "session",
    "setup",
    "status",
    "turns",
    "vector_stores",
    "agent",
];
const DIALECTS: [&str; 6] = [
    "respond",
    "openai",
    "anthropic",
    "ollama",
    "models",
    "contexts",
];

#[test]
fn the_modules_of_a_storey_import_downwards() {
    let above_dispatch = ["events", "ask", "vectors"];
    let inference: Vec<_> = INFERENCE.into_iter().chain(above_dispatch).collect();
    let storeys = [
        ("inference/src/", inference),
        (
            "inference/src/metrics/",
            vec!["machine", "ledger", "trace", "answer", "later"],
        ),
        (
            "inference/src/services/",
            vec!["documents", "schedules", "measures", "models"],
        ),
        (
            "http/src/",
            vec![
                "error", "answer", "path", "request", "sse", "reach", "mount", "schema", "count",
            ],
        ),
        ("edge/src/", EDGE.to_vec()),
        ("dialects/src/", DIALECTS.to_vec()),
        (
            "jobs/src/",
            vec![
                "storing",
                "exams",
                "tasks",
                "documents",
                "mcp",
                "turns",
                "queue",
                "answers",
            ],
        ),
        ("gateway/src/", vec!["mcp", "sockets", "admin"]),
        ("gateway/src/admin/", ADMIN.to_vec()),
    ];
    let mut upwards = Vec::new();
    for (storey, order) in storeys {
        let place = |module: &str| order.iter().position(|known| *known == module);
        let folder = format!("src-tauri/crates/{storey}");
        let name = match storey.trim_end_matches('/').rsplit_once('/') {
            Some((_, "src")) | None => "crate",
            Some((_, module)) => module,
        };
        let mut seen = BTreeSet::new();
        for (file, text) in sources(&folder, &[".rs"]) {
            let inside = file.strip_prefix(&folder).unwrap();
            let module = inside.split(['/', '.']).next().unwrap();
            let is_test = inside.ends_with("tests.rs") || inside.contains("tests/");
            if is_test || ["lib", "testing", "tests"].contains(&module) {
                continue;
            }
            let own = place(module).unwrap_or_else(|| panic!("{file} has no place in its storey"));
            seen.insert(own);
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            // From a file at this depth, so many `super` lead to the storey.
            let up = "super::".repeat(inside.matches('/').count() + 1);
            let mut imported = imports_behind(code, &up);
            imported.extend(imports_behind(code, &format!("{name}::")));
            let above = imported
                .iter()
                .filter(|other| place(other).is_some_and(|other| other > own));
            upwards.extend(above.map(|other| format!("{file} imports {name}::{other}")));
        }
        assert_eq!(seen.len(), order.len(), "{storey}: a module is gone");
    }
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
}

/// The first names behind `crate::`, in imports and in paths.
fn imports_of_the_crate(code: &str) -> BTreeSet<String> {
    imports_behind(code, "crate::")
}

/// The names that follow a path, in imports and in paths.
fn imports_behind(code: &str, path: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        let letters = text.trim_start().chars();
        letters
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect()
    };
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices(path) {
        // A longer path ends like this one.
        if code[..at].ends_with("::") && path.starts_with("super") {
            continue;
        }
        let rest = &code[at + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let (mut depth, mut outer) = (0usize, String::new());
        for letter in group.chars() {
            match letter {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                letter if depth == 0 => outer.push(letter),
                _ => {}
            }
        }
        let listed = outer.split(',').map(name);
        names.extend(listed.filter(|name| !name.is_empty()));
    }
    names
}

#[test]
fn every_crate_of_ours_has_the_quick_test_profile() {
    let profile = fs::read_to_string(root().join("tests/profile.toml")).unwrap();
    let listed: BTreeSet<_> = profile
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .filter(|(name, _)| name.starts_with("tierbar-"))
        .map(|(name, _)| name)
        .collect();
    let ours = dependencies(true);
    let ours: BTreeSet<_> = ours.keys().map(String::as_str).collect();
    assert_eq!(listed, ours);
}

/// A level of its own resets what the profile says of `strip`: symbols are a fifth of a program.
#[test]
fn each_program_is_stripped() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let release = manifest["profile"]["release"].as_table().unwrap();
    assert_eq!(release["strip"].as_bool(), Some(true));
    let levels = release["package"].as_table().unwrap();
    for package in ["app", "cli", "documents", "engine", "sandbox"] {
        let own = levels.get(&format!("tierbar-{package}"));
        let is_stripped = own.is_none_or(|own| {
            own.get("strip")
                .is_some_and(|strip| strip == &toml::Value::Boolean(true))
        });
        assert!(is_stripped, "{package} has a level without `strip`");
    }
}

/// `make mutations` takes long; what would break it is seen here.
#[test]
fn every_mutation_names_one_place_and_one_test() {
    let list = fs::read_to_string(root().join("tests/mutations.toml")).unwrap();
    let list: toml::Table = list.parse().unwrap();
    let rust = [
        sources("src-tauri/crates", &[".rs"]),
        sources("tests", &[".rs"]),
    ]
    .concat();
    for mutation in list["mutation"].as_array().unwrap() {
        let field = |name: &str| mutation[name].as_str().unwrap();
        let (file, from, test) = (field("file"), field("from"), field("test"));
        assert_ne!(from, field("to"), "{file}");
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
        let tests = rust.iter().map(|(_, text)| {
            let definition = format!("fn {test}()");
            text.matches(&definition).count()
        });
        assert_eq!(tests.sum::<usize>(), 1, "{test}");
    }
}

/// A longer name is a sentence with two subjects (STYLE.md).
#[test]
fn names_of_functions_have_at_most_60_characters() {
    let files = [sources("src-tauri", &[".rs"]), sources("tests", &[".rs"])].concat();
    for (path, text) in &files {
        for (at, start) in text.match_indices("fn ") {
            let name = text[at + start.len()..].chars();
            let length = name
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .count();
            assert!(length <= 60, "{path}: {}", &text[at..at + length + 3]);
        }
    }
}

/// The last line of the function that begins at the first line: the brace in that line's own column.
fn body_of<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let closing = format!("{}}}", indentation(lines[0]));
    let end = lines.iter().position(|line| *line == closing);
    &lines[..end.unwrap_or(lines.len())]
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Whether a line belongs to a closure, a task or a function inside the function that begins at the first line.
fn is_in_an_inner_function(lines: &[&str], at: usize) -> bool {
    let mut depth = indentation(lines[at]).len();
    // Upwards, each line that is indented less opens the block around.
    lines[1..=at].iter().rev().any(|line| {
        let opens = !line.trim().is_empty() && indentation(line).len() < depth;
        if opens {
            depth = indentation(line).len();
        }
        let begins = |word: &str| line.contains(word);
        opens
            && (line.ends_with("| {") || ["async {", "async move {", "fn "].into_iter().any(begins))
    })
}

/// A test that gives up with nothing but a return counts as passed, whatever it has seen. So does one that only prints.
fn silent_exits(text: &str) -> Vec<usize> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for start in 0..lines.len() {
        let attribute = lines[start].trim_start();
        if !(attribute == "#[test]" || attribute.starts_with("#[tokio::test")) {
            continue;
        }
        let Some(function) = lines[start..].iter().position(|line| line.contains("fn ")) else {
            continue;
        };
        let first = start + function;
        let body = body_of(&lines[first..]);
        // A property's test leaves out a value that says nothing of it.
        let head = body
            .iter()
            .position(|line| line.ends_with('{'))
            .unwrap_or(0);
        if body[..=head].iter().any(|line| line.contains(" in ")) {
            continue;
        }
        let exits = (1..body.len()).filter(|&at| {
            let line = body[at].trim();
            let prints = ["print!(", "println!(", "eprint!(", "eprintln!("]
                .iter()
                .any(|print| line.starts_with(print));
            let says_so = prints && line.to_lowercase().contains("skip");
            let gives_up = ["return", "return Ok(())"].contains(&line.trim_end_matches([';', ',']))
                || [
                    "{ return };",
                    "{ return; }",
                    "=> return,",
                    "{ return Ok(()) };",
                    "=> return Ok(()),",
                ]
                .iter()
                .any(|end| line.ends_with(end));
            says_so || (gives_up && !is_in_an_inner_function(body, at))
        });
        found.extend(exits.map(|at| first + at + 1));
    }
    found
}

#[test]
fn a_test_that_cannot_run_says_so() {
    let silent = "#[test]\nfn one() {\n    if x() {\n        return;\n    }\n}\n";
    assert_eq!(silent_exits(silent), [4]);
    let silent = "#[tokio::test]\nasync fn one() {\n    let Some(x) = y() else { return };\n}\n";
    assert_eq!(silent_exits(silent), [3]);
    let silent = "#[test]\nfn one() {\n    eprintln!(\"skipped: it is late\");\n}\n";
    assert_eq!(silent_exits(silent), [3]);
    let told = "#[test]\nfn one() {\n    if x() {\n        return skip(\"no x\");\n    }\n    thread(move || {\n        return;\n    });\n}\n";
    assert!(silent_exits(told).is_empty());

    for (path, text) in [sources("src-tauri", &[".rs"]), sources("tests", &[".rs"])].concat() {
        let found = silent_exits(&text);
        assert!(
            found.is_empty(),
            "{path}: {found:?} leave without `tierbar_skip::skip`"
        );
        // Another copy could print what `tests/run` does not count.
        let copies = text.contains(concat!("\"SKIP", "PED "));
        assert!(
            !copies || path.starts_with("tests/skip/"),
            "{path}: use `tierbar_skip::skip`"
        );
    }
    // Python's tests use `skipTest`, those of the page `test.skip`: both are counted.
    for (path, text) in sources("tests", &[".py"]) {
        for (at, _) in text.match_indices("\n    def test_") {
            let body = text[at + 1..].lines().skip(1);
            let mut body = body.take_while(|line| line.is_empty() || line.starts_with("        "));
            // Deeper ones may be of a function inside.
            let found = body.find(|line| ["        return", "            return"].contains(line));
            assert!(found.is_none(), "{path}: a test returns without `skipTest`");
        }
    }
    for (path, text) in sources("ui", &[".test.ts", ".spec.ts"]) {
        let found = text
            .lines()
            .find(|line| line.ends_with(" return;") || line.trim() == "return;");
        assert!(
            found.is_none(),
            "{path}: a test returns without `test.skip`"
        );
    }
}

/// The window has titles of its own, which it can translate.
#[test]
fn the_menu_and_the_window_have_the_same_titles_for_tiers() {
    let window = fs::read_to_string(root().join("ui/src/features/tiers/tiers.ts")).unwrap();
    for id in ["fast", "primary", "heavy"] {
        let title = tierbar_core::TierId::new(id).unwrap().title();
        assert!(
            window.contains(&format!("{id}: '{title}'")),
            "{id}: {title}"
        );
    }
}

/// Each harness links all that is below it. Tests go into modules of the one that the crate has.
#[test]
fn a_crate_has_one_harness_of_integration_tests() {
    let crates = fs::read_dir(root().join("src-tauri/crates")).unwrap();
    for tests in crates.map(|entry| entry.unwrap().path().join("tests")) {
        let entries = fs::read_dir(&tests).into_iter().flatten();
        let is_harness = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "rs") || path.join("main.rs").is_file()
        };
        let harnesses = entries
            .map(|entry| entry.unwrap().path())
            .filter(is_harness)
            .count();
        assert!(harnesses <= 1, "{} has {harnesses}", tests.display());
    }
}

/// The libraries' `doctest = false` saves a build of each: an example in a comment would never be run.
#[test]
fn no_doc_comment_has_an_untested_example() {
    for (path, text) in sources("src-tauri/crates", &[".rs"]) {
        let fences = text.lines().filter_map(|line| {
            let line = line.trim_start();
            let comment = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"))?;
            comment.trim_start().strip_prefix("```")
        });
        for (number, language) in fences.enumerate() {
            let opens = number % 2 == 0;
            assert!(
                !opens || ["json", "text", "toml", "sh"].contains(&language),
                "{path}: make the example a test"
            );
        }
    }
}

/// Words that STYLE.md bans, in halves, so that this list is not found itself.
const BANNED: [(&str, &str); 6] = [
    ("no", "body"),
    ("some", "body"),
    ("any", "body"),
    ("who", "ever"),
    ("whom", "ever"),
    ("who", " asks"),
];

/// Prompts that people typed, data of other programs, and what is generated from checked sources.
const NOT_OUR_WORDS: [&str; 7] = [
    "tests/eval/",
    "tests/fixtures/",
    "ui/src/platform/openapi.ts",
    // The words by which requests are sorted.
    "/routing/src/words.rs",
    // Prompts, whose wording was measured.
    "documents/src/answer.rs",
    "jobs/src/tasks/prompts/",
    "tasks/src/triage.md",
];

/// Whether a lowercase line contains the word. In a name, `_` separates words.
fn contains_word(line: &str, word: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphabetic);
    line.match_indices(word).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back())
            && !is_letter(line[at + word.len()..].chars().next())
    })
}

#[test]
fn no_document_and_no_source_uses_a_banned_word() {
    let mut texts = documents();
    texts.retain(|(path, _)| path != "STYLE.md");
    texts.extend(sources("src-tauri", &[".rs", ".md", ".sql", ".cpp", ".h"]));
    texts.extend(sources("tests", &[".rs", ".py"]));
    texts.extend(sources("ui/src", &[".ts", ".svelte", ".css"]));
    texts.extend(sources("bundle", &[".sh"]));
    for folder in [".ci", "bundle", "icons", "tests"] {
        // What a fuzzer has found has no ending either.
        let scripts = sources(folder, &[""]).into_iter();
        texts.extend(scripts.filter(|(_, text)| text.starts_with("#!")));
    }
    texts.retain(|(path, _)| !NOT_OUR_WORDS.iter().any(|place| path.contains(place)));
    let banned = BANNED.map(|(first, second)| format!("{first}{second}"));
    let mut found = Vec::new();
    for (path, text) in &texts {
        for (at, line) in text.to_lowercase().lines().enumerate() {
            for word in banned.iter().filter(|word| contains_word(line, word)) {
                found.push(format!("{path}:{}: \"{word}\" in {}", at + 1, line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} uses of words that STYLE.md bans; name what acts instead:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// The lines of code of a file, without the tests in it.
fn lines_of_code(text: &str) -> usize {
    let tests = [
        "#[cfg(test)]\nmod tests {\n",
        "#[cfg(test)]\npub(crate) mod tests {\n",
    ];
    let end = tests.iter().filter_map(|start| text.find(start)).min();
    text[..end.unwrap_or(text.len())].lines().count()
}

/// A file has one subject and at most so many lines of code.
const MOST_LINES: usize = 500;
/// A longer one says at its top, in a line that begins so, why it is whole.
const WHOLE: [&str; 2] = ["//! One file: ", "// One file: "];

#[test]
fn files_are_short_or_say_why_not() {
    let is_rust_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_page_test = |path: &str| path.contains("/testing/") || path.ends_with(".test.ts");
    let rust = sources("src-tauri", &[".rs"]).into_iter();
    let rust = rust.filter(|(path, _)| !is_rust_test(path));
    let page = sources("ui/src", &[".ts", ".svelte"]).into_iter();
    let page = page.filter(|(path, _)| !is_page_test(path) && !GENERATED.contains(&path.as_str()));
    for (path, text) in rust.chain(page) {
        let lines = lines_of_code(&text);
        let says_why = |line: &str| WHOLE.iter().any(|start| line.starts_with(start));
        assert!(
            lines <= MOST_LINES || text.lines().any(says_why),
            "{path} has {lines} lines: divide it, or say why it is one"
        );
    }
}
