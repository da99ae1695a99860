//! Coding agents.

use super::{context, environment, file, tools_and};
use crate::{
    Client,
    Form::{Json, Toml, Yaml},
    SettingCondition::{WithKey, WithoutKey},
    Trace::{Path, Program},
};

pub(super) const CLAUDE_CODE: Client = Client {
    id: "claude-code",
    name: "Claude Code",
    about: "coding agent",
    needs: tools_and(32_768),
    traces: &[Program("claude"), Path("~/.claude")],
    settings: &[
        environment(
            "
ANTHROPIC_BASE_URL={base}
ANTHROPIC_AUTH_TOKEN={key}
ANTHROPIC_MODEL={model}
ANTHROPIC_DEFAULT_HAIKU_MODEL={model}
ANTHROPIC_SMALL_FAST_MODEL={model}
CLAUDE_CODE_MAX_CONTEXT_TOKENS={context}
CLAUDE_CODE_MAX_OUTPUT_TOKENS={answer}",
        ),
        file(
            &[
                "$CLAUDE_CONFIG_DIR/settings.json",
                "~/.claude/settings.json",
            ],
            Json,
            r#"
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
        ),
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
    needs: tools_and(16_384),
    traces: &[Program("codex"), Path("~/.codex")],
    settings: &[
        file(
            &["$CODEX_HOME/config.toml", "~/.codex/config.toml"],
            Toml,
            r#"
model = "{model}"
model_provider = "tierbar"
model_context_window = {context}

[model_providers.tierbar]
name = "Tierbar"
base_url = "{v1}"
wire_api = "responses""#,
        )
        .only(WithoutKey),
        file(
            &["$CODEX_HOME/config.toml", "~/.codex/config.toml"],
            Toml,
            r#"
model = "{model}"
model_provider = "tierbar"
model_context_window = {context}

[model_providers.tierbar]
name = "Tierbar"
base_url = "{v1}"
wire_api = "responses"
env_key = "TIERBAR_API_KEY""#,
        )
        .only(WithKey),
        environment("TIERBAR_API_KEY={key}").only(WithKey),
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
    needs: tools_and(16_384),
    traces: &[Program("opencode"), Path("~/.config/opencode")],
    settings: &[file(
        &[
            "$XDG_CONFIG_HOME/opencode/opencode.json",
            "$XDG_CONFIG_HOME/opencode/opencode.jsonc",
            "~/.config/opencode/opencode.json",
            "~/.config/opencode/opencode.jsonc",
        ],
        Json,
        r#"
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
    )],
    notes: &[],
};

pub(super) const QWEN_CODE: Client = Client {
    id: "qwen-code",
    name: "Qwen Code",
    about: "coding agent",
    needs: tools_and(32_768),
    traces: &[Program("qwen"), Path("~/.qwen")],
    settings: &[environment(
        "
OPENAI_BASE_URL={v1}
OPENAI_API_KEY={key}
OPENAI_MODEL={model}",
    )],
    notes: &["Choose OpenAI when it asks for the kind of account, or run /auth."],
};

pub(super) const AIDER: Client = Client {
    id: "aider",
    name: "Aider",
    about: "coding agent",
    needs: context(8192),
    traces: &[Program("aider"), Path("~/.aider.conf.yml")],
    settings: &[
        environment(
            "
OPENAI_API_BASE={v1}
OPENAI_API_KEY={key}
AIDER_MODEL=openai/{model}",
        ),
        file(
            &["~/.aider.conf.yml"],
            Yaml,
            "
openai-api-base: {v1}
openai-api-key: {key}
model: openai/{model}",
        ),
    ],
    notes: &[
        "Use either one.",
        "Its warning about the context of an unknown model is harmless (`--no-show-model-warnings`).",
    ],
};
