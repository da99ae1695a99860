//! Packages of programming languages.

use super::{ANY, code, environment};
use crate::{Client, SettingCondition::WithKey, Trace::Program};

pub(super) const OPENAI: Client = Client {
    id: "openai",
    name: "OpenAI's packages",
    about: "Python, JavaScript and others",
    needs: ANY,
    traces: &[],
    settings: &[
        environment(
            "
OPENAI_BASE_URL={v1}
OPENAI_API_KEY={key}",
        ),
        code(
            "Python",
            r#"
from openai import OpenAI

client = OpenAI(base_url="{v1}", api_key="{key}")
client.chat.completions.create(model="{model}", messages=[{"role": "user", "content": "Hello"}])"#,
        ),
    ],
    notes: &["A request may wait for its tier to load: set `timeout` to a few minutes."],
};

pub(super) const ANTHROPIC: Client = Client {
    id: "anthropic",
    name: "Anthropic's packages",
    about: "Python, JavaScript and others",
    needs: ANY,
    traces: &[],
    settings: &[
        environment(
            "
ANTHROPIC_BASE_URL={base}
ANTHROPIC_API_KEY={key}",
        ),
        code(
            "Python",
            r#"
from anthropic import Anthropic

client = Anthropic(base_url="{base}", api_key="{key}")
client.messages.create(model="{model}", max_tokens=256, messages=[{"role": "user", "content": "Hello"}])"#,
        ),
    ],
    notes: &[],
};

pub(super) const OLLAMA: Client = Client {
    id: "ollama",
    name: "Ollama's packages and command",
    about: "Python, JavaScript, command line",
    needs: ANY,
    traces: &[Program("ollama")],
    settings: &[
        environment("OLLAMA_HOST={base}"),
        environment("OLLAMA_API_KEY={key}").only(WithKey),
        code(
            "Python",
            r#"
import ollama

ollama.Client(host="{base}").chat(model="{model}", messages=[{"role": "user", "content": "Hello"}])"#,
        ),
    ],
    notes: &[
        "For clients without a setting for the address, set `act_as_ollama = true` under [server] in config.toml.",
    ],
};

pub(super) const LANGCHAIN: Client = Client {
    id: "langchain",
    name: "LangChain",
    about: "Python",
    needs: ANY,
    traces: &[],
    settings: &[code(
        "Python",
        r#"
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(model="{model}", base_url="{v1}", api_key="{key}")"#,
    )],
    notes: &[],
};

pub(super) const LLAMA_INDEX: Client = Client {
    id: "llama-index",
    name: "LlamaIndex",
    about: "Python",
    needs: ANY,
    traces: &[],
    settings: &[code(
        "Python",
        r#"
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(model="{model}", api_base="{v1}", api_key="{key}", context_window={context}, is_chat_model=True)"#,
    )],
    notes: &[],
};

pub(super) const PYDANTIC_AI: Client = Client {
    id: "pydantic-ai",
    name: "Pydantic AI",
    about: "Python",
    needs: ANY,
    traces: &[],
    settings: &[code(
        "Python",
        r#"
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

agent = Agent(OpenAIChatModel("{model}", provider=OpenAIProvider(base_url="{v1}", api_key="{key}")))"#,
    )],
    notes: &[],
};

pub(super) const LITELLM: Client = Client {
    id: "litellm",
    name: "LiteLLM",
    about: "Python",
    needs: ANY,
    traces: &[Program("litellm")],
    settings: &[code(
        "Python",
        r#"
import litellm

litellm.completion(model="openai/{model}", api_base="{v1}", api_key="{key}", messages=[{"role": "user", "content": "Hello"}])"#,
    )],
    notes: &[],
};

pub(super) const VERCEL_AI: Client = Client {
    id: "vercel-ai",
    name: "Vercel AI SDK",
    about: "JavaScript",
    needs: ANY,
    traces: &[],
    settings: &[code(
        "JavaScript",
        r#"
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';

const tierbar = createOpenAICompatible({ name: 'tierbar', baseURL: '{v1}', apiKey: '{key}' });
await generateText({ model: tierbar('{model}'), prompt: 'Hello' });"#,
    )],
    notes: &[],
};
