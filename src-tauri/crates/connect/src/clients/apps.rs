//! Apps to chat with and take notes in.

use super::{ANY, GOES_TO_MODEL, MCP_SERVERS};
use crate::{
    Client,
    Form::Json,
    Place::{Environment, File, Window},
    Setting,
    SettingCondition::{Always, WithEmbedder},
    Trace::{Path, Program},
};

pub(super) const OPEN_WEBUI: Client = Client {
    id: "open-webui",
    name: "Open WebUI",
    about: "chat in the browser",
    needs: ANY,
    traces: &[Program("open-webui")],
    settings: &[
        Setting {
            when: Always,
            place: Environment,
            text: "
OPENAI_API_BASE_URL={v1}
OPENAI_API_KEY={key}
ENABLE_OLLAMA_API=false",
        },
        Setting {
            when: WithEmbedder,
            place: Environment,
            text: "
RAG_EMBEDDING_ENGINE=openai
RAG_OPENAI_API_BASE_URL={v1}
RAG_OPENAI_API_KEY={key}
RAG_EMBEDDING_MODEL={embedder}",
        },
    ],
    notes: &[
        "Open WebUI reads these at its first start. Later, enter them under Settings > Admin > Connections.",
        "In a container, 127.0.0.1 is the container itself: use host.docker.internal, and let Tierbar listen for other machines.",
    ],
};

pub(super) const OBSIDIAN_COPILOT: Client = Client {
    id: "obsidian-copilot",
    name: "Obsidian Copilot",
    about: "plugin for notes",
    needs: ANY,
    traces: &[
        Path("/Applications/Obsidian.app"),
        Path("~/Applications/Obsidian.app"),
        Path("~/.config/obsidian"),
        Program("obsidian"),
    ],
    settings: &[Setting {
        when: Always,
        place: Window,
        text: "
Settings > Copilot > Model > Add Custom Model
Model name: {model}
Provider:   3rd party (openai-format)
Base URL:   {v1}
API key:    {key}",
    }],
    notes: &[
        "Leave Enable CORS off: Tierbar allows the origin of Obsidian's pages, app://obsidian.md.",
        "The names of these fields vary between versions.",
    ],
};

pub(super) const SMART_CONNECTIONS: Client = Client {
    id: "smart-connections",
    name: "Obsidian Smart Connections",
    about: "plugin for notes",
    needs: ANY,
    traces: &[
        Path("/Applications/Obsidian.app"),
        Path("~/Applications/Obsidian.app"),
        Path("~/.config/obsidian"),
        Program("obsidian"),
    ],
    settings: &[Setting {
        when: Always,
        place: Window,
        text: "
Settings > Smart Connections > chat model: Ollama
Host:  {base}
Model: {model}",
    }],
    notes: &["The names of these fields vary between versions."],
};

pub(super) const RAYCAST: Client = Client {
    id: "raycast",
    name: "Raycast",
    about: "launcher with AI chat",
    needs: ANY,
    traces: &[Path("/Applications/Raycast.app"), Path("~/.config/raycast")],
    settings: &[Setting {
        when: Always,
        place: Window,
        text: "
In ~/.config/raycast/ai/providers.yaml, under providers:
  - id: tierbar
    name: Tierbar
    base_url: {v1}
    models:
      - id: {model}
        name: Tierbar {model}
        context: {context}",
    }],
    notes: &["Turn on custom providers in Raycast's AI settings first."],
};

pub(super) const CLAUDE_DESKTOP: Client = Client {
    id: "claude-desktop",
    name: "Claude Desktop",
    about: "chat app; uses Tierbar's tools",
    needs: ANY,
    traces: &[
        Path("/Applications/Claude.app"),
        Path("~/Applications/Claude.app"),
        Program("claude-desktop"),
    ],
    settings: &[Setting {
        when: Always,
        place: File {
            paths: &[
                "~/Library/Application Support/Claude/claude_desktop_config.json",
                "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
                "~/.config/Claude/claude_desktop_config.json",
            ],
            form: Json,
        },
        text: MCP_SERVERS,
    }],
    notes: &[
        "Quit Claude Desktop and open it again, so that it reads the file.",
        GOES_TO_MODEL,
    ],
};
