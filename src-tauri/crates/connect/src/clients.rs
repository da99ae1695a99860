//! The clients, each with its settings as its own documentation has them (read in November 2026).

mod agents;
mod apps;
mod editors;
mod packages;
mod scripts;

use super::{Client, Needs};

/// Returns the client with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}

const ANY: Needs = Needs {
    tools: false,
    context: 0,
};

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
