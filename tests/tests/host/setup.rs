//! `tierbar setup` from an empty data folder, against a hub that has small models under the catalog's names.

use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, process::Stdio};
use tierbar_mixture::Random;
use tierbar_skip::or_skip;
use tierbar_tests::{
    binaries::{self, MINILM},
    hub::{Content, HubFile, HubRepository, HubStandIn, Options, SMOLLM2},
    serving::Data,
    wait::{until, within},
};
use tokio::process::Command;

const E4B: &str = "unsloth/gemma-4-E4B-it-GGUF";
const QWEN: &str = "unsloth/Qwen3.5-35B-A3B-GGUF";

/// The default models' repositories, with stand-ins of their architectures.
async fn hub() -> HubStandIn {
    let folder = tempfile::tempdir().unwrap();
    let random = |kind: Random, name: &str| {
        let path = folder.path().join(name);
        kind.write(&binaries::model(SMOLLM2), &path).unwrap();
        fs::read(path).unwrap()
    };
    let gemma = random(Random::Gemma4, "gemma.gguf");
    let qwen = random(Random::Qwen35Moe, "qwen.gguf");
    let file = |name: &str| match name.starts_with("gemma") {
        true => HubFile::new(name, &gemma),
        false => HubFile::new(name, &qwen),
    };
    HubStandIn::start(Options {
        repositories: HubRepository::defaults(file),
        ..Options::default()
    })
    .await
}

async fn run(data: &Data, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let (code, stdout, stderr) = data.run(arguments).await;
    (
        code,
        serde_json::from_str(&stdout).unwrap_or(Value::Null),
        stderr,
    )
}

fn empty(hub: &HubStandIn, ram: &str) -> Data {
    Data::empty("[tiers.fast]\n[tiers.primary]\n[tiers.heavy]\n")
        .with("HF_ENDPOINT", &hub.url())
        .with("TIERBAR_SIMULATE_RAM", ram)
}

/// The catalog has the files of the stand-ins from then on, of which all fit.
async fn refresh(data: &Data) {
    let (code, _, stderr) = data.run(&["models", "refresh"]).await;
    assert_eq!(code, Some(0), "{stderr}");
}

async fn refreshed(hub: &HubStandIn, ram: &str) -> Data {
    let data = empty(hub, ram);
    refresh(&data).await;
    data
}

