"""Coding agents, run as programs in a folder of their own: a question, a question with tools, and a conversation that outgrows the
context, which they must notice and compact."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import installed
from clients import Row
from recorder import Recorder
from hosts import PLAIN, TOOLS

CELLS = {"text": "a question", "tools": "tools", "compacts": "compacts at an overflow", "unknown": "unknown model"}
SECONDS = 240
# Tools by opencode's names. Claude Code's begin with a capital.
READS, EDITS = ("read",), ("read", "edit")
STORY = "Once upon a time there was a fox. "
# The user's settings of agents.
OWN = ("OPENAI_", "ANTHROPIC_", "OPENCODE_", "CLAUDE")
# What each agent asks the model for when it compacts.
COMPACTS = (b"summar", b"compact", b"compress")


class Agent:
    """An agent in a new home, so that neither the user's settings nor another try's are there."""

    # How often each turn tells the story: two that fit the context of 2,048 tokens, and a third that fits only with a summary of
    # them. The request for one has to fit as well.
    turns = (60, 20, 140)

    def __init__(self, url, home, small=PLAIN, output=64, seconds=SECONDS):
        """`small` is the tier for titles and the like, `output` the most tokens of an answer, `seconds` what a run may take."""
        self.url, self.home, self.small, self.output, self.seconds = url, home, small, output, seconds
        self.work = home / "work"
        self.work.mkdir()
        subprocess.run(["git", "init", "--quiet", str(self.work)], check=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
        folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        self.environment = {**kept, **folders, "HOME": str(home), "PWD": str(self.work), "NO_COLOR": "1", **self.settings()}
        self.log = []

    def run(self, *command):
        done = subprocess.run(
            [*map(str, command)], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self.seconds
        )
        self.log.append(f"$ {command[-1][:80]}\n{done.stdout}\n{done.stderr}")
        return done


class OpenCode(Agent):
    id, name, package = "opencode", "opencode", "opencode-ai"

    def settings(self):
        limit = {"context": 100_000, "output": self.output}
        models = {tier: {"name": tier, "tool_call": tier == TOOLS, "limit": limit} for tier in (TOOLS, PLAIN, "gpt-99")}
        options = {"baseURL": f"{self.url}/v1", "apiKey": "unused"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Tierbar", "options": options, "models": models}
        # A short prompt of its own: that of the agent alone would fill the context.
        bare = {"prompt": "Answer briefly.", "mode": "primary"}
        config = {"autoupdate": False, "share": "disabled", "provider": {"tierbar": provider}, "small_model": f"tierbar/{self.small}"}
        config["permission"] = {"edit": "allow"}
        config["agent"] = {
            "-".join(tools) or "build": {**bare, "tools": {"*": False, **dict.fromkeys(tools, True)}} for tools in ((), READS, EDITS)
        }
        (self.work / "opencode.json").write_text(json.dumps(config))
        return {f"OPENCODE_DISABLE_{what}": "1" for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}

    def ask(self, text, tier=PLAIN, go_on=False, tools=()):
        # The package of this kind of machine; its parent's own script would copy it from there.
        program = sorted(installed.agents().glob("opencode-*/bin/opencode"))[-1]
        more = ["--agent", "-".join(tools)] if tools else []
        return self.run(program, "run", "--format", "json", "-m", f"tierbar/{tier}", *more, *(["-c"] if go_on else []), text)


class ClaudeCode(Agent):
    id, name, package = "claude-code", "Claude Code", "@anthropic-ai/claude-code"
    # It continues an answer that is cut off, up to three times; those need room, too.
    turns = (80, 20, 110)

    def settings(self):
        switches = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
        limits = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.output), "MAX_THINKING_TOKENS": "0"}
        server = {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "unused", "ANTHROPIC_SMALL_FAST_MODEL": self.small}
        return {**dict.fromkeys(switches, "1"), **limits, **server}

    def ask(self, text, tier=PLAIN, go_on=False, tools=()):
        # As with opencode, without what would fill the context, and the package of this kind of machine.
        program = sorted(installed.agents().glob("@anthropic-ai/claude-code-*/claude"))[-1]
        bare = ["--bare", "--system-prompt", "Answer briefly.", "--tools", ",".join(tool.capitalize() for tool in tools)]
        mode = ["--permission-mode", "acceptEdits"] if tools == EDITS else []
        return self.run(program, *bare, *mode, "--model", tier, *(["-c"] if go_on else []), "-p", text)


AGENTS = [OpenCode, ClaudeCode]


def answered(agent, **more):
    return why_it_ended(agent.ask("What is the capital of France?", **more))


def why_it_ended(done):
    failed = done.returncode or "API Error" in done.stdout
    return f"ended with {done.returncode}: {last_line(done)}" if failed else ""


def compacts(agent, recorder):
    for number, times in enumerate(agent.turns):
        done = agent.ask(f"{STORY * times} What came after?", go_on=number > 0)
    return why_not_compacted(recorder, done)


def why_not_compacted(recorder, done):
    overflows = [at for at, each in enumerate(recorder.exchanges) if each["status"] == 400]
    if not overflows:
        return "the conversation never outgrew the context"
    later = recorder.exchanges[overflows[0] + 1 :]
    if not any(each["status"] == 200 and any(word in each["request"].lower() for word in COMPACTS) for each in later):
        return f"did not compact: {last_line(done)}"
    # It may still end as with an error, for the one that it saw.
    return "" if later[-1]["status"] == 200 else f"compacted, and was not answered: {last_line(done)}"


def offers_tools(agent, recorder):
    why = answered(agent, tier=TOOLS, tools=READS)
    offered = any(json.loads(each["request"] or b"{}").get("tools") for each in recorder.exchanges)
    return why or ("" if offered else "no tool was offered")


def unknown(agent, recorder):
    done = agent.ask("Hello", tier="gpt-99")
    if not any(each["status"] == 404 for each in recorder.exchanges):
        return f"no request was refused: {last_line(done)}"
    return "" if "gpt-99" in done.stdout + done.stderr else f"the model is not named: {last_line(done)}"


def last_line(done):
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1][-300:] if lines else "no output"


TRIED = {
    "text": lambda agent, _: answered(agent),
    "tools": offers_tools,
    "compacts": compacts,
    "unknown": unknown,
}


def version(kind):
    return json.loads((installed.agents() / kind.package / "package.json").read_text())["version"]


def try_agent(kind, serving, folder):
    row, log = Row(kind.id, kind.name, version(kind)), []
    for cell, attempt in TRIED.items():
        try_cell(row, cell, attempt, kind, serving, log)
    (folder / "stderr.log").write_text("\n".join(log))
    return row


def try_cell(row, cell, attempt, kind, serving, log, **limits):
    recorder = Recorder(serving.url)
    with tempfile.TemporaryDirectory(prefix="tierbar-agent-", ignore_cleanup_errors=True) as home:
        agent = kind(recorder.url, Path(home), **limits)
        try:
            row.cells[cell] = attempt(agent, recorder)
        except subprocess.TimeoutExpired:
            row.cells[cell] = f"did not end within {agent.seconds} s"
        log += [f"## {cell}", *agent.log]
    row.requests.pop(cell, None)
    if row.cells[cell]:
        row.requests[cell] = recorder.text()
    recorder.stop()
