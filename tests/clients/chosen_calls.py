"""Counts the tool calls that a model chooses, per dialect, whole and streamed: `tests/clients/chosen_calls.py --model FILE [--calls 20]`.

`tool_choice` is `auto`, and each question names what to do. Prints a table of how many answers were valid calls, calls that miss their
schema, calls beside words, texts that have the look of a call, and other texts; and on stderr the second and the fourth kind. Ends with 1
if a call misses its schema.
"""

import argparse
import collections
import itertools
import json
import pathlib
import sys

import jsonschema
from calls import DIALECTS, FORMS, SCHEMAS, Models, post, seed

ANSWERS = {False: "whole", True: "stream"}
QUESTIONS = [
    "Get the forecast for the next {} days in celsius.",
    "Get the forecast for {} days, in degrees fahrenheit, please.",
    "Set an alarm for Monday and Tuesday with the label \"gym {}\".",
    "Set an alarm on Wednesday. Its label is \"bus {}\".",
    "Send an urgent message to person ab of the red team. It is message {}.",
    "Send a message to person ca, who is in no team. It is not urgent. It is message {}.",
]
MOST_DAYS = 14
# What only an answer with a call has.
SIGNS = ['"tool_calls":[', '"function_call"', '"tool_use"']
OUTCOMES = ["valid", "invalid", "beside words", "as text", "text"]


def outcome(url, dialect, form, stream, number):
    """What an answer is, and its text."""
    dialect, (tier, thinks) = DIALECTS[dialect], FORMS[form]
    request = dialect.request(list(SCHEMAS), "auto", None, thinks)
    question = QUESTIONS[number % len(QUESTIONS)].format(number // len(QUESTIONS) % MOST_DAYS + 1)
    if "input" in request:
        request["input"] = question
    else:
        request["messages"] = [{"role": "user", "content": question}]
    request |= {"model": tier, "stream": stream}
    seed(request, dialect, number)
    status, text = post(url + dialect.path, request)
    if status != 200:
        raise SystemExit(f"{status}: {text}")
    try:
        calls, _, _ = dialect.streamed(text) if stream else dialect.whole(text)
    except AssertionError:
        calls = []
        if any(sign in text for sign in SIGNS):
            return "beside words", text
    # Without a name, it was cut off.
    calls = [call for call in calls if call[0]]
    if not calls:
        has_look = "arguments" in text and any(name in text for name in SCHEMAS)
        return "as text" if has_look else "text", text
    try:
        for name, arguments in calls:
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
    except (ValueError, KeyError, jsonschema.ValidationError):
        return "invalid", text
    return "valid", text


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", type=int, default=20, help="questions of each dialect, streamed and whole")
    options.add_argument("--form", choices=FORMS, default="generic", help="generic: the model's own template")
    options.add_argument("--dialect", choices=DIALECTS, action="append", help="only this dialect")
    options.add_argument("--model", help="a .gguf file; default: the starter model")
    options = options.parse_args()
    dialects, faults = options.dialect or DIALECTS, 0
    models = Models(options.model and pathlib.Path(options.model).resolve())
    try:
        print(f"| {' | '.join(['dialect', 'answer', *OUTCOMES])} |\n{'|---' * (2 + len(OUTCOMES))}|", flush=True)
        for dialect, stream in itertools.product(dialects, ANSWERS):
            count = collections.Counter()
            for number in range(options.calls):
                found, text = outcome(models.url, dialect, options.form, stream, number)
                count[found] += 1
                faults += found == "invalid"
                if found in ("invalid", "as text"):
                    print(f"{dialect} {ANSWERS[stream]} {number}: {found}: {text[-2000:]}", file=sys.stderr, flush=True)
            cells = [dialect, ANSWERS[stream], *(str(count[found]) for found in OUTCOMES)]
            print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        models.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
