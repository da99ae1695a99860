use super::*;
use std::collections::BTreeSet;

fn tier(id: &str, context: Option<u32>, tools: Option<bool>) -> ClientTier {
    ClientTier {
        id: TierId::new(id).unwrap(),
        context_tokens: context,
        tools,
    }
}

fn server(tiers: Vec<ClientTier>) -> ClientServer {
    ClientServer {
        url: "http://127.0.0.1:11435".to_owned(),
        key_required: false,
        tiers,
        embedder: None,
        mcp_command: vec!["/opt/My Apps/tierbar".to_owned(), "mcp".to_owned()],
    }
}

fn settings(id: &str, server: &ClientServer) -> ClientSettings {
    render(find(id).unwrap(), server, None, None)
}

#[test]
fn each_client_has_an_id_settings_and_known_placeholders() {
    let mut ids = BTreeSet::new();
    let mut server = server(vec![tier("heavy", Some(40_000), Some(true))]);
    server.embedder = TierId::new(TierId::EMBEDDER).ok();
    for client in CLIENTS {
        assert!(ids.insert(client.id), "{} is there twice", client.id);
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(client.id.bytes().all(is_plain), "{}", client.id);
        for key_required in [false, true] {
            server.key_required = key_required;
            let settings = render(client, &server, None, None);
            assert!(!settings.settings.is_empty(), "{}", client.id);
            let all: String = settings.settings.iter().map(|s| s.text.as_str()).collect();
            let is_named = all.contains("heavy") || all.contains("export ");
            assert!(is_named || !client.uses_models(), "{all}");
            for name in [
                "base",
                "v1",
                "key",
                "model",
                "context",
                "answer",
                "tools",
                "embedder",
                "program",
                "arguments",
                "command",
            ] {
                assert!(
                    !all.contains(&format!("{{{name}}}")),
                    "{}: {all}",
                    client.id
                );
            }
            // Who needs a key is told where to enter it.
            let keeps_none = ["raycast", "smart-connections", "zed"].contains(&client.id);
            let expected = key_required && !keeps_none && client.uses_models();
            assert_eq!(all.contains(SOME_KEY), expected, "{}: {all}", client.id);
            assert!(!all.starts_with('\n') && !all.ends_with('\n'));
        }
    }
}

#[test]
fn the_files_to_write_are_what_they_claim_to_be() {
    let server = server(vec![tier("heavy", Some(40_000), Some(true))]);
    let mut json = 0;
    for client in CLIENTS {
        for setting in settings(client.id, &server).settings {
            if setting.form == Some(Form::Json) {
                let parsed: serde_json::Value = serde_json::from_str(&setting.text).unwrap();
                assert!(parsed.is_object(), "{}", client.id);
                json += 1;
            }
            assert_eq!(setting.form.is_some(), setting.kind == SnippetKind::File);
            if setting.form.is_some() {
                assert!(setting.place.starts_with("~/"), "{}", setting.place);
            }
        }
    }
    assert_eq!(json, 6);
}

#[test]
fn a_client_of_tools_gets_the_command_and_no_model_or_key() {
    let mut server = server(Vec::new());
    server.key_required = true;
    server.url = "https://mac-mini.local:11435".to_owned();
    for id in ["claude-desktop", "cursor", "vscode"] {
        let settings = settings(id, &server);
        assert_eq!(
            (&settings.model, settings.warnings.len()),
            (&None, 0),
            "{id}"
        );
        let written: serde_json::Value = serde_json::from_str(&settings.settings[0].text).unwrap();
        let servers = written.as_object().unwrap().values().next().unwrap();
        assert_eq!(
            servers["tierbar"]["command"], "/opt/My Apps/tierbar",
            "{id}"
        );
        assert_eq!(servers["tierbar"]["args"], json!(["mcp"]), "{id}");
        let names_key = |note: &String| note.contains("API key") || note.contains("certificate");
        assert!(!settings.notes.iter().any(names_key), "{id}");
    }
    let zed = settings("zed", &server);
    let written: serde_json::Value = serde_json::from_str(&zed.settings[0].text).unwrap();
    let program = &written["context_servers"]["tierbar"]["command"];
    assert_eq!(program, "/opt/My Apps/tierbar");
    let claude = settings("claude-code", &server);
    let command = "-- '/opt/My Apps/tierbar' mcp`";
    assert!(claude.notes.iter().any(|note| note.contains(command)));
}

#[test]
fn the_environment_is_ready_for_a_shell() {
    let claude = settings("claude-code", &server(vec![tier("heavy", None, None)]));
    assert!(claude.settings[0].text.starts_with(
        "export ANTHROPIC_BASE_URL=http://127.0.0.1:11435\nexport ANTHROPIC_AUTH_TOKEN=unused\n"
    ));
    assert_eq!(
        to_exports("A=b c\nB=it's"),
        "export A='b c'\nexport B='it'\\''s'"
    );
}

