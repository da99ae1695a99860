"""The command `llm`, with a model in its own list of OpenAI-compatible ones."""

import subprocess
import tempfile
from pathlib import Path

from cells import *

folder = tempfile.TemporaryDirectory()
COMMAND = Path(sys.executable).with_name("llm")
LIST = """- model_id: ours-{tier}
  model_name: {tier}
  api_base: "{base}"
  supports_tools: true
  supports_schema: true
"""
Path(folder.name, "extra-openai-models.yaml").write_text("".join(LIST.format(tier=tier, base=V1) for tier in (TOOLS, PLAIN, UNKNOWN)))


def llm(tier, *arguments, text=QUESTION):
    command = [COMMAND, "prompt", "-m", f"ours-{tier}", "--key", KEY, "-o", "max_tokens", "64", "--no-log", *arguments]
    environment = {**os.environ, "LLM_USER_PATH": folder.name}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def text(tier):
    return llm(tier, "--no-stream", "-o", "max_tokens", "12")


def stream(tier):
    return list(llm(tier, "-o", "max_tokens", "12"))


def tools(tier):
    return llm(tier, "--functions", 'def store_parcel(shelf: str) -> str:\n    "Stores a parcel."\n    return "Stored."', "-o", "max_tokens", "12")


def structured(tier):
    return llm(tier, "--schema", json.dumps(SCHEMA), "--no-stream", text=ASK_PARCEL)


def overflow(tier):
    return raised(lambda: llm(tier, text=STORY), RuntimeError)


def unknown(tier):
    return raised(lambda: llm(tier), RuntimeError)


run("llm")
