#!/usr/bin/env python3
"""Whether a model that may call tools calls the right one, and talks where it should: calls.jsonl, with the functions of call_tools.json.

`tests/eval/calls.py` checks the questions. What the models generated is written to target/eval. `tests/eval/calls.py FILE …` prints such
files with the calls that each text is by itself, as `tests/fixtures/written-calls.jsonl` has them, and on stderr where the server differs.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from host import ROOT, lines, share, table

RECORDINGS = ROOT / "target/eval"
LONGEST_ANSWER = 300
LABELS = ["call", "talk"]
# What a model's text begins with, and then what is anywhere in it. The order decides.
FORMS = {
    "the template's tags": r"\s*<tool_call>\s*\{",
    "other tags": r"\s*(```\w*\s*)?</?(tool_call|tools?|function_call|functions?|invoke|parameters?)\b",
    "a code block": r"\s*```(json|xml)?\s*[\[{<]",
    "bare JSON": r"\s*[\[{]",
    "as in Python": r"\s*(```\w*\s*)?(print\()?NAME\s*\(",
    "a name, then JSON": r"[\s\W]*(\w+[\s:]+)?NAME\W+(```\w*\s*)?\{",
    "words, then a call": r"(?s).*(\"(name|function)\"\s*:\s*\"NAME\"|<tool_call>|<function)",
    "words, then Python": r"(?s).*\bNAME\(",
}
WORDS = "words"


def tools():
    return {tool["function"]["name"]: tool for tool in json.loads((ROOT / "tests/eval/call_tools.json").read_text())}


def form_of(text, names):
    """The form of a call in a model's text, by its look."""
    name = f"(?:{'|'.join(map(re.escape, names))})"
    return next((form for form, sign in FORMS.items() if re.match(sign.replace("NAME", name), text)), WORDS)


def written(text, names, offered):
    """The calls that a whole text consists of: JSON, in code blocks or tags, of these functions with their parameters. Not the server's
    own reader, so that the two can be compared."""
    rest = re.sub(r"```\w*\n?|</?(tool_calls?|tools?|functions?|function_calls?)>", "\n", text).strip()
    decoder, calls = json.JSONDecoder(), []
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except ValueError:
            return []
        rest = rest[end:].lstrip(" \n\t,;}")
        for call in value if isinstance(value, list) else [value]:
            call = call.get("function") if isinstance(call, dict) and isinstance(call.get("function"), dict) else call
            if not isinstance(call, dict) or call.get("name") not in names:
                return []
            arguments = arguments_of(call.get("arguments", call.get("parameters")))
            known = offered[call["name"]]["function"]["parameters"]["properties"]
            if not isinstance(arguments, dict) or not set(arguments) <= set(known):
                return []
            calls.append([call["name"], arguments])
    return calls


def fits(value, accepted):
    """Texts may say more than is asked for; numbers and truth values may be written as texts."""
    if isinstance(value, (bool, int, float)) or accepted in (["true"], ["false"]) or accepted[0].isdigit():
        written = str(value).casefold()
        return any(written in (form, f"{form}.0") for form in accepted)
    return isinstance(value, str) and any(form.casefold() in " ".join(value.split()).casefold() for form in accepted)


def is_right(call, wanted):
    arguments = call[1]
    return call[0] == wanted["name"] and isinstance(arguments, dict) and all(
        name in arguments and fits(arguments[name], accepted) for name, accepted in wanted["arguments"].items())


