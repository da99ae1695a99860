"""Runs each client's script, and collects how its cells went."""

import contextlib
import json
import os
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import installed
from recorder import Recorder

HERE = Path(__file__).resolve().parent
CELLS = {
    "text": "text",
    "stream": "streamed",
    "tools": "tools",
    "forced": "forced tool",
    "structured": "structured",
    "both": "tools, structured",
    "embeddings": "embeddings",
    "overflow": "overflow",
    "unknown": "unknown model",
}
SILENT_SECONDS = 240


@dataclass(frozen=True)
class Client:
    """A row of the table: a script, and what it is called with."""

    name: str
    script: str
    kind: str = ""
    # The requirements it runs with; none for Node.
    packages: str = ""

    @property
    def id(self):
        return "-".join(filter(None, (Path(self.script).stem.rstrip("_") + ("-js" if self.script.endswith(".mjs") else ""), self.kind)))

    def command(self):
        if self.packages:
            return [installed.python(self.packages), str(HERE / "python" / self.script), self.kind]
        return ["node", str(installed.node() / self.script), self.kind]


CLIENTS = [
    Client("OpenAI, Python: chat", "openai_chat.py", packages="current"),
    Client("OpenAI, Python: Responses", "openai_responses.py", packages="current"),
    Client("Anthropic, Python", "anthropic_.py", packages="current"),
    Client("Ollama, Python", "ollama_.py", packages="current"),
    Client("OpenAI, npm: chat", "openai-chat.mjs"),
    Client("OpenAI, npm: Responses", "openai-responses.mjs"),
    Client("Anthropic, npm", "anthropic.mjs"),
    Client("Ollama, npm", "ollama.mjs"),
    Client("Vercel AI SDK: OpenAI", "vercel.mjs", "openai"),
    Client("Vercel AI SDK: OpenAI chat", "vercel.mjs", "openai-chat"),
    Client("Vercel AI SDK: OpenAI-compatible", "vercel.mjs", "openai-compatible"),
    Client("Vercel AI SDK: Anthropic", "vercel.mjs", "anthropic"),
    Client("Vercel AI SDK: Ollama", "vercel.mjs", "ollama"),
    Client("LangChain: OpenAI", "langchain_.py", "openai", "current"),
    Client("LangChain: Anthropic", "langchain_.py", "anthropic", "current"),
    Client("LangChain: Ollama", "langchain_.py", "ollama", "current"),
    Client("LangChain.js: OpenAI", "langchain.mjs", "openai"),
    Client("LangChain.js: Anthropic", "langchain.mjs", "anthropic"),
    Client("LangChain.js: Ollama", "langchain.mjs", "ollama"),
    Client("LlamaIndex: OpenAI-like", "llama_index_.py", "openai_like", "older"),
    Client("LlamaIndex: Ollama", "llama_index_.py", "ollama", "older"),
    Client("pydantic-ai: OpenAI chat", "pydantic_ai_.py", "openai", "current"),
    Client("pydantic-ai: OpenAI Responses", "pydantic_ai_.py", "responses", "current"),
    Client("pydantic-ai: Anthropic", "pydantic_ai_.py", "anthropic", "current"),
    Client("instructor: OpenAI", "instructor_.py", "openai", "older"),
    Client("instructor: Anthropic", "instructor_.py", "anthropic", "older"),
    Client("LiteLLM: OpenAI", "litellm_.py", "openai", "current"),
    Client("LiteLLM: Anthropic", "litellm_.py", "anthropic", "current"),
    Client("LiteLLM: Ollama", "litellm_.py", "ollama_chat", "current"),
    Client("OpenAI Agents SDK: chat", "openai_agents_.py", "chat", "frameworks"),
    Client("OpenAI Agents SDK: Responses", "openai_agents_.py", "responses", "frameworks"),
    Client("Agno: OpenAI chat", "agno_.py", "openai", "frameworks"),
    Client("Agno: OpenAI Responses", "agno_.py", "responses", "frameworks"),
    Client("Agno: Ollama", "agno_.py", "ollama", "frameworks"),
    Client("smolagents", "smolagents_.py", packages="frameworks"),
    Client("Chroma: Ollama", "chroma_.py", packages="frameworks"),
    Client("DSPy", "dspy_.py", packages="current"),
    Client("Outlines", "outlines_.py", packages="current"),
    Client("Haystack", "haystack_.py", packages="current"),
    Client("guidance", "guidance_.py", packages="current"),
    Client("llm", "llm_.py", packages="current"),
]
BENCHMARKS = [Client("lm-eval", "lm_eval_.py", packages="lm-eval")]
BENCHMARK_CELLS = {
    "generated": "text",
    "chat": "text by chat",
    "choices": "multiple choice",
    "rolling": "perplexity",
}


@dataclass
class Row:
    """How a client's cells went: `None` what it does not have, else `""`, or why it failed."""

    id: str
    name: str
    version: str = "?"
    cells: dict = field(default_factory=dict)
    # Of each cell that failed: its exchanges, as text.
    requests: dict = field(default_factory=dict)


def try_client(client, serving, log, cells, **more):
    """Runs one client's script to its end."""
    row, recorder = Row(client.id, client.name), Recorder(serving.url)
    environment = {**os.environ, "TIERBAR_URL": recorder.url, "HOME": str(log.parent), "DO_NOT_TRACK": "1", "NO_COLOR": "1", **more}
    # Those of the user would be used, too.
    for name in [name for name in environment if name.startswith(("OPENAI_", "ANTHROPIC_", "OLLAMA_"))]:
        del environment[name]
    with log.open("w") as errors:
        process = subprocess.Popen(client.command(), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    lines = queue.Queue()
    threading.Thread(target=read, args=(process.stdout, lines), daemon=True).start()
    cell = None
    try:
        while line := lines.get(timeout=SILENT_SECONDS):
            said = json.loads(line)
            if "version" in said:
                row.version = said["version"]
            elif cell := said.get("begin"):
                recorder.begin()
                process.stdin.write("\n")
                process.stdin.flush()
            else:
                take(row, said, recorder)
    except queue.Empty:
        take(row, {"cell": cell, "passed": False, "why": f"nothing happened for {SILENT_SECONDS} s"}, recorder)
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        recorder.stop()
    for cell in cells.keys() - row.cells.keys():
        last = (log.read_text(errors="replace").strip().splitlines() or ["it ended"])[-1]
        row.cells[cell] = f"not reached: {last[:200]}"
    return row


def read(output, lines):
    """Puts each line in the queue, and `None` at the end. The reading thread closes: another one would wait for the read to end."""
    with output:
        for line in output:
            lines.put(line)
    lines.put(None)


def take(row, said, recorder):
    cell = said["cell"]
    if said.get("absent"):
        row.cells[cell] = None
    elif said["passed"]:
        row.cells[cell] = ""
    else:
        tier = said.get("tier")
        row.cells[cell] = f"{tier}: {said['why']}" if tier else said["why"]
        row.requests[cell] = recorder.text()
