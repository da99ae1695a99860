"""What is tried with each client, and how a script of this folder reports it.

A script defines a function for each cell that its client has, named as in `CELLS`, and ends in `run(package)`. It speaks with
tests/conformance/run by lines of JSON: before a cell it writes the name and waits for a line, so that what the client sends
can be told apart; after it, how it went.
"""

import importlib.metadata
import json
import os
import sys
import traceback
from typing import Literal

from pydantic import BaseModel

# The lines go to where standard output went at the start: packages print, too.
LINES = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

URL = os.environ["TIERBAR_URL"]
V1 = f"{URL}/v1"
KEY = "unused"
TOOLS, PLAIN, EMBEDDER, UNKNOWN = "fast", "primary", "embedder", "gpt-99"
# The tiers that each cell is tried with: what forces a form must do so also where the model's template knows no tools.
CELLS = {
    "text": [TOOLS],
    "stream": [TOOLS],
    "tools": [TOOLS],
    "forced": [TOOLS, PLAIN],
    "structured": [TOOLS, PLAIN],
    "both": [TOOLS, PLAIN],
    "embeddings": [EMBEDDER],
    "overflow": [TOOLS],
    "unknown": [UNKNOWN],
}
# The short form has engine tests for these.
SHORT = os.environ.get("TIERBAR_SHORT", "").split()
CELLS = {cell: tiers for cell, tiers in CELLS.items() if cell not in SHORT}
QUESTION = "What is the capital of France?"
STORY = "Once upon a time there was a fox. " * 600
CONTEXT = 2048
# Tokens for an answer in which a small model may call more than once.
SEVERAL = 256
SECONDS = 120


class Parcel(BaseModel):
    """A parcel on a shelf."""

    # What no model would write by itself. Without bounds of numbers, which Anthropic's packages leave out.
    shelf: Literal["K-7", "Q-2"]
    fragile: bool
    floor: Literal[1, 2, 3]


ASK_PARCEL = "The glass bowl is on shelf Q-2 of floor 3. Describe the parcel."
NAME = "store_parcel"
DESCRIPTION = "Stores a parcel."
SCHEMA = Parcel.model_json_schema()
ARGUMENTS = {"shelf": "Q-2", "fragile": True, "floor": 3}
FUNCTION = {"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}}


def user(text):
    return [{"role": "user", "content": text}]


def check(holds, why):
    if not holds:
        raise AssertionError(why)


def raised(call, *kinds):
    """The exception of one of these kinds that the call raises."""
    try:
        answer = call()
    except kinds as error:
        return error
    raise AssertionError(f"no error, but {str(answer)[:200]}")


def text_of(error):
    """All that a client has of an error, with those beneath it."""
    parts = []
    while error:
        parts += [str(error), str(getattr(error, "body", "") or ""), str(getattr(error, "response_body", "") or "")]
        error = error.__cause__
    return " ".join(parts)


def check_overflow(error):
    """The error names the overflow so that programs notice, by the patterns in use."""
    words = text_of(error)
    patterns = ("context_length_exceeded", "maximum context length is", "prompt is too long", "exceeds the context window")
    check(any(pattern in words for pattern in patterns), f"no program would notice: {words[:300]}")
    check(str(CONTEXT) in words, f"the context is not in {words[:300]}")


def check_unknown(error):
    words = text_of(error)
    check(UNKNOWN in words, f"the model is not named: {words[:300]}")


CHECKS = {
    "text": lambda answer: check(isinstance(answer, str) and answer.strip(), f"no text: {answer!r}"),
    "stream": lambda pieces: check(len([piece for piece in pieces if piece]) > 1, f"not streamed: {pieces!r}"),
    "tools": lambda answer: check(isinstance(answer, str) and answer.strip(), f"no text after a tool's result: {answer!r}"),
    "forced": lambda call: check(call and call[0] == NAME, f"not called: {call!r}") or Parcel.model_validate(as_object(call[1])),
    "structured": lambda answer: Parcel.model_validate(as_object(answer)),
    # A call's arguments, or the answer: both are parcels.
    "both": lambda answer: Parcel.model_validate(as_object(answer)),
    "embeddings": lambda numbers: check(len(numbers) == 384, f"{len(numbers)} numbers"),
    "overflow": check_overflow,
    "unknown": check_unknown,
}


def as_object(answer):
    if isinstance(answer, str):
        return json.loads(answer)
    return answer.model_dump() if isinstance(answer, BaseModel) else answer


def say(**line):
    print(json.dumps(line), file=LINES, flush=True)


def attempt(function, tiers, is_right):
    for tier in tiers:
        try:
            is_right(function(tier))
        # Packages raise whatever they like, also to end the process.
        except BaseException as error:
            traceback.print_exc()
            what = f"{type(error).__name__}: {error}".split("\n\n")[0]
            return {"passed": False, "tier": tier, "why": " ".join(what.split())[:400]}
    return {"passed": True}


def run(package, cells=CELLS, checks=CHECKS):
    """Runs each of `cells`, with the tiers that it names there, if the script has a function of its name."""
    module = sys.modules["__main__"]
    say(version=importlib.metadata.version(package))
    for cell, tiers in cells.items():
        function = getattr(module, cell, None)
        if not function:
            say(cell=cell, absent=True)
            continue
        say(begin=cell)
        if not sys.stdin.readline():
            break
        say(cell=cell, **attempt(function, tiers, checks[cell]))
    LINES.flush()
    # A client's package may leave a thread that waits for ever.
    os._exit(0)
