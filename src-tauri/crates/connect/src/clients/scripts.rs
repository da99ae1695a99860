//! Automation and the command line.

use super::{ANY, file, terminal, window};
use crate::{
    Client,
    Form::Yaml,
    SettingCondition::{WithKey, WithoutKey},
    Trace::{Path, Program},
};

pub(super) const N8N: Client = Client {
    id: "n8n",
    name: "n8n",
    about: "automation",
    needs: ANY,
    traces: &[Program("n8n"), Path("~/.n8n")],
    settings: &[window(
        "
Credentials > Create Credential > Ollama
Base URL: {base}
API Key:  {key}
In an Ollama Chat Model node, choose {model}.",
    )],
    notes: &[
        "In a container, 127.0.0.1 is the container itself: use host.docker.internal, and let Tierbar listen for other machines.",
    ],
};

pub(super) const LLM: Client = Client {
    id: "llm",
    name: "llm",
    about: "command line",
    needs: ANY,
    traces: &[Program("llm")],
    settings: &[
        file(
            &[
                "$LLM_USER_PATH/extra-openai-models.yaml",
                "~/Library/Application Support/io.datasette.llm/extra-openai-models.yaml",
                "$XDG_CONFIG_HOME/io.datasette.llm/extra-openai-models.yaml",
                "~/.config/io.datasette.llm/extra-openai-models.yaml",
            ],
            Yaml,
            "
- model_id: tierbar
  model_name: {model}
  api_base: {v1}",
        ),
        terminal("llm keys set openai --value {key}").only(WithKey),
        terminal("llm -m tierbar \"Hello\""),
    ],
    notes: &["The file is in the folder that `llm logs path` shows."],
};

pub(super) const CURL: Client = Client {
    id: "curl",
    name: "curl",
    about: "command line",
    needs: ANY,
    traces: &[Program("curl")],
    settings: &[
        terminal(
            r#"
curl {v1}/chat/completions -H 'content-type: application/json' \
  -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'"#,
        )
        .only(WithoutKey),
        terminal(
            r#"
curl {v1}/chat/completions -H 'authorization: Bearer {key}' -H 'content-type: application/json' \
  -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'"#,
        )
        .only(WithKey),
    ],
    notes: &[],
};