def are_right(calls, wanted):
    """Whether each call that is wanted was made, and no other."""
    left = list(calls)
    for one in wanted:
        found = next((call for call in left if is_right(call, one)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def arguments_of(arguments):
    """The arguments, which some models write as JSON in a text."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def ask(host, question, offered):
    """What the model generated, how it was read, and the seconds."""
    request = {
        "model": "primary", "messages": [{"role": "user", "content": question["prompt"]}],
        "tools": [offered[name] for name in question["tools"]], "temperature": 0, "max_tokens": LONGEST_ANSWER, "logprobs": True}
    answer, seconds = host.post("/v1/chat/completions", request)
    if "error" in answer:
        raise SystemExit(f"the host refused question {question['id']}: {answer['error']['message']}")
    choice = answer["choices"][0]
    message = choice["message"]
    calls = [call["function"] for call in message.get("tool_calls") or []]
    tokens = (choice.get("logprobs") or {}).get("content") or []
    # A letter may be divided between two tokens. Servers without probabilities show only what they have read.
    raw = b"".join(bytes(token.get("bytes") or token["token"].encode()) for token in tokens).decode(errors="replace")
    return {
        "id": question["id"], "set": question["set"], "label": question["label"], "tools": question["tools"],
        "raw": raw or message.get("content") or "", "content": message.get("content") or "",
        "calls": [[call["name"], arguments_of(call["arguments"])] for call in calls], "finish": choice["finish_reason"]}, seconds


def outcome(question, answer):
    if question["label"] == "talk":
        return "false" if answer["calls"] else "kept"
    if answer["calls"]:
        return "right" if are_right(answer["calls"], question["calls"]) else "wrong"
    return "written" if form_of(answer["raw"], question["tools"]) != WORDS else "missed"


def measure(host, most=None):
    """The tables for the host's model; `most` questions of each set."""
    offered, questions = tools(), lines("calls.jsonl")
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    recording = RECORDINGS / f"calls-{re.sub(r'[^A-Za-z0-9._-]', '-', host.subject.name)}.jsonl"
    rows, forms = [], []
    with recording.open("w") as file:
        for which in ("dev", "test"):
            part = [question for question in questions if question["set"] == which][:most]
            times, count, looks = [], Counter(), Counter()
            for question in part:
                answer, seconds = ask(host, question, offered)
                print(json.dumps(answer, ensure_ascii=False), file=file, flush=True)
                times.append(seconds)
                count[outcome(question, answer)] += 1
                count["misread"] += answer["calls"] != written(answer["raw"], question["tools"], offered)
                looks[question["label"], form_of(answer["raw"], question["tools"]), bool(answer["calls"])] += 1
            labels = Counter(question["label"] for question in part)
            called = which + (", held out" if which == "test" else "")
            rows.append([
                called, share(count["right"], labels["call"]), str(count["wrong"]), str(count["written"]), str(count["missed"]),
                share(count["false"], labels["talk"]), str(count["misread"]), f"{median(times):.1f} s" if times else "–"])
            for form in [*FORMS, WORDS]:
                cells = [f"{looks[label, form, True]} of {looks[label, form, True] + looks[label, form, False]}" for label in LABELS]
                if any(not cell.endswith(" of 0") for cell in cells):
                    forms.append([called, form, *cells])
    head = ["questions", "right calls", "wrong calls", "missed: written, and left as text", "missed: not called", "false calls",
            "read otherwise than written", "median time"]
    return "\n".join([
        table(head, rows), "", table(["questions", "form of the answer", "read as calls: to call", "read as calls: to talk"], forms), "",
        f"What the model generated is in {recording.relative_to(ROOT)}."])


def check():
    """Ids and sets in order, each label as often in each set, and each call one of an offered tool with its required arguments."""
    offered, questions = tools(), lines("calls.jsonl")
    assert [question["id"] for question in questions] == list(range(1, len(questions) + 1))
    count = Counter((question["set"], question["label"]) for question in questions)
    assert len(set(count.values())) == 1, count
    assert len({question["prompt"] for question in questions}) == len(questions)
    for question in questions:
        assert question["set"] == ("dev" if question["id"] % 2 else "test"), question
        assert set(question["tools"]) <= set(offered), question
        assert (question["label"] == "call") == bool(question.get("calls")), question
        for call in question.get("calls", []):
            parameters = offered[call["name"]]["function"]["parameters"]
            assert call["name"] in question["tools"], question
            assert set(parameters["required"]) <= set(call["arguments"]) <= set(parameters["properties"]), question


def label(files):
    offered = tools()
    for file in map(Path, files):
        model = file.stem.removeprefix("calls-")
        for line in file.read_text().splitlines():
            answer = json.loads(line)
            calls = written(answer["raw"], answer["tools"], offered)
            if calls != answer["calls"]:
                print(f"{model} {answer['id']}: read as {answer['calls']}, written as {calls}: {answer['raw']}", file=sys.stderr)
            kept = {field: answer[field] for field in ("id", "set", "label", "tools", "raw")}
            print(json.dumps({"model": model, **kept, "calls": calls}, ensure_ascii=False))


if __name__ == "__main__":
    check()
    label(sys.argv[1:])