/// What docs/setup.md says is chosen for a Mac, each with its quant.
fn documented(ram: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/setup.md");
    let text = fs::read_to_string(path).unwrap();
    let row = format!("| {} GB | ", ram.trim_end_matches("GiB"));
    let rows = text.lines().filter_map(|line| line.strip_prefix(&row));
    rows.map(|row| row.split(" | ").nth(1).unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_set_up_ends_with_three_tiers_that_answer() {
    let hub = hub().await;
    for ram in ["8GiB", "16GiB", "24GiB", "32GiB", "64GiB"] {
        let data = empty(&hub, ram);
        // By the published files' sizes.
        let (code, plan, stderr) = run(&data, &["setup", "--dry-run", "--json"]).await;
        assert_eq!(code, Some(0), "{ram}: {stderr}");
        let tiers = plan["tiers"].as_array().unwrap().iter();
        let word = |tier: &Value, name: &str| tier[name].as_str().unwrap().to_owned();
        let chosen = tiers.map(|tier| word(tier, "name") + " " + &word(tier, "quant"));
        assert_eq!(chosen.collect::<Vec<_>>(), documented(ram), "{ram}");
        refresh(&data).await;
        let (code, done, stderr) = run(&data, &["setup", "--yes", "--json"]).await;
        assert_eq!(code, Some(0), "{ram}: {stderr}");
        let tiers = done["plan"]["tiers"].as_array().unwrap();
        let names: Vec<_> = tiers.iter().map(|tier| &tier["tier"]).collect();
        assert_eq!(names, ["fast", "primary", "heavy"], "{ram}");
        for answer in done["answers"].as_array().unwrap() {
            assert!(
                answer["tokens_per_second"].as_f64() > Some(0.0),
                "{ram}: {answer}"
            );
            assert!(!word(answer, "answer").is_empty(), "{ram}: {answer}");
        }
        let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
        for tier in tiers {
            let file = tier["reference"]
                .as_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .1;
            assert!(config.contains(&format!("-{file}\"")), "{ram}: {config}");
        }
        // Nothing is left to do, and the plan says so.
        let (code, plan, _) = run(&data, &["setup", "--dry-run", "--json"]).await;
        assert_eq!((code, &plan["download_bytes"]), (Some(0), &Value::from(0)));
        assert!(
            plan["tiers"]
                .as_array()
                .unwrap()
                .iter()
                .all(|tier| tier["in_use"] == true)
        );
    }
}

/// With models that understand what they read: Qwen2.5-Coder 0.5B in place of the catalog's model of its architecture, and MiniLM.
#[tokio::test]
async fn a_set_up_leads_to_answers_and_documents_by_meaning() {
    const EMBEDDERS: &str = "tierbar-tests/embedders-GGUF";
    let chats = "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF";
    let name = "DeepSeek-R1-Distill-Qwen-14B-Q4_K_M";
    let qwen = HubFile::on_disk(
        &format!("{name}.gguf"),
        or_skip!(binaries::model_or_gone(binaries::QWEN)),
    );
    let minilm = HubFile::on_disk(MINILM, or_skip!(binaries::model_or_gone(MINILM)));
    let hub = HubStandIn::start(Options {
        repositories: vec![
            HubRepository::new(chats, vec![qwen]),
            HubRepository::new(EMBEDDERS, vec![minilm]),
        ],
        ..Options::default()
    })
    .await;
    // No other of the catalog's models for this tier runs well on such a machine.
    let data = refreshed(&hub, "12GiB").await;
    let host = data.serve().await;
    let arguments = ["setup", "--yes", "--json", "--tiers", "heavy"];
    let (code, done, stderr) = run(&data, &arguments).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(done["answers"][0]["model"], name, "{done}");
    let question = json!([{"role": "user", "content": "What is the capital of France?"}]);
    let fields = json!({"messages": question, "max_tokens": 32});
    let answer: Value = host.chat("heavy", fields).await.json().await.unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str();
    assert!(text.unwrap().contains("Paris"), "{answer}");

    let reference = format!("{EMBEDDERS}/{MINILM}");
    let model = MINILM.strip_suffix(".gguf").unwrap();
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    fs::create_dir(&papers).unwrap();
    let lights = "# Lighthouses\n\nThe tower is painted every seven years.\n";
    fs::write(papers.join("lights.md"), lights).unwrap();
    let soup = "Boil lentils for twenty minutes and add salt.";
    fs::write(papers.join("soup.txt"), soup).unwrap();
    for arguments in [
        &["models", "pull", "--json", &reference][..],
        &["tier", "use", "embedder", model],
        &["documents", "add", papers.to_str().unwrap()],
    ] {
        let (code, _, stderr) = data.run(arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    }
    until("the documents with their vectors", async || {
        let documents = "/tierbar/v1/documents";
        let (_, documents) = host.ask(Method::GET, documents, None).await;
        let source = &documents["sources"][0];
        (source["indexed"] == 2 && source["without_vectors"] == 0).then_some(())
    })
    .await;
    // No word of it is in the text.
    let search = json!({"query": "How often do people coat beacons?", "limit": 1});
    let path = "/v1/documents/search";
    let (_, found) = host.ask(Method::POST, path, Some(search)).await;
    assert_eq!(found["embedder"], model, "{found}");
    assert_eq!(found["passages"][0]["title"], "Lighthouses", "{found}");
    let asked = json!({"question": "How often is the tower painted?", "model": "heavy"});
    let path = "/v1/documents/ask";
    let (status, answer) = host.ask(Method::POST, path, Some(asked)).await;
    assert_eq!((status, &answer["tier"]), (200, &json!("heavy")));
    let text = answer["answer"].as_str().unwrap();
    assert!(text.contains("seven") || text.contains('7'), "{answer}");
}

#[tokio::test]
async fn a_set_up_of_some_tiers_puts_a_model_on_another_disk() {
    let hub = hub().await;
    let data = refreshed(&hub, "16GiB").await;
    let other = data.path().join("other disk");
    fs::create_dir(&other).unwrap();
    let to = format!("heavy={}", other.display());
    let arguments = ["setup", "--yes", "--json", "--tiers", "heavy", "--to", &to];
    let (code, done, stderr) = run(&data, &arguments).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(done["answers"].as_array().unwrap().len(), 1);
    let file = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries
            .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "gguf"))
            .count()
    };
    assert_eq!((file(&other), file(&data.models())), (1, 0));
}

