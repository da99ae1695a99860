//! Coding agents.

use crate::{
    Client,
    Form::{Json, Toml, Yaml},
    Needs,
    Place::{Environment, File},
    Setting,
    SettingCondition::{Always, WithKey, WithoutKey},
    Trace::{Path, Program},
};

pub(super) const CLAUDE_CODE: Client = Client {
    id: "claude-code",
    name: "Claude Code",
    about: "coding agent",
    needs: Needs {
        tools: true,
        context: 32_768,
    },
    traces: &[Program("claude"), Path("~/.claude")],
    settings: &[
        Setting {
            when: Always,
            place: Environment,
            text: "
ANTHROPIC_BASE_URL={base}
ANTHROPIC_AUTH_TOKEN={key}
ANTHROPIC_MODEL={model}
ANTHROPIC_DEFAULT_HAIKU_MODEL={model}
ANTHROPIC_SMALL_FAST_MODEL={model}
CLAUDE_CODE_MAX_CONTEXT_TOKENS={context}
CLAUDE_CODE_MAX_OUTPUT_TOKENS={answer}",
        },
        Setting {
            when: Always,
            place: File {
                paths: &[
                    "$CLAUDE_CONFIG_DIR/settings.json",
                    "~/.claude/settings.json",
                ],
                form: Json,
            },
            text: r#"
{
  "env": {
    "ANTHROPIC_BASE_URL": "{base}",
    "ANTHROPIC_AUTH_TOKEN": "{key}",
    "ANTHROPIC_MODEL": "{model}",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}",
    "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "{context}",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "{answer}"
  }
}"#,
        },
    ],
    notes: &[
        "Use either one. The file applies to every session, the environment only to this shell.",
        "Its small requests go to the same tier, since a 16 GB Mac holds one model at a time.",
        "The token limits match the tier's context. Change them with it, so that Claude Code summarizes long conversations in time.",
        "Its first prompt has some 20,000 tokens; `claude --tools Bash,Read,Edit,Write` needs about 3,400.",
        "To give it Tierbar's tools, such as the search of your documents: `claude mcp add --scope user tierbar -- {command}`",
    ],
};

pub(super) const CODEX: Client = Client {
    id: "codex",
    name: "Codex",
    about: "coding agent",
    needs: Needs {
        tools: true,
        context: 16_384,
    },
    traces: &[Program("codex"), Path("~/.codex")],
    settings: &[
        Setting {
            when: WithoutKey,
            place: File {
                paths: &["$CODEX_HOME/config.toml", "~/.codex/config.toml"],
                form: Toml,
            },
            text: r#"
model = "{model}"
model_provider = "tierbar"
model_context_window = {context}

[model_providers.tierbar]
name = "Tierbar"
base_url = "{v1}"
wire_api = "responses""#,
        },
        Setting {
            when: WithKey,
            place: File {
                paths: &["$CODEX_HOME/config.toml", "~/.codex/config.toml"],
                form: Toml,
            },
            text: r#"
model = "{model}"
model_provider = "tierbar"
model_context_window = {context}

[model_providers.tierbar]
name = "Tierbar"
base_url = "{v1}"
wire_api = "responses"
env_key = "TIERBAR_API_KEY""#,
        },
        Setting {
            when: WithKey,
            place: Environment,
            text: "TIERBAR_API_KEY={key}",
        },
    ],
    notes: &[
        "Its warning that there is no metadata for the model is harmless.",
        "To give it Tierbar's tools, such as the search of your documents: `codex mcp add tierbar -- {command}`",
    ],
};

pub(super) const OPENCODE: Client = Client {
    id: "opencode",
    name: "opencode",
    about: "coding agent",
    needs: Needs {
        tools: true,
        context: 16_384,
    },
    traces: &[Program("opencode"), Path("~/.config/opencode")],
    settings: &[Setting {
        when: Always,
        place: File {
            paths: &[
                "$XDG_CONFIG_HOME/opencode/opencode.json",
                "$XDG_CONFIG_HOME/opencode/opencode.jsonc",
                "~/.config/opencode/opencode.json",
                "~/.config/opencode/opencode.jsonc",
            ],
            form: Json,
        },
        text: r#"
{
  "provider": {
    "tierbar": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Tierbar",
      "options": { "baseURL": "{v1}", "apiKey": "{key}" },
      "models": {
        "{model}": { "name": "{model}", "limit": { "context": {context}, "output": {answer} } }
      }
    }
  },
  "model": "tierbar/{model}",
  "small_model": "tierbar/{model}"
}"#,
    }],
    notes: &[],
};

pub(super) const QWEN_CODE: Client = Client {
    id: "qwen-code",
    name: "Qwen Code",
    about: "coding agent",
    needs: Needs {
        tools: true,
        context: 32_768,
    },
    traces: &[Program("qwen"), Path("~/.qwen")],
    settings: &[Setting {
        when: Always,
        place: Environment,
        text: "
OPENAI_BASE_URL={v1}
OPENAI_API_KEY={key}
OPENAI_MODEL={model}",
    }],
    notes: &["Choose OpenAI when it asks for the kind of account, or run /auth."],
};

pub(super) const AIDER: Client = Client {
    id: "aider",
    name: "Aider",
    about: "coding agent",
    needs: Needs {
        tools: false,
        context: 8192,
    },
    traces: &[Program("aider"), Path("~/.aider.conf.yml")],
    settings: &[
        Setting {
            when: Always,
            place: Environment,
            text: "
OPENAI_API_BASE={v1}
OPENAI_API_KEY={key}
AIDER_MODEL=openai/{model}",
        },
        Setting {
            when: Always,
            place: File {
                paths: &["~/.aider.conf.yml"],
                form: Yaml,
            },
            text: "
openai-api-base: {v1}
openai-api-key: {key}
model: openai/{model}",
        },
    ],
    notes: &[
        "Use either one.",
        "Its warning about the context of an unknown model is harmless (`--no-show-model-warnings`).",
    ],
};
