"""Broken streams of two servers behind the gateway, one of OpenAI's dialect (chunks.py) and one of Anthropic's (blocks.py), and what four
dialects make of them, beside a slow reader that follows the standards.

Half of them have only text, the others also thoughts, a call of a tool, or both. What must not be: an answer that ends as complete and lacks
what arrived, a sound stream that does not end so, a failure that does not say who is at fault, a panic, a hang."""

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, NamedTuple

import blocks
import chunks
import verdict
import wire
import words
from corpus import posted, written
from reading import Read, events_of, is_split, values_of
from serving import behind

AT_ONCE = 8
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
DIALECTS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": ""}]},
    "/v1/responses": {"input": ""},
    "/v1/messages": {"max_tokens": 99, "messages": [{"role": "user", "content": ""}]},
    "/api/chat": {"messages": [{"role": "user", "content": ""}]},
}
# The form of each tier's server.
FORMS = {"fast": chunks, "cloud": blocks}


def config(url):
    """The server at this URL as a tier of each form."""
    return behind(url) + f'[tiers.cloud]\nmodel = "m"\nengine = {{ endpoint = "{url}", dialect = "anthropic" }}\n'


def odd_events(random, kind, events, form):
    """Changes the texts of events in one way, or none."""
    at = random.randrange(1, len(events))
    if kind == 1:  # a pair of surrogates over two events
        events[at:at] = [json.dumps(form.piece(half)) for half in ("\ud83d", "\ude00")]
    elif kind == 2:  # half a pair
        events.insert(at, json.dumps(form.piece(random.choice(["a\ud83d", "\ude00b", "\ud800"]))))
    elif kind == 3:  # one event in several lines
        events[at] = re.sub(r"([,{]) ?(?=\")", r"\1\ndata: ", events[at], count=random.randint(1, 3))
    elif kind == 4:
        events.insert(at, random.choice(["null", "", " ", "{}", '{"choices": []}', '{"choices": null}', '{"id": "x"}']))
    elif kind == 5:
        events[at] = f"x\n: a comment\nevent: ping\nid: 7\nretry: 10\n\ndata: {events[at]}"
    elif kind == 9:  # JSON that ends too early
        events[at] = events[at][: random.randint(1, max(1, len(events[at]) - 1))]
    elif kind == 11:
        events[:] = [event for event in events if form.LAST not in event]
    elif kind == 12:
        events.insert(at, json.dumps(form.piece(random.choice(form.ODD))))
    elif kind == 13:
        events[at] = events[at].replace('"index": 0, ', "")
    elif kind == 14:
        events.insert(at, json.dumps({"type": "error", "error": {"message": "out of memory", "code": 500}}))
    elif kind == 16:
        events.insert(at, events[at])


def odd_bytes(random, kind, data):
    """A stream's bytes with one thing wrong with them, or none."""
    at = int(len(data) * random.random())
    if kind == 0:
        return b"\xef\xbb\xbf" + data
    if kind == 7:
        return data.replace("ü".encode(), b"\xfc", 1)
    if kind == 8:
        return data[:at]
    if kind == 15:
        return data[:at] + random.choice([b"\xff", b"\xc3", b"\xf0\x9f", b"\x00"]) + data[at:]
    return data


def made(random, harms, form):
    """A stream's bytes with so many things wrong with it, or odd."""
    events = [json.dumps(event, ensure_ascii=random.random() < 0.5) for event in form.sound(random)]
    kinds = [random.randrange(17) for _ in range(harms)]
    for kind in kinds:
        odd_events(random, kind, events, form)
    space = random.choice(["", " "])
    data = "".join(f"{form.name(event)}data:{space}{event}\n\n" for event in events)
    if 10 not in kinds:
        data += form.END
    if 6 in kinds:
        data = data.replace("\n", random.choice(["\r\n", "\r"]))
    data = data.encode()
    for kind in kinds:
        data = odd_bytes(random, kind, data)
    return data


def reference(data, form=chunks):
    """What a server's stream says, read slowly."""
    read, finished = Read(), False
    for event in events_of(data):
        # The empty line before it may have been damaged.
        *lines, last = event.split("\n")
        if last.strip() == "[DONE]":
            read.complete, event = True, "\n".join(lines)
        values = values_of(event)
        if values is None:
            read.sure = None  # something of the answer is lost: it may not end as complete
        for value in values or []:
            if is_split(value):
                read.doubt()
            finished = form.add(read, value) or finished
        if read.complete or finished and form.ENDS_THERE:
            break
    read.complete = read.complete or finished
    if read.has_odd_call():
        read.doubt()  # a piece came twice, or not at all
    return read


def read_chat(body):
    read = reference(body)
    read.complete = read.complete and read.sure is not None
    return read


def read_responses(body):
    read = Read()
    for event in map(json.loads, (event for event in events_of(body) if event != "[DONE]")):
        if event["type"] == "response.output_text.delta":
            read.text += event["delta"]
        elif event["type"] == "response.reasoning_text.delta":
            read.thoughts += event["delta"]
        elif event["type"] == "response.output_item.done" and event["item"]["type"] == "function_call":
            read.add_call(event["output_index"], event["item"]["name"], event["item"]["arguments"])
        read.complete = read.complete or event["type"] == "response.completed"
    return read


