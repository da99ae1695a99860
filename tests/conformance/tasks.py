"""A small task for coding agents, with a model that can do it: as a conversation's first request, and as the one with which it outgrows the
context, so that the agent has to compact it and go on."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import agents
from clients import Row
from hosts import CONTEXT, TOOLS

CELLS = {"task": "a small task", "compacted": "a task after compacting"}
# Used where it is there, which `make setup-models` sees to.
MODEL = Path.home() / ".cache/tierbar/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
FILES = {
    "add.py": "def add(a, b):\n    return a - b\n",
    "test_add.py": "from add import add\n\nassert add(2, 3) == 5\n",
}
REQUEST = (
    "`python3 test_add.py` fails because add(2, 3) returns -1. Read add.py, then edit it so that add(2, 3) returns 5. "
    "Leave test_add.py as it is."
)
# What the model wrote is read, and not run.
DONE = re.compile(r"^\s+return \(?(a ?\+ ?b|b ?\+ ?a)\)?\s*(#.*)?$", re.MULTILINE)
# A call of the tool that edits, or a text that reads as one. Its arguments have the text that is replaced.
EDIT = re.compile(r"old_?string|\"name\"\s*:\s*\"edit\"|<function=edit", re.IGNORECASE)
# The reason begins so where neither Tierbar nor the agent failed; the task is then tried again.
MODELS_FAULT = "the model "
TRIES = 3
LIMITS = {"small": TOOLS, "output": 512, "seconds": 900}
# Of the story in tokens, and of what agents send in bytes to a token.
STORY_TOKENS, TOKEN_BYTES = 9, 3.8


@dataclass(frozen=True)
class Task:
    """A row of the table: an agent with the task."""

    agent: type

    @property
    def id(self):
        return f"{self.agent.id}-task"

    @property
    def name(self):
        return self.agent.name


TASKS = [Task(agent) for agent in agents.AGENTS]


def told(tokens):
    return agents.STORY * int(tokens / STORY_TOKENS)


def ask(agent, text, **more):
    return agent.ask(text, tier=TOOLS, tools=agents.EDITS, **more)


def written(value):
    """What a model wrote, of an event or a whole answer in OpenAI's or Anthropic's form."""
    if isinstance(value, list):
        return "".join(written(each) for each in value)
    if not isinstance(value, dict):
        return ""
    own = "".join(value[key] for key in ("content", "text", "arguments", "partial_json") if isinstance(value.get(key), str))
    name = f'"name": "{value["name"]}"' if isinstance(value.get("name"), str) else ""
    # Anthropic's whole answers have arguments as an object.
    call = json.dumps(value["input"]) if isinstance(value.get("input"), dict) else ""
    return name + own + call + "".join(written(each) for each in value.values())


def tried_to_edit(exchanges):
    """Whether the model called the tool that edits, or wrote what reads as such a call."""
    for each in exchanges:
        answer = each["answer"].decode(errors="replace").strip()
        # A stream that broke off may end within an event.
        events = [answer] if answer.startswith("{") else re.findall(r"^data: (\{.*\})$", answer, re.MULTILINE)
        if EDIT.search("".join(written(json.loads(event)) for event in events)):
            return True
    return False


def why_not_done(agent, recorder, done):
    if why := agents.why_it_ended(done):
        return why
    if (agent.work / "test_add.py").read_text() != FILES["test_add.py"]:
        return f"{MODELS_FAULT}changed the test"
    if not DONE.search((agent.work / "add.py").read_text()):
        why = f"did not do it: {agents.last_line(done)}"
        # An edit that came to nothing may be the fault of who relayed it.
        return why if tried_to_edit(recorder.exchanges) else f"{MODELS_FAULT}{why}"
    return ""


def task(agent, recorder):
    return why_not_done(agent, recorder, ask(agent, REQUEST))


def compacted(agent, recorder):
    """The conversation fills a third of the context, so that the request for a summary fits. The task overflows it, and fits again
    without the conversation, however long the agent's own prompt and tools are."""
    ask(agent, f"{told(CONTEXT / 3)} What came after?")
    held = max((len(each["request"]) for each in recorder.exchanges), default=0) / TOKEN_BYTES
    done = ask(agent, f"{told(1.12 * CONTEXT - held)} That was the story. Now to something else: {REQUEST}", go_on=True)
    return agents.why_not_compacted(recorder, done) or why_not_done(agent, recorder, done)


TRIED = {"task": task, "compacted": compacted}


def laid(attempt):
    def begun(agent, recorder):
        for name, text in FILES.items():
            (agent.work / name).write_text(text)
        return attempt(agent, recorder)

    return begun


def try_task(subject, serving, folder):
    kind = subject.agent
    row, log = Row(subject.id, subject.name, f"{agents.version(kind)}, {serving.model}"), []
    for cell, attempt in TRIED.items():
        for _ in range(TRIES):
            agents.try_cell(row, cell, laid(attempt), kind, serving, log, **LIMITS)
            if not row.cells[cell].startswith(MODELS_FAULT):
                break
    (folder / "stderr.log").write_text("\n".join(log))
    return row
