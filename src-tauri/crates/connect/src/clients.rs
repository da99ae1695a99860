//! The clients, each with its settings as its own documentation has them (read in November 2026).

use super::{
    Client,
    Form::{Json, Toml, Yaml},
    Needs,
    Place::{Code, Environment, File, Terminal, Window},
    Setting,
    Trace::{Path, Program},
    When::{Always, WithEmbedder, WithKey, WithoutKey},
};

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
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
        id: "continue",
        name: "Continue",
        about: "extension for VS Code and JetBrains",
        needs: Needs {
            tools: false,
            context: 8192,
        },
        traces: &[Path("~/.continue"), Program("cn")],
        settings: &[Setting {
            when: Always,
            place: File {
                paths: &["~/.continue/config.yaml"],
                form: Yaml,
            },
            text: "
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
        }],
        notes: &[],
    },
    Client {
        id: "zed",
        name: "Zed",
        about: "editor",
        needs: Needs {
            tools: true,
            context: 16_384,
        },
        traces: &[
            Program("zed"),
            Path("/Applications/Zed.app"),
            Path("~/.config/zed"),
        ],
        settings: &[Setting {
            when: Always,
            place: File {
                paths: &[
                    "$XDG_CONFIG_HOME/zed/settings.json",
                    "~/.config/zed/settings.json",
                ],
                form: Json,
            },
            text: r#"
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
        }],
        notes: &[
            "The second part gives Zed Tierbar's tools, such as the search of your documents.",
            "Zed keeps the key outside this file: enter {key} for Tierbar in its Agent settings, or start Zed with TIERBAR_API_KEY={key} in its environment.",
        ],
    },
    Client {
        id: "cursor",
        name: "Cursor",
        about: "editor; uses Tierbar's tools",
        needs: ANY,
        traces: &[
            Path("/Applications/Cursor.app"),
            Path("~/.cursor"),
            Program("cursor"),
        ],
        settings: &[Setting {
            when: Always,
            place: File {
                paths: &["~/.cursor/mcp.json"],
                form: Json,
            },
            text: MCP_SERVERS,
        }],
        notes: &[GOES_TO_MODEL],
    },
    Client {
        id: "vscode",
        name: "VS Code",
        about: "editor; uses Tierbar's tools",
        needs: ANY,
        traces: &[
            Path("/Applications/Visual Studio Code.app"),
            Path("~/.config/Code"),
            Program("code"),
        ],
        settings: &[Setting {
            when: Always,
            place: File {
                paths: &[
                    "~/Library/Application Support/Code/User/mcp.json",
                    "$XDG_CONFIG_HOME/Code/User/mcp.json",
                    "~/.config/Code/User/mcp.json",
                ],
                form: Json,
            },
            text: r#"
{
  "servers": {
    "tierbar": {
      "type": "stdio",
      "command": {program},
      "args": {arguments}
    }
  }
}"#,
        }],
        notes: &[
            "VS Code asks whether you trust Tierbar when a chat first uses it.",
            GOES_TO_MODEL,
        ],
    },
    Client {
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
    },
    Client {
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
    },
    Client {
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
    },
    Client {
        id: "openai",
        name: "OpenAI's packages",
        about: "Python, JavaScript and others",
        needs: ANY,
        traces: &[],
        settings: &[
            Setting {
                when: Always,
                place: Environment,
                text: "
OPENAI_BASE_URL={v1}
OPENAI_API_KEY={key}",
            },
            Setting {
                when: Always,
                place: Code("Python"),
                text: r#"
from openai import OpenAI

client = OpenAI(base_url="{v1}", api_key="{key}")
client.chat.completions.create(model="{model}", messages=[{"role": "user", "content": "Hello"}])"#,
            },
        ],
        notes: &["A request may wait for its tier to load: set `timeout` to a few minutes."],
    },
    Client {
        id: "anthropic",
        name: "Anthropic's packages",
        about: "Python, JavaScript and others",
        needs: ANY,
        traces: &[],
        settings: &[
            Setting {
                when: Always,
                place: Environment,
                text: "
ANTHROPIC_BASE_URL={base}
ANTHROPIC_API_KEY={key}",
            },
            Setting {
                when: Always,
                place: Code("Python"),
                text: r#"
from anthropic import Anthropic

client = Anthropic(base_url="{base}", api_key="{key}")
client.messages.create(model="{model}", max_tokens=256, messages=[{"role": "user", "content": "Hello"}])"#,
            },
        ],
        notes: &[],
    },
    Client {
        id: "ollama",
        name: "Ollama's packages and command",
        about: "Python, JavaScript, command line",
        needs: ANY,
        traces: &[Program("ollama")],
        settings: &[
            Setting {
                when: Always,
                place: Environment,
                text: "OLLAMA_HOST={base}",
            },
            Setting {
                when: WithKey,
                place: Environment,
                text: "OLLAMA_API_KEY={key}",
            },
            Setting {
                when: Always,
                place: Code("Python"),
                text: r#"
import ollama

ollama.Client(host="{base}").chat(model="{model}", messages=[{"role": "user", "content": "Hello"}])"#,
            },
        ],
        notes: &[
            "For clients without a setting for the address, set `act_as_ollama = true` under [server] in config.toml.",
        ],
    },
    Client {
        id: "langchain",
        name: "LangChain",
        about: "Python",
        needs: ANY,
        traces: &[],
        settings: &[Setting {
            when: Always,
            place: Code("Python"),
            text: r#"
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(model="{model}", base_url="{v1}", api_key="{key}")"#,
        }],
        notes: &[],
    },
    Client {
        id: "llama-index",
        name: "LlamaIndex",
        about: "Python",
        needs: ANY,
        traces: &[],
        settings: &[Setting {
            when: Always,
            place: Code("Python"),
            text: r#"
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(model="{model}", api_base="{v1}", api_key="{key}", context_window={context}, is_chat_model=True)"#,
        }],
        notes: &[],
    },
    Client {
        id: "pydantic-ai",
        name: "Pydantic AI",
        about: "Python",
        needs: ANY,
        traces: &[],
        settings: &[Setting {
            when: Always,
            place: Code("Python"),
            text: r#"
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

agent = Agent(OpenAIChatModel("{model}", provider=OpenAIProvider(base_url="{v1}", api_key="{key}")))"#,
        }],
        notes: &[],
    },
    Client {
        id: "litellm",
        name: "LiteLLM",
        about: "Python",
        needs: ANY,
        traces: &[Program("litellm")],
        settings: &[Setting {
            when: Always,
            place: Code("Python"),
            text: r#"
import litellm

litellm.completion(model="openai/{model}", api_base="{v1}", api_key="{key}", messages=[{"role": "user", "content": "Hello"}])"#,
        }],
        notes: &[],
    },
    Client {
        id: "vercel-ai",
        name: "Vercel AI SDK",
        about: "JavaScript",
        needs: ANY,
        traces: &[],
        settings: &[Setting {
            when: Always,
            place: Code("JavaScript"),
            text: r#"
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';

const tierbar = createOpenAICompatible({ name: 'tierbar', baseURL: '{v1}', apiKey: '{key}' });
await generateText({ model: tierbar('{model}'), prompt: 'Hello' });"#,
        }],
        notes: &[],
    },
];