#[test]
fn an_agent_gets_the_tier_that_has_what_it_needs() {
    let (fast, primary) = (
        tier("fast", Some(4096), Some(true)),
        tier("primary", Some(49_152), Some(true)),
    );
    let toolless = tier("heavy", Some(65_536), Some(false));
    let short = tier("heavy", Some(12_288), Some(true));
    for (tiers, model, reason, warning) in [
        (
            vec![
                fast.clone(),
                primary.clone(),
                tier("heavy", Some(32_768), Some(true)),
            ],
            "heavy",
            "heavy supports tools and has a context of 32768 tokens; Claude Code needs tools and at least 32768 tokens",
            None,
        ),
        (
            vec![fast.clone(), primary.clone(), toolless.clone()],
            "primary",
            "primary supports tools",
            None,
        ),
        (
            vec![fast.clone(), primary.clone(), short.clone()],
            "primary",
            "primary supports tools",
            None,
        ),
        (
            vec![fast.clone(), short],
            "heavy",
            "heavy supports tools",
            Some(
                "needs a context of at least 32768 tokens, and heavy has 12288: set `context = 32768`",
            ),
        ),
        (
            vec![toolless],
            "heavy",
            "heavy has a context",
            Some("does not support tools; Tierbar describes them in the prompt"),
        ),
        (
            vec![tier("cloud", None, None)],
            "cloud",
            "cloud has a model",
            Some("it is not known whether cloud supports them"),
        ),
        (
            Vec::new(),
            "primary",
            "primary is the usual tier",
            Some("run `tierbar setup`"),
        ),
    ] {
        let chosen = settings("claude-code", &server(tiers));
        assert_eq!(chosen.model.as_deref(), Some(model));
        assert!(chosen.reason.starts_with(reason), "{}", chosen.reason);
        let told = chosen.warnings.first().map(String::as_str);
        match warning {
            None => assert_eq!(told, None),
            Some(warning) => assert!(told.unwrap().contains(warning), "{told:?}"),
        }
    }
    // A context that is too short is the worse of two.
    let tiers = vec![fast.clone(), tier("heavy", Some(32_768), Some(false))];
    let chosen = settings("claude-code", &server(tiers));
    let model = chosen.model.as_deref();
    assert_eq!((model, chosen.warnings.len()), (Some("heavy"), 1));
    // A chat gets the middle tier, tools or not.
    let chat = settings("curl", &server(vec![fast, primary]));
    let model = chat.model.as_deref();
    assert_eq!((model, chat.warnings.len()), (Some("primary"), 0));
}

#[test]
fn a_named_tier_and_a_key_are_used() {
    let mut server = server(vec![
        tier("fast", Some(4096), Some(true)),
        tier("primary", Some(40_000), Some(true)),
    ]);
    server.key_required = true;
    let client = find("claude-code").unwrap();
    let named = render(client, &server, Some("fast"), Some("tb-abc"));
    assert_eq!(named.model.as_deref(), Some("fast"));
    assert_eq!(named.reason, "you named fast");
    assert_eq!(named.warnings.len(), 1);
    assert!(
        named.settings[0]
            .text
            .contains("ANTHROPIC_AUTH_TOKEN=tb-abc")
    );
    server.url = "https://mac-mini.local:11435/".to_owned();
    let unknown = render(client, &server, Some("auto"), None);
    assert!(
        unknown.settings[0]
            .text
            .contains("=https://mac-mini.local:11435\n")
    );
    assert!(
        unknown
            .notes
            .iter()
            .any(|note| note.contains("certificate.pem"))
    );
    assert_eq!(unknown.model.as_deref(), Some("auto"));
    assert!(
        unknown
            .notes
            .iter()
            .any(|note| note.contains("tierbar key add claude-code"))
    );
}

#[test]
fn agents_are_told_the_context_and_leave_room_in_it() {
    let text = |id: &str, context: u32| {
        let server = server(vec![tier("heavy", Some(context), Some(true))]);
        settings(id, &server).settings.remove(0).text
    };
    let claude = text("claude-code", 32_768);
    assert!(claude.contains(
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS=32768\nexport CLAUDE_CODE_MAX_OUTPUT_TOKENS=4096"
    ));
    let limits = |context: u32| {
        let settings: serde_json::Value = serde_json::from_str(&text("opencode", context)).unwrap();
        settings["provider"]["tierbar"]["models"]["heavy"]["limit"].clone()
    };
    assert_eq!(
        limits(2048),
        serde_json::json!({"context": 2048, "output": 512})
    );
    assert_eq!(
        limits(65_536),
        serde_json::json!({"context": 65_536, "output": 4096})
    );
}

#[test]
fn what_goes_to_one_place_stands_under_one_heading() {
    let mut server = server(Vec::new());
    server.embedder = TierId::new(TierId::EMBEDDER).ok();
    server.key_required = true;
    let webui = settings("open-webui", &server).settings;
    assert_eq!(webui.len(), 1);
    assert!(
        webui[0]
            .text
            .contains("export ENABLE_OLLAMA_API=false\nexport RAG_EMBEDDING_ENGINE=openai\n")
    );
    // Files are written one by one.
    assert_eq!(settings("codex", &server).settings.len(), 2);
}