def read_messages(body):
    read = Read()
    for event in map(json.loads, events_of(body)):
        # Its packages read no further than the last event or an error.
        read.complete = blocks.add(read, event)
        if read.complete or read.sure is None:
            break
    return read


def read_ollama(body):
    read = Read()
    for line in map(json.loads, body.decode().splitlines()):
        if "error" in line:
            read.complete = False
            return read
        read.text += line["message"]["content"]
        read.thoughts += line["message"].get("thinking") or ""
        for call in line["message"].get("tool_calls") or []:
            read.add_call(len(read.calls), call["function"]["name"], json.dumps(call["function"]["arguments"]))
        read.complete = read.complete or line["done"]
    return read


READERS = dict(zip(DIALECTS, (read_chat, read_responses, read_messages, read_ollama), strict=True))


def fault_of(dialect, sent, answer, is_sound=False, form=chunks):
    """What is wrong with an answer to a stream, or None. One that is broken may be refused, or end with an error."""
    expected = reference(sent, form)
    if answer.status != 200:
        return refusal_fault(answer, is_sound)
    try:
        read = READERS[dialect](answer.body)
    except (ValueError, KeyError, TypeError) as error:
        return f"cannot be read: {error!r}: {answer.body[-300:]!r}"
    if read.complete and not expected.complete:
        # What lacks only the empty line behind its last event may be taken as whole.
        expected = reference(sent + b"\n\n", form)
    if read.complete and not expected.complete:
        return f"is complete, but the server's answer has no end: {read.all()!r}"
    return fault_of_read(read, expected, is_sound, answer)


def refusal_fault(answer, is_sound):
    """What is wrong with an answer of an error's status to a right request, whose server may be at fault, or None."""
    if is_sound or not 500 <= answer.status < 600:
        return f"{answer.status}: {answer.body[:300]!r}"
    return verdict.fault_of(answer, verdict.HONEST)


def fault_of_read(read, expected, is_sound, answer):
    """What is wrong with what a client has, or None."""
    if read.complete and expected.sure is None:
        return f"is complete, but the server's answer is not: {read.all()!r}"
    if read.complete and expected.sure and read.all() != expected.all():
        return f"is complete with {read.all()!r} in place of {expected.all()!r}"
    if not read.complete and is_sound:
        return f"is not complete, and the server's answer is: {answer.body[-300:]!r}"
    return None


def question(dialect, model, text, is_streamed):
    """A request with this text, and a tool that the model may call."""
    function = {"name": words.TOOL, "parameters": words.SCHEMA}
    tool = {"/v1/responses": {"type": "function", **function}, "/v1/messages": {"name": words.TOOL, "input_schema": words.SCHEMA}}
    tools = [tool.get(dialect, {"type": "function", "function": function})]
    request = {"model": model, **json.loads(json.dumps(DIALECTS[dialect])), "stream": is_streamed, "tools": tools}
    if "input" in request:
        request["input"] = text
    else:
        request["messages"][0]["content"] = text
    return request


class Case(NamedTuple):
    """One request to a tier, what its server puts out, and what finds the fault of the gateway's answer."""

    model: str
    is_streamed: bool
    output: bytes
    fault_in: Callable


def play(host, stub, seed, count, case):
    """Sends `count` requests through the gateway in turn of the dialects, each the `case` of its number and dialect: what was wrong."""
    outputs = {}

    def behave(path, body):
        # The answer to the others is `404`, and the gateway asks for a chat.
        return None if path.endswith("/responses") else outputs[re.search(rb"case (\d+)!", body)[1].decode()]

    def one(number):
        dialect = list(DIALECTS)[number % len(DIALECTS)]
        model, is_streamed, output, fault_in = case(number, dialect)
        outputs[str(number)] = output
        place = f"{seed} {number}, {model}, {dialect}"
        try:
            request = question(dialect, model, f"case {number}!", is_streamed)
            answers = wire.ask(host.address, posted(dialect, written(request)), False)
        except wire.Hang:
            return f"{place}: hangs: {output!r}"
        del outputs[str(number)]
        fault = fault_in(answers[-1]) if answers else "closed without an answer"
        return fault and f"{place}: {fault}: {output!r}"

    stub.behave(behave)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [fault for fault in pool.map(one, range(count)) if fault]


def run(host, stub, seed, count):
    """Sends `count` broken streams through the gateway, to a host with `config`, of each server in turn: what was wrong."""

    def case(number, dialect):
        turn = number // len(DIALECTS)
        model, harms = list(FORMS)[turn % len(FORMS)], turn // len(FORMS) % 4
        form = FORMS[model]
        stream = made(random.Random(f"{seed} {number}"), harms, form)
        return Case(model, True, HEAD + stream, lambda answer: fault_of(dialect, stream, answer, harms == 0, form))

    return play(host, stub, seed, count, case)
