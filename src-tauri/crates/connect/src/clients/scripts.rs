//! Automation and the command line.

use super::ANY;
use crate::{
    Client,
    Form::Yaml,
    Place::{File, Terminal, Window},
    Setting,
    SettingCondition::{Always, WithKey, WithoutKey},
    Trace::{Path, Program},
};

pub(super) const N8N: Client = Client {
    id: "n8n",
    name: "n8n",
    about: "automation",
    needs: ANY,
    traces: &[Program("n8n"), Path("~/.n8n")],
    settings: &[Setting {
        when: Always,
        place: Window,
        text: "
Credentials > Create Credential > Ollama
Base URL: {base}
API Key:  {key}
In an Ollama Chat Model node, choose {model}.",
    }],
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
        Setting {
            when: Always,
            place: File {
                paths: &[
                    "$LLM_USER_PATH/extra-openai-models.yaml",
                    "~/Library/Application Support/io.datasette.llm/extra-openai-models.yaml",
                    "$XDG_CONFIG_HOME/io.datasette.llm/extra-openai-models.yaml",
                    "~/.config/io.datasette.llm/extra-openai-models.yaml",
                ],
                form: Yaml,
            },
            text: "
- model_id: tierbar
  model_name: {model}
  api_base: {v1}",
        },
        Setting {
            when: WithKey,
            place: Terminal,
            text: "llm keys set openai --value {key}",
        },
        Setting {
            when: Always,
            place: Terminal,
            text: "llm -m tierbar \"Hello\"",
        },
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
        Setting {
            when: WithoutKey,
            place: Terminal,
            text: r#"
curl {v1}/chat/completions -H 'content-type: application/json' \
  -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'"#,
        },
        Setting {
            when: WithKey,
            place: Terminal,
            text: r#"
curl {v1}/chat/completions -H 'authorization: Bearer {key}' -H 'content-type: application/json' \
  -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'"#,
        },
    ],
    notes: &[],
};
