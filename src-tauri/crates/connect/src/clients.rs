//! The clients, each with its settings as its own documentation has them (read in November 2026).

mod agents;
mod apps;
mod editors;
mod packages;
mod scripts;

use super::{
    Client, Form, Needs, Place, Setting,
    SettingCondition::{self, Always},
};

/// Returns the client with this id.
pub fn find(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}

const ANY: Needs = Needs {
    tools: false,
    context: 0,
};

const fn context(context: u32) -> Needs {
    Needs { context, ..ANY }
}

const fn tools_and(context: u32) -> Needs {
    Needs {
        tools: true,
        context,
    }
}

const fn setting(place: Place, text: &'static str) -> Setting {
    let when = Always;
    Setting { when, place, text }
}

const fn environment(text: &'static str) -> Setting {
    setting(Place::Environment, text)
}

const fn file(paths: &'static [&'static str], form: Form, text: &'static str) -> Setting {
    setting(Place::File { paths, form }, text)
}

const fn code(language: &'static str, text: &'static str) -> Setting {
    setting(Place::Code(language), text)
}

const fn terminal(text: &'static str) -> Setting {
    setting(Place::Terminal, text)
}

const fn window(text: &'static str) -> Setting {
    setting(Place::Window, text)
}

impl Setting {
    const fn only(self, when: SettingCondition) -> Self {
        Self { when, ..self }
    }
}

/// As most clients of MCP read it.
const MCP_SERVERS: &str = r#"
{
  "mcpServers": {
    "tierbar": {
      "command": {program},
      "args": {arguments}
    }
  }
}"#;
const GOES_TO_MODEL: &str = "What a tool returns, such as passages of your documents, becomes part of the chat and goes to the model that answers it.";

/// In the order in which they are listed: apps, coding agents, editors, automation, packages.
pub const CLIENTS: &[Client] = &[
    apps::OPEN_WEBUI,
    apps::OBSIDIAN_COPILOT,
    apps::SMART_CONNECTIONS,
    apps::RAYCAST,
    apps::CLAUDE_DESKTOP,
    agents::CLAUDE_CODE,
    agents::CODEX,
    agents::OPENCODE,
    agents::QWEN_CODE,
    agents::AIDER,
    editors::CONTINUE,
    editors::ZED,
    editors::CURSOR,
    editors::VSCODE,
    scripts::N8N,
    scripts::LLM,
    scripts::CURL,
    packages::OPENAI,
    packages::ANTHROPIC,
    packages::OLLAMA,
    packages::LANGCHAIN,
    packages::LLAMA_INDEX,
    packages::PYDANTIC_AI,
    packages::LITELLM,
    packages::VERCEL_AI,
];