/// `tierbar` that may write no file longer than `bytes`, as on a disk that fills.
fn limited(data: &Data, arguments: &[&str], bytes: u64) -> Command {
    let command = data.tierbar(arguments);
    let command = command.as_std();
    let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
    let mut limited = Command::new("dash");
    // In blocks of 512 bytes.
    limited
        .args(["-c", script, &(bytes / 512).to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

fn models(repository: &mut HubRepository) -> impl Iterator<Item = &mut HubFile> {
    let files = repository.files.iter_mut();
    files.filter(|file| file.path.ends_with(".gguf"))
}

#[tokio::test]
async fn a_disk_that_fills_leaves_the_other_tiers_working() {
    let hub = hub().await;
    let mut largest = 0;
    hub.change(E4B, |repository| {
        for file in models(repository) {
            let Content::Memory(bytes) = &file.content else {
                continue;
            };
            largest = largest.max(file.content.size());
            *file = HubFile::new(&file.path, &[&bytes[..], &bytes[..]].concat());
        }
    });
    hub.change(QWEN, |repository| {
        for file in models(repository) {
            largest = largest.max(file.content.size());
        }
    });
    let data = refreshed(&hub, "16GiB").await;
    let arguments = ["setup", "--yes", "--json"];
    let output = limited(&data, &arguments, largest + (1 << 20)).output();
    let output = within("a set-up", output).await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = |tier: usize| done["answers"][tier]["error"].as_str();
    assert_eq!((error(0), error(2)), (None, None), "{done}");
    let full = error(1).unwrap();
    assert!(full.contains("the disk is full"), "{full}");
    assert!(full.contains("free up space"), "{full}");
    assert!(stderr.contains("1 of 3 tiers are not set up"), "{stderr}");
    assert!(stderr.contains("run the same command again"), "{stderr}");
}

#[tokio::test]
async fn a_renamed_file_is_found_and_a_renamed_quant_is_named() {
    let hub = hub().await;
    let data = refreshed(&hub, "16GiB").await;
    hub.change(E4B, |repository| {
        for file in models(repository) {
            file.path = file.path.replace("-it-", "-it-v2-");
        }
    });
    hub.change(QWEN, |repository| {
        let name = "Qwen3.5-35B-A3B-Q6_K.gguf";
        let renamed = models(repository).next().unwrap().clone();
        let renamed = HubFile {
            path: name.to_owned(),
            ..renamed
        };
        repository
            .files
            .retain(|file| !file.path.ends_with(".gguf"));
        repository.files.push(renamed);
    });
    let (code, done, stderr) = run(&data, &["setup", "--yes", "--json"]).await;
    assert_eq!(code, Some(1), "{stderr}");
    let error = |tier: usize| done["answers"][tier]["error"].as_str();
    assert_eq!((error(0), error(1)), (None, None), "{done}");
    let gone = error(2).unwrap();
    let quant = done["plan"]["tiers"][2]["quant"].as_str().unwrap();
    assert!(gone.contains(quant) && gone.contains("Q6_K"), "{gone}");
    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    assert!(config.contains("gemma-4-E4B-it-v2-"), "{config}");
    assert!(!config.contains("Qwen"), "{config}");
}

#[tokio::test]
async fn a_set_up_without_a_network_shows_its_plan_alone() {
    let data = Data::empty("[tiers.fast]\n[tiers.primary]\n[tiers.heavy]\n")
        .with("HF_ENDPOINT", "http://127.0.0.1:9")
        .with("TIERBAR_SIMULATE_RAM", "16GiB");
    let config = fs::read(data.path().join("config.toml")).unwrap();
    let (code, stdout, stderr) = data.run(&["setup", "--dry-run"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    for expected in [
        "16.0 GiB of memory, 12.0 GiB of it for models",
        "Gemma 4 E2B",
        "To download: ",
    ] {
        assert!(stdout.contains(expected), "{stdout}");
    }
    // One tier, because a disk without room for all three refuses before it asks.
    let fast = ["setup", "--tiers", "fast"];
    let (code, _, stderr) = data.run(&fast).await;
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");
    let (code, _, stderr) = data.run(&[&fast[..], &["--yes"]].concat()).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("127.0.0.1"), "{stderr}");
    assert_eq!(fs::read(data.path().join("config.toml")).unwrap(), config);
}
