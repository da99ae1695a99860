use super::*;
use serde_json::json;
use tierbar_core::{
    TierId,
    config::{Choice, KvCache, TierConfig},
};

fn opened(text: &str) -> (tempfile::TempDir, ConfigFile) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.toml");
    fs::write(&path, text).unwrap();
    let file = ConfigFile::open(path, home.path()).unwrap();
    (home, file)
}

fn patch(file: &ConfigFile, patch: &Value) -> Result<String, Error> {
    file.patch(patch.as_object().unwrap(), |_| Ok(()))?;
    Ok(fs::read_to_string(file.path()).unwrap())
}

fn tier(config: &Config, id: &str) -> tierbar_core::config::TierConfig {
    config.tiers[&TierId::new(id).unwrap()].clone()
}

#[test]
fn a_first_start_writes_a_file_with_the_defaults_of_the_schema() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.toml");
    let file = ConfigFile::open(path.clone(), home.path()).unwrap();
    let config = file.config();
    assert_eq!(file.notices(), [""; 0]);
    assert_eq!(
        (&*config.listen, &*config.models_dir),
        (Config::DEFAULT_LISTEN, "")
    );
    assert_eq!(config.policy, Config::default().policy);
    assert_eq!(config.library, Config::default().library);
    assert_eq!(config.downloads, Config::default().downloads);
    assert_eq!(config.queue, Config::default().queue);
    assert_eq!(config.server, Config::default().server);
    assert_eq!(config.log, Config::default().log);
    for id in ["fast", "primary", "heavy"] {
        assert_eq!(tier(&config, id), TierConfig::default());
    }

    fs::remove_file(&path).unwrap();
    fs::write(home.path().join("SmolLM2-135M-Instruct.Q4_1.gguf"), "").unwrap();
    let file = ConfigFile::open(path, home.path()).unwrap();
    assert_eq!(
        tier(&file.config(), "fast").model,
        "SmolLM2-135M-Instruct.Q4_1.gguf"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn invalid_values_are_refused_with_line_and_key() {
    for (text, message) in [
        (
            "listen = 7\n",
            "config.toml line 1: listen: invalid type: integer `7`, expected a string",
        ),
        (
            "\nlisten = \"0.0.0.0:11435\"\n",
            "config.toml line 2: listen: at 0.0.0.0:11435, any machine on this network can reach Tierbar",
        ),
        (
            "[server]\ntls = true\ncertificate = \"/c.pem\"\n",
            "config.toml line 1: server: certificate is set and the other is not",
        ),
        (
            "[server]\nkey = \"key.pem\"\ncertificate = \"/c.pem\"\n",
            "config.toml line 2: server.key: \"key.pem\" is not a full path",
        ),
        (
            "[server]\nnames = [\"http://mac\"]\n",
            "config.toml line 2: server.names: \"http://mac\" is not a host name",
        ),
        (
            "[server]\nrequests_at_once = 0\n",
            "config.toml line 2: server.requests_at_once: 0 is not between 1 and 4096",
        ),
        (
            "\n\nlisten = \"nowhere\"\n",
            "config.toml line 3: listen: \"nowhere\" is not an address",
        ),
        (
            "[tiers.heavy]\nmodel = \" \"\nengine = { endpoint = \"https://a.b\", dialect = \"anthropic\" }\n",
            "config.toml line 2: tiers.heavy.model: empty: Anthropic's API needs a model",
        ),
        (
            "[tiers.fast]\nmodel = \"m\"\ncontext = 12\n",
            "config.toml line 3: tiers.fast.context: 12 tokens is not between",
        ),
        (
            "[tiers.fast]\ncontext = \"many\"\n",
            "config.toml line 2: tiers.fast.context: invalid type: string \"many\"",
        ),
        (
            "tiers.fast = { kv_cache = \"q5\" }\n",
            "config.toml line 1: tiers.fast.kv_cache: `q5` is not ",
        ),
        (
            "[tiers.fast]\nthreads = 5000\n",
            "config.toml line 2: tiers.fast.threads: 5000 is more than",
        ),
        (
            "[tiers.Fast]\n",
            "config.toml line 1: tiers.Fast: \"Fast\" cannot name a tier",
        ),
        (
            "[policy]\nmax_loaded = 0\n",
            "config.toml line 2: policy.max_loaded: max_loaded is \"auto\" or a number",
        ),
        (
            "[policy]\nhome = \"heavy\"\n[tiers.fast]\n",
            "config.toml line 2: policy.home: \"heavy\" is not a tier in this configuration",
        ),
        (
            "[policy]\npatience = \"11m\"\n",
            "config.toml line 2: policy.patience: \"11m\" is more than \"10m\"",
        ),
        (
            "[tiers.fast]\nidle_unload = \"soon\"\n",
            "config.toml line 2: tiers.fast.idle_unload: \"soon\" is not a duration",
        ),
        (
            "# x\nallowed_origins = [\"https://a.example/\"]\n",
            "config.toml line 2: allowed_origins: \"https://a.example/\"",
        ),
        (
            "[library]\nother_apps = true\nfolders = [\"/a\", \"b\"]\n",
            "config.toml line 3: library.folders: \"b\" is not a full path; start it with / or ~/",
        ),
        (
            "[downloads]\nat_once = 5\n",
            "config.toml line 2: downloads.at_once: 5 is not between 1 and 4",
        ),
        (
            "[downloads]\nat_once = 0\n",
            "config.toml line 2: downloads.at_once: 0 is not between",
        ),
        (
            "[downloads]\nrate_limit = -1\n",
            "config.toml line 2: downloads.rate_limit: ",
        ),
        (
            "[tiers.a]\n[chains.a]\nsteps = [\"a\"]\n",
            "config.toml line 3: chains.a.steps: \"a\" is already the name of a tier",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"queue\"]\n",
            "config.toml line 3: chains.c.steps: name 1 to 16 tiers",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"a\", \"b\"]\n",
            "config.toml line 3: chains.c.steps: \"b\" is not a tier in this configuration",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"queue\", \"a\"]\n",
            "config.toml line 3: chains.c.steps: \"queue\" must be the last step",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"a\"]\nretries = 6\n",
            "config.toml line 4: chains.c.retries: 6 is more than 5",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"a\"]\nwait = \"0s\"\n",
            "config.toml line 4: chains.c.wait: \"0s\" is not between \"1s\" and \"1h\"",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"a\"]\nbudget = \"5 EUR a month\"\n",
            "config.toml line 4: chains.c.budget: \"5 EUR a month\" is not a budget",
        ),
        (
            "[costs]\nidle_watts = -1\n",
            "config.toml line 2: costs.idle_watts: -1 is not a power",
        ),
        (
            "[tiers.a]\n[chains.c]\nsteps = [\"a\"]\ncost = -1.0\n",
            "config.toml line 4: chains.c.cost: -1 is not an amount",
        ),
        (
            "[queue]\nat_once = 9\n",
            "config.toml line 2: queue.at_once: 9 is not between 1 and 8",
        ),
        (
            "[queue]\nkeep = \"59s\"\n",
            "config.toml line 2: queue.keep: \"59s\" is less than \"1m\"",
        ),
        (
            "[queue]\nat_once = 2\nbytes = \"1MiB\"\n",
            "config.toml line 3: queue.bytes: \"1MiB\" is less than \"128MiB\"",
        ),
        (
            "[queue]\nwebhook_hosts = [\"https://a.example\"]\n",
            "config.toml line 2: queue.webhook_hosts: \"https://a.example\" is not a host name",
        ),
        (
            "[schedules.night]\nat = \"2am\"\n",
            "config.toml line 2: schedules.night.at: \"2am\" is not a time of day",
        ),
        (
            "[schedules.night]\nat = \"02:00\"\ntask = \"paint\"\n",
            "config.toml line 3: schedules.night.task: `paint` is not ",
        ),
        (
            "[schedules.night]\nat = \"02:00\"\ntask = \"brief\"\nsource = \"/a\"\n",
            "config.toml line 1: missing field `to`",
        ),
        (
            "[schedules.night]\nat = \"02:00\"\ntask = \"brief\"\nsource = \"/a\"\nto = \"b.md\"\n",
            "config.toml line 5: schedules.night.to: \"b.md\" is neither a full path nor a URL",
        ),
        (
            "[schedules.Night]\nat = \"02:00\"\ntask = \"brief\"\nsource = \"/a\"\nto = \"/b.md\"\n",
            "config.toml line 1: schedules.Night: \"Night\" cannot name a schedule",
        ),
        (
            "[mcp.a]\nurl = \"http://mcp.example.com\"\n",
            "config.toml line 2: mcp.a.url: \"http://mcp.example.com\" is neither https:// nor on this machine",
        ),
        (
            "[mcp.a_b]\ncommand = [\"x\"]\n",
            "config.toml line 1: mcp.a_b: \"a_b\" cannot name an MCP server",
        ),
        ("[tiers.fast\n", "config.toml line 1: "),
        ("a = 1\na = 2\n", "config.toml line 2: "),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        assert!(
            error.message.starts_with(message),
            "{text:?} gave {:?}",
            error.message
        );
    }
}

#[test]
fn unknown_keys_are_reported_with_their_line() {
    let (_home, file) = opened(
        "color = \"red\"\nlistn = 1\n[tiers.fast]\nmodel = \"m\"\ntemperature = 1\n[more.of.it]\nx = 1\n",
    );
    assert_eq!(
        file.notices(),
        [
            "config.toml line 1: the key color is unknown and has no effect",
            "config.toml line 2: the key listn is unknown and has no effect; did you mean listen?",
            "config.toml line 6: the key more is unknown and has no effect",
            "config.toml line 5: the key tiers.fast.temperature is unknown and has no effect",
        ]
    );
    assert_eq!(tier(&file.config(), "fast").model, "m");
}

#[test]
fn a_patch_changes_the_value_and_nothing_around_it() {
    let text = "# mine\nlisten = \"127.0.0.1:1\"   # here\n\n[tiers.fast] # quick\n# the model\nmodel = \"a\"  # a\ncontext = 4096\n\n[tiers.heavy]\nmodel = \"h\"\n# the end\n";
    let (_home, file) = opened(text);
    let changed = patch(
        &file,
        &json!({"tiers": {"fast": {"model": "b", "kv_cache": "q8_0"}}}),
    )
    .unwrap();
    let expected = text
        .replace("\"a\"  # a", "\"b\"  # a")
        .replace("4096\n", "4096\nkv_cache = \"q8_0\"\n");
    assert_eq!(changed, expected);
    assert_eq!(
        tier(&file.config(), "fast").kv_cache,
        Choice::Fixed(KvCache::Q8_0)
    );

    let removed = patch(
        &file,
        &json!({"tiers": {"heavy": null}, "policy": {"max_loaded": 2}}),
    )
    .unwrap();
    assert!(
        !removed.contains("heavy") && removed.contains("[policy]\nmax_loaded = 2\n"),
        "{removed}"
    );
    assert!(removed.starts_with("# mine\nlisten = \"127.0.0.1:1\"   # here\n"));
}

#[test]
fn a_patch_adds_a_tier_and_an_origin_to_a_file_that_has_none() {
    let (_home, file) = opened("");
    let text = patch(
        &file,
        &json!({"tiers": {"coder": {"model": "c"}}, "allowed_origins": ["http://a:1"]}),
    )
    .unwrap();
    assert_eq!(
        text,
        "allowed_origins = [\"http://a:1\"]\n\n[tiers.coder]\nmodel = \"c\"\n"
    );
    assert_eq!(file.config().allowed_origins, ["http://a:1"]);
}

#[test]
fn a_list_gains_and_loses_origins_and_keeps_its_comments() {
    for (before, origins, after) in [
        (
            "allowed_origins = [\"http://a:1\"] # mine\n",
            &["http://a:1", "http://b:2"][..],
            "allowed_origins = [\"http://a:1\", \"http://b:2\"] # mine\n",
        ),
        (
            "allowed_origins = [\n  \"http://a:1\", # one\n  \"http://b:2\", # two\n]\n",
            &["http://a:1", "http://b:2", "http://c:3"],
            "allowed_origins = [\n  \"http://a:1\", # one\n  \"http://b:2\", # two\n  \"http://c:3\",\n]\n",
        ),
        (
            "allowed_origins = [\n  # why\n  \"http://a:1\",\n  \"http://b:2\",\n]\n",
            &["http://a:1"],
            "allowed_origins = [\n  # why\n  \"http://a:1\",\n]\n",
        ),
        (
            "allowed_origins = []\n",
            &["http://a:1"],
            "allowed_origins = [\"http://a:1\"]\n",
        ),
        (
            "allowed_origins = [\"http://a:1\"]\n",
            &[],
            "allowed_origins = []\n",
        ),
    ] {
        let (_home, file) = opened(before);
        let text = patch(&file, &json!({"allowed_origins": origins})).unwrap();
        assert_eq!(text, after);
        assert_eq!(file.config().allowed_origins, origins);
    }
}

#[test]
fn an_invalid_patch_changes_nothing() {
    let text = "[tiers.fast]\nmodel = \"a\"\n";
    let (_home, file) = opened(text);
    for (wrong, code, message) in [
        (
            json!({"tiers": {"fast": {"context": 1}}}),
            Code::ConfigInvalid,
            "tiers.fast.context: 1 tokens",
        ),
        (
            json!({"tiers": {"fast": {"context": "x"}}}),
            Code::ConfigInvalid,
            "tiers.fast.context: invalid type",
        ),
        (
            json!({"tiers": {"fast": {"color": "x"}}}),
            Code::BadRequest,
            "the configuration has no key tiers.fast.color",
        ),
        (
            json!({"tiers": {"A": {}}}),
            Code::ConfigInvalid,
            "tiers.A: \"A\" cannot name a tier",
        ),
        (
            json!({"listen": [null]}),
            Code::BadRequest,
            "listen cannot be null",
        ),
        (
            json!({"tiers": 7}),
            Code::ConfigInvalid,
            "tiers: invalid type",
        ),
    ] {
        let error = patch(&file, &wrong).unwrap_err();
        assert_eq!(error.code, code, "{wrong}: {error}");
        assert!(error.message.starts_with(message), "{wrong}: {error}");
        let previewed = file.preview(wrong.as_object().unwrap(), |_| Ok(()));
        assert_eq!(previewed.unwrap_err(), error, "{wrong}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
    }
    assert_eq!(tier(&file.config(), "fast").model, "a");
}

#[test]
fn a_preview_shows_a_change_that_is_not_made() {
    let text = "[mcp.notes]\ncommand = [\"a\"]\n";
    let (_home, file) = opened(text);
    let change = json!({"mcp": {"notes": {"folder": "~/Notes"}}});
    let previewed = file.preview(change.as_object().unwrap(), |_| Ok(()));
    let notes = &previewed.unwrap().mcp["notes"];
    assert_eq!((&*notes.command[0], &*notes.folder), ("a", "~/Notes"));
    assert_eq!(file.config().mcp["notes"].folder, "");
    assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
}

#[test]
fn an_invalid_file_keeps_the_last_configuration() {
    let (_home, file) = opened("[tiers.fast]\nmodel = \"a\"\n");
    assert!(!file.reload());
    fs::write(file.path(), "[tiers.fast]\ncontext = 1\n").unwrap();
    assert!(file.reload());
    assert_eq!(tier(&file.config(), "fast").model, "a");
    let notices = file.notices();
    assert!(
        notices[0].starts_with("config.toml line 2: tiers.fast.context"),
        "{notices:?}"
    );
    assert!(
        notices[0].ends_with("The previous configuration stays in effect."),
        "{notices:?}"
    );

    let error = patch(&file, &json!({"tiers": {"fast": {"model": "b"}}})).unwrap_err();
    assert!(error.message.starts_with("config.toml line 2"), "{error}");

    fs::write(file.path(), "[tiers.fast]\nmodel = \"c\"\n").unwrap();
    assert!(file.reload());
    assert_eq!(
        (tier(&file.config(), "fast").model, file.notices().len()),
        ("c".to_owned(), 0)
    );
}

#[test]
fn a_file_keeps_its_line_ends_and_its_mark() {
    let change = json!({"tiers": {"fast": {"model": "b"}}, "models_dir": "/m"});
    for mark in ["", "\u{feff}"] {
        let text = |model: &str, dir: &str| {
            format!("{mark}{dir}# mine\r\n[tiers.fast]\r\nmodel = \"{model}\" # small\r\n")
        };
        let (_home, file) = opened(&text("a", "models_dir = \"/n\"\r\n"));
        assert_eq!(tier(&file.config(), "fast").model, "a");
        let patched = patch(&file, &change).unwrap();
        assert_eq!(patched, text("b", "models_dir = \"/m\"\r\n"));
    }
}

#[test]
fn a_file_in_another_encoding_is_refused_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.toml");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = "[tiers.fast]\nmodel = \"a\"\n";
    let latin: Vec<u8> = b"# Gr\xfc\xdfe\n".to_vec();
    for bytes in [wide(text), wide(&format!("\u{feff}{text}")), latin] {
        fs::write(&path, &bytes).unwrap();
        let error = ConfigFile::open(path.clone(), home.path()).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid, "{error}");
        assert!(error.hint.unwrap().contains("UTF-8"));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_linked_file_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    let (path, real) = (
        home.path().join("config.toml"),
        home.path().join("dotfiles.toml"),
    );
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    let file = ConfigFile::open(path.clone(), home.path()).unwrap();
    patch(&file, &json!({"models_dir": "/m"})).unwrap();
    assert!(path.is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "models_dir = \"/m\"\n");
}

#[test]
fn comments_at_the_end_stay_above_what_is_added() {
    let folders = json!({"library": {"folders": ["/models"]}});
    let added = "[library]\nfolders = [\"/models\"]\n";
    for (before, after) in [
        ("# mine\n", format!("# mine\n\n{added}")),
        (
            "[tiers.fast]\nmodel = \"a\"\n\n# the end\n",
            format!("[tiers.fast]\nmodel = \"a\"\n\n# the end\n\n{added}"),
        ),
        ("", added.to_owned()),
    ] {
        let (_home, file) = opened(before);
        assert_eq!(patch(&file, &folders).unwrap(), after);
    }
    // A change before them leaves them in place.
    let (_home, file) = opened("[library]\nfolders = []\n# the end\n");
    let changed = patch(&file, &folders).unwrap();
    assert_eq!(changed, format!("{added}# the end\n"));
}
