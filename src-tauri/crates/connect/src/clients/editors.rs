//! Editors and their extensions.

use super::{ANY, GOES_TO_MODEL, MCP_SERVERS, context, file, tools_and};
use crate::{
    Client,
    Form::{Json, Yaml},
    Trace::{Path, Program},
};

pub(super) const CONTINUE: Client = Client {
    id: "continue",
    name: "Continue",
    about: "extension for VS Code and JetBrains",
    needs: context(8192),
    traces: &[Path("~/.continue"), Program("cn")],
    settings: &[file(
        &["~/.continue/config.yaml"],
        Yaml,
        "
name: Local
version: 1.0.0
schema: v1
models:
  - name: Tierbar
    provider: openai
    model: {model}
    apiBase: {v1}
    apiKey: {key}
    roles: [chat, edit, apply]
    defaultCompletionOptions:
      contextLength: {context}",
    )],
    notes: &[],
};

pub(super) const ZED: Client = Client {
    id: "zed",
    name: "Zed",
    about: "editor",
    needs: tools_and(16_384),
    traces: &[
        Program("zed"),
        Path("/Applications/Zed.app"),
        Path("~/.config/zed"),
    ],
    settings: &[file(
        &[
            "$XDG_CONFIG_HOME/zed/settings.json",
            "~/.config/zed/settings.json",
        ],
        Json,
        r#"
{
  "language_models": {
    "openai_compatible": {
      "Tierbar": {
        "api_url": "{v1}",
        "available_models": [
          {
            "name": "{model}",
            "display_name": "Tierbar {model}",
            "max_tokens": {context},
            "capabilities": { "tools": {tools}, "images": false, "parallel_tool_calls": false, "prompt_cache_key": false }
          }
        ]
      }
    }
  },
  "context_servers": {
    "tierbar": {
      "command": {program},
      "args": {arguments}
    }
  }
}"#,
    )],
    notes: &[
        "The second part gives Zed Tierbar's tools, such as the search of your documents.",
        "Zed keeps the key outside this file: enter {key} for Tierbar in its Agent settings, or start Zed with TIERBAR_API_KEY={key} in its environment.",
    ],
};

pub(super) const CURSOR: Client = Client {
    id: "cursor",
    name: "Cursor",
    about: "editor; uses Tierbar's tools",
    needs: ANY,
    traces: &[
        Path("/Applications/Cursor.app"),
        Path("~/.cursor"),
        Program("cursor"),
    ],
    settings: &[file(&["~/.cursor/mcp.json"], Json, MCP_SERVERS)],
    notes: &[GOES_TO_MODEL],
};

pub(super) const VSCODE: Client = Client {
    id: "vscode",
    name: "VS Code",
    about: "editor; uses Tierbar's tools",
    needs: ANY,
    traces: &[
        Path("/Applications/Visual Studio Code.app"),
        Path("~/.config/Code"),
        Program("code"),
    ],
    settings: &[file(
        &[
            "~/Library/Application Support/Code/User/mcp.json",
            "$XDG_CONFIG_HOME/Code/User/mcp.json",
            "~/.config/Code/User/mcp.json",
        ],
        Json,
        r#"
{
  "servers": {
    "tierbar": {
      "type": "stdio",
      "command": {program},
      "args": {arguments}
    }
  }
}"#,
    )],
    notes: &[
        "VS Code asks whether you trust Tierbar when a chat first uses it.",
        GOES_TO_MODEL,
    ],
};
