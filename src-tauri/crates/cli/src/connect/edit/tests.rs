use super::{Form::*, *};
use tierbar_connect::Form;

const CLAUDE: &str = r#"{
  "env": {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:11435",
    "ANTHROPIC_MODEL": "heavy"
  }
}"#;
const CODEX: &str = "model = \"heavy\"\nmodel_provider = \"tierbar\"\n\n[model_providers.tierbar]\nname = \"Tierbar\"\nbase_url = \"http://127.0.0.1:11435/v1\"";
const AIDER: &str = "openai-api-base: http://127.0.0.1:11435/v1\nmodel: openai/heavy";
const CONTINUE: &str = "name: Local\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: Tierbar\n    provider: openai\n    roles: [chat, edit]";
const LLM: &str = "- model_id: tierbar\n  model_name: primary";

/// Applies and reverts; returns the text between.
#[track_caller]
fn there_and_back(form: Form, text: &str, fragment: &str) -> String {
    let edited = apply(form, text, fragment).unwrap();
    let reverted = revert(form, &edited.text, &edited.changes).unwrap();
    assert_eq!(reverted.left, [""; 0]);
    // A second time, there is nothing to do.
    let again = apply(form, &edited.text, fragment);
    if form != Yaml || fragment == AIDER {
        assert_eq!(again.unwrap().changes, []);
    }
    if !text.trim().is_empty() {
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().map(|line| line.trim_end().to_owned());
            lines.filter(|line| !line.is_empty()).collect()
        };
        assert_eq!(lines(&reverted.text), lines(text));
    }
    edited.text
}

#[test]
fn json_keeps_comments_commas_and_the_rest() {
    let text = "// mine\n{\n  \"theme\": \"dark\", // at night\n  /* keys */\n  \"env\": {\n    \"A\": \"1\",\n  },\n}\n";
    let edited = there_and_back(Json, text, CLAUDE);
    assert_eq!(
        edited,
        "// mine\n{\n  \"theme\": \"dark\", // at night\n  /* keys */\n  \"env\": {\n    \"A\": \"1\",\n    \
         \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:11435\",\n    \"ANTHROPIC_MODEL\": \"heavy\",\n  },\n}\n"
    );
    let edited = there_and_back(Json, "{\n    \"a\": [1, 2]\n}", CLAUDE);
    assert!(
        edited.starts_with("{\n    \"a\": [1, 2],\n    \"env\": {\n        \"ANTHROPIC_BASE_URL\""),
        "{edited}"
    );
    assert_eq!(there_and_back(Json, "", CLAUDE), format!("{CLAUDE}\n"));
    there_and_back(Json, "{}", CLAUDE);
    there_and_back(Json, "{\"env\": {}}\r\n", CLAUDE);
}

#[test]
fn a_replaced_value_comes_back() {
    let text = "{\n  \"env\": {\n    \"ANTHROPIC_MODEL\": \"opus\" // best\n  }\n}\n";
    assert!(there_and_back(Json, text, CLAUDE).contains("\"heavy\""));
    let text = "model = \"gpt\" # best\n\n[mcp_servers.a]\ncommand = \"a\"\n";
    let edited = there_and_back(Toml, text, CODEX);
    assert!(
        edited.starts_with("model = \"heavy\" # best\nmodel_provider = \"tierbar\"\n"),
        "{edited}"
    );
}

#[test]
fn toml_keeps_comments_order_and_the_rest() {
    let text = "# mine\napproval_policy = \"never\"   # really\n\n# servers\n[mcp_servers.docs]\ncommand = \"docs\" # x\n\n[model_providers.other]\nname = \"Other\"\n";
    let edited = there_and_back(Toml, text, CODEX);
    for kept in text.lines() {
        assert!(edited.contains(kept), "{kept}: {edited}");
    }
    assert!(
        edited.contains("[model_providers.tierbar]\nname = \"Tierbar\"\n"),
        "{edited}"
    );
    assert!(!edited.contains("[model_providers]\n"), "{edited}");
    assert_eq!(there_and_back(Toml, "", CODEX), format!("{CODEX}\n"));
}

#[test]
fn yaml_gains_lines_where_they_belong() {
    let edited = there_and_back(Yaml, "# mine\ndark-mode: true # yes", AIDER);
    assert_eq!(edited, format!("# mine\ndark-mode: true # yes\n{AIDER}\n"));
    let text = "name: Mine\nversion: 0.0.1\nschema: v1\nmodels:\n    # best\n    - name: GPT\n      provider: openai # paid\n\n# rules\nrules:\n  - be brief\n";
    let edited = there_and_back(Yaml, text, CONTINUE);
    assert!(
        edited.contains("provider: openai # paid\n    - name: Tierbar\n      provider: openai\n      roles: [chat, edit]\n\n# rules\n"),
        "{edited}"
    );
    assert!(edited.starts_with("name: Mine\nversion: 0.0.1\n"));
    there_and_back(
        Yaml,
        "name: Mine\nversion: 1.0.0\nschema: v1\nmodels:\n- name: a\n  provider: b\nrules: []\n",
        CONTINUE,
    );
    there_and_back(
        Yaml,
        "name: Mine\nversion: 1.0.0\nschema: v1\nmodels:\n",
        CONTINUE,
    );
    there_and_back(Yaml, "name: Mine\nversion: 1.0.0\nschema: v1\n", CONTINUE);
    assert_eq!(
        there_and_back(Yaml, "- model_id: a\n  model_name: b\n", LLM),
        format!("- model_id: a\n  model_name: b\n{LLM}\n")
    );
    assert_eq!(there_and_back(Yaml, "", LLM), format!("{LLM}\n"));
    assert!(there_and_back(Yaml, "a: 1\r\n", AIDER).ends_with("model: openai/heavy\r\n"));
}

