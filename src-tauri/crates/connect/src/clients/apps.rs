//! Apps to chat with and take notes in.

use super::{ANY, GOES_TO_MODEL, MCP_SERVERS, environment, file, window};
use crate::{
    Client,
    Form::Json,
    SettingCondition::WithEmbedder,
    Trace::{self, Path, Program},
};

pub(super) const OPEN_WEBUI: Client = Client {
    id: "open-webui",
    name: "Open WebUI",
    about: "chat in the browser",
    needs: ANY,
    traces: &[Program("open-webui")],
    settings: &[
        environment(
            "
OPENAI_API_BASE_URL={v1}
OPENAI_API_KEY={key}
ENABLE_OLLAMA_API=false",
        ),
        environment(
            "
RAG_EMBEDDING_ENGINE=openai
RAG_OPENAI_API_BASE_URL={v1}
RAG_OPENAI_API_KEY={key}
RAG_EMBEDDING_MODEL={embedder}",
        )
        .only(WithEmbedder),
    ],
    notes: &[
        "Open WebUI reads these at its first start. Later, enter them under Settings > Admin > Connections.",
        "In a container, 127.0.0.1 is the container itself: use host.docker.internal, and let Tierbar listen for other machines.",
    ],
};

const OBSIDIAN: &[Trace] = &[
    Path("/Applications/Obsidian.app"),
    Path("~/Applications/Obsidian.app"),
    Path("~/.config/obsidian"),
    Program("obsidian"),
];

pub(super) const OBSIDIAN_COPILOT: Client = Client {
    id: "obsidian-copilot",
    name: "Obsidian Copilot",
    about: "plugin for notes",
    needs: ANY,
    traces: OBSIDIAN,
    settings: &[window(
        "
Settings > Copilot > Model > Add Custom Model
Model name: {model}
Provider:   3rd party (openai-format)
Base URL:   {v1}
API key:    {key}",
    )],
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
    traces: OBSIDIAN,
    settings: &[window(
        "
Settings > Smart Connections > chat model: Ollama
Host:  {base}
Model: {model}",
    )],
    notes: &["The names of these fields vary between versions."],
};

pub(super) const RAYCAST: Client = Client {
    id: "raycast",
    name: "Raycast",
    about: "launcher with AI chat",
    needs: ANY,
    traces: &[Path("/Applications/Raycast.app"), Path("~/.config/raycast")],
    settings: &[window(
        "
In ~/.config/raycast/ai/providers.yaml, under providers:
  - id: tierbar
    name: Tierbar
    base_url: {v1}
    models:
      - id: {model}
        name: Tierbar {model}
        context: {context}",
    )],
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
    settings: &[file(
        &[
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
            "~/.config/Claude/claude_desktop_config.json",
        ],
        Json,
        MCP_SERVERS,
    )],
    notes: &[
        "Quit Claude Desktop and open it again, so that it reads the file.",
        GOES_TO_MODEL,
    ],
};