#[test]
fn yaml_takes_a_line_for_another_and_gives_it_back() {
    let text = "# mine\nmodel: gpt # best\nweak-model: gpt\n\ndark-mode: true\n";
    let edited = there_and_back(Yaml, text, AIDER);
    assert_eq!(
        edited,
        "# mine\nmodel: openai/heavy # best\nweak-model: gpt\n\ndark-mode: true\n\
         openai-api-base: http://127.0.0.1:11435/v1\n"
    );
    there_and_back(Yaml, "model: 'gpt # 4'\r\n", AIDER);
    there_and_back(Yaml, "model: gpt", AIDER);
    let edited = apply(Yaml, text, AIDER).unwrap();
    let by_hand = edited.text.replace("openai/heavy", "openai/fast");
    let reverted = revert(Yaml, &by_hand, &edited.changes).unwrap();
    assert_eq!(reverted.left, ["model: openai/heavy # best"]);
    assert!(reverted.text.contains("model: openai/fast # best\n"));
    assert!(!reverted.text.contains("openai-api-base"));
}

#[test]
fn what_cannot_be_changed_safely_is_refused() {
    for (form, text, fragment, why) in [
        (Json, "{ \"a\": }", CLAUDE, "line 1"),
        (Json, "[1]", CLAUDE, "no JSON object"),
        (Json, "{'a': 1}", CLAUDE, ""),
        (
            Json,
            "{\"env\": \"none\"}",
            CLAUDE,
            "env in it is not an object",
        ),
        (
            Json,
            "{\"env\": {\"A\": 1}, \"env\": {\"B\": 2}}",
            CLAUDE,
            "the key env twice",
        ),
        (Toml, "a = 1\nb =", CODEX, "line 2"),
        (Toml, "model_providers = 7\n", CODEX, "no table"),
        (Yaml, "a: [", AIDER, ""),
        (Yaml, "model:\n  - gpt\n", AIDER, "already sets model"),
        (Yaml, "model: [gpt]\n", AIDER, "already sets model"),
        (Yaml, "model:\n  gpt\n", AIDER, "already sets model"),
        (Yaml, "model: >\n  gpt\n", AIDER, "already sets model"),
        (Yaml, "models: []\n", CONTINUE, "safely"),
        (Yaml, "models: none\n", CONTINUE, "in the place of the list"),
        (Yaml, "a: 1\n---\nb: 2\n", AIDER, "several documents"),
        (Yaml, "a: 1\n", LLM, "in the place of the list"),
        (Yaml, "text: |\n  a\n   b", "x: 1", "-"),
    ] {
        let applied = apply(form, text, fragment);
        if why == "-" {
            // A block of text takes no line of ours.
            assert!(applied.unwrap().text.ends_with("\nx: 1\n"));
            continue;
        }
        let error = applied.expect_err(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn undoing_leaves_what_others_have_changed() {
    let edited = apply(Json, "{}", CLAUDE).unwrap();
    let by_hand =
        edited
            .text
            .replace("\"heavy\"", "\"fast\"")
            .replacen('{', "{\n  \"added\": true,", 1);
    let reverted = revert(Json, &by_hand, &edited.changes).unwrap();
    assert_eq!(reverted.left, ["env.ANTHROPIC_MODEL"]);
    let value: Value = serde_json::from_str(&reverted.text).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"added": true, "env": {"ANTHROPIC_MODEL": "fast"}})
    );

    let edited = apply(Toml, "a = 1\n", CODEX).unwrap();
    let by_hand = format!("{}env_key = \"X\"\n", edited.text);
    let reverted = revert(Toml, &by_hand, &edited.changes).unwrap();
    assert_eq!(
        reverted.text.trim(),
        "a = 1\n\n[model_providers.tierbar]\nenv_key = \"X\""
    );

    let edited = apply(Yaml, "- model_id: a\n", LLM).unwrap();
    let by_hand = format!("{}- model_id: c\n", edited.text);
    let reverted = revert(Yaml, &by_hand, &edited.changes).unwrap();
    assert_eq!(
        (reverted.text.as_str(), reverted.left.len()),
        ("- model_id: a\n- model_id: c\n", 0)
    );
    let by_hand = edited.text.replace("primary", "fast");
    let reverted = revert(Yaml, &by_hand, &edited.changes).unwrap();
    assert_eq!(
        (reverted.text.as_str(), reverted.left),
        (by_hand.as_str(), vec!["- model_id: tierbar".to_owned()])
    );
    // Removed by hand already.
    let gone = revert(Json, "{}", &apply(Json, "{}", CLAUDE).unwrap().changes).unwrap();
    assert_eq!((gone.text.as_str(), gone.left.len()), ("{}", 0));
}

#[test]
fn every_clients_own_file_can_be_written() {
    use tierbar_connect::{CLIENTS, ClientServer, render};
    for key_required in [false, true] {
        let server = ClientServer {
            url: "http://127.0.0.1:11435".to_owned(),
            key_required,
            tiers: Vec::new(),
            embedder: None,
            mcp_command: Vec::new(),
        };
        let mut written = 0;
        for client in CLIENTS {
            for snippet in render(client, &server, None, None).settings {
                if let Some(form) = snippet.form {
                    let edited = apply(form, "", &snippet.text).unwrap();
                    assert_eq!(edited.text, format!("{}\n", snippet.text));
                    let reverted = revert(form, &edited.text, &edited.changes).unwrap();
                    assert!(matches!(reverted.text.trim(), "" | "{}"), "{}", client.id);
                    written += 1;
                }
            }
        }
        assert_eq!(written, 10);
    }
}
