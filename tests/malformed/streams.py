"""Broken streams of a server behind the gateway, and what four dialects make of them, beside a slow reader that follows the standards.

What must not be: an answer that ends as complete and lacks text that arrived, a sound stream that does not end so, a panic, a hang."""

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import wire
from corpus import posted, written

AT_ONCE = 8
TEXT = ["Grüße", " aus", " München", " 👩‍👩‍👧", " 会议", " 𠮷野家", "\n\n", "```json\n{\"a\": 1}\n```", " e\u0301", " data: x", " end."]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
DIALECTS = {
    "/v1/chat/completions": {"model": "fast", "stream": True, "messages": [{"role": "user", "content": ""}]},
    "/v1/responses": {"model": "fast", "stream": True, "input": ""},
    "/v1/messages": {"model": "fast", "stream": True, "max_tokens": 99, "messages": [{"role": "user", "content": ""}]},
    "/api/chat": {"model": "fast", "stream": True, "messages": [{"role": "user", "content": ""}]},
}


def chunk(delta, finish=None):
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def sound(random):
    """The events of a whole answer, each as the text of its JSON."""
    pieces = [random.choice(TEXT) for _ in range(random.randint(1, 12))]
    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces), chunk({}, "stop")]
    if random.random() < 0.5:
        events.append({**chunk({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}})
    return [json.dumps(event, ensure_ascii=random.random() < 0.5) for event in events]


def made(random, harms):
    """A stream's bytes with so many things wrong with it, or odd."""
    events = sound(random)
    end, line, before = "data: [DONE]\n\n", "\n", b""
    kinds = [random.randrange(17) for _ in range(harms)]
    late = []
    for kind in kinds:
        at = random.randrange(1, len(events))
        if kind == 0:
            before = b"\xef\xbb\xbf"
        elif kind == 1:  # a pair of surrogates over two events
            events[at:at] = [json.dumps(chunk({"content": half})) for half in ("\ud83d", "\ude00")]
        elif kind == 2:  # half a pair
            events.insert(at, json.dumps(chunk({"content": random.choice(["a\ud83d", "\ude00b", "\ud800"])})))
        elif kind == 3:  # one event in several lines
            events[at] = re.sub(r"([,{]) ?(?=\")", r"\1\ndata: ", events[at], count=random.randint(1, 3))
        elif kind == 4:
            events.insert(at, random.choice(["null", "", " ", "{}", '{"choices": []}', '{"choices": null}', '{"id": "x"}']))
        elif kind == 5:
            events.insert(at, f"x\n: a comment\nevent: ping\nid: 7\nretry: 10\n\ndata: {events.pop(at)}" if random.random() < 0.2 else events.pop(at))
        elif kind == 6:
            line = random.choice(["\r\n", "\r"])
        elif kind == 7:
            late.append(lambda data: data.replace("ü".encode(), b"\xfc", 1))
        elif kind == 8:
            where = random.random()
            late.append(lambda data, where=where: data[: int(len(data) * where)])
        elif kind == 9:  # JSON that ends too early
            events[at] = events[at][: random.randrange(1, len(events[at]))]
        elif kind == 10:
            end = ""
        elif kind == 11:
            events = [event for event in events if '"stop"' not in event]
        elif kind == 12:
            events.insert(at, json.dumps(chunk({"content": random.choice([7, {"a": "b"}, ["x"], True, None])})))
        elif kind == 13:
            events[at] = events[at].replace('"index": 0, ', "")
        elif kind == 14:
            events.insert(at, json.dumps({"error": {"message": "out of memory", "code": 500}}))
        elif kind == 15:
            where, bad = random.random(), random.choice([b"\xff", b"\xc3", b"\xf0\x9f", b"\x00"])
            late.append(lambda data, where=where, bad=bad: data[: int(len(data) * where)] + bad + data[int(len(data) * where) :])
        else:
            events.insert(at, events[at])
    space = random.choice(["", " "])
    data = "".join(f"data:{space}{event}\n\n" for event in events) + end
    data = before + data.replace("\n", line).encode("utf-8", "surrogatepass")
    for harm in late:
        data = harm(data)
    return data


def events_of(data):
    """The data of each event, by the rules of server-sent events; an unfinished one is none."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    found, lines = [], []
    for line in re.split(r"\r\n|\r|\n", text):
        if line == "":
            if lines:
                found.append("\n".join(lines))
            lines = []
        elif line == "data" or line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
    return found


def joined(text):
    """With surrogates made whole letters, and lone ones replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Read:
    """What a client has of an answer: its text, and whether it was told that this is all; `sure` if there is no doubt about the text."""

    def __init__(self, text="", complete=False, sure=True):
        self.text, self.complete, self.sure = text, complete, sure


def reference(data):
    """What the server's stream says, read slowly."""
    read, finished = Read(), False
    for event in events_of(data):
        if event.strip() == "[DONE]":
            read.complete = True
            break
        if not event.strip():
            continue
        try:
            value = json.loads(event)
        except ValueError:
            if "{" in event:
                read.sure = None  # something of the answer is lost: it may not end as complete
            continue
        if not isinstance(value, dict):
            continue
        if value.get("error"):
            read.sure = None
        for choice in value.get("choices") or []:
            content = (choice.get("delta") or {}).get("content")
            if isinstance(content, str):
                read.text += content
            elif content is not None and read.sure:
                read.sure = False  # it may be mended or refused
            finished = finished or choice.get("finish_reason") is not None
    read.complete = read.complete or finished
    read.text = joined(read.text)
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
        read.complete = read.complete or event["type"] == "response.completed"
    return read


def read_messages(body):
    read, failed = Read(), False
    for event in map(json.loads, events_of(body)):
        if event["type"] == "content_block_delta":
            read.text += event["delta"].get("text", "")
        failed = failed or event["type"] == "error"
        read.complete = event["type"] == "message_stop" or read.complete
    read.complete = read.complete and not failed
    return read


def read_ollama(body):
    read = Read()
    for line in map(json.loads, body.decode().splitlines()):
        if "error" in line:
            return Read(read.text)
        read.text += line["message"]["content"]
        read.complete = read.complete or line["done"]
    return read


READERS = dict(zip(DIALECTS, (read_chat, read_responses, read_messages, read_ollama), strict=True))


def fault_of(dialect, sent, answer, is_sound=False):
    """What is wrong with an answer to a stream, or None. One that is broken may be refused, or end with an error."""
    expected = reference(sent)
    if answer.status != 200:
        return None if 500 <= answer.status < 600 and not is_sound else f"{answer.status}: {answer.body[:300]!r}"
    try:
        read = READERS[dialect](answer.body)
    except (ValueError, KeyError, TypeError) as error:
        return f"cannot be read: {error!r}: {answer.body[-300:]!r}"
    text = joined(read.text)
    if read.complete and expected.sure is None:
        return f"is complete, but the server's answer is not: {text!r}"
    if read.complete and not expected.complete:
        return f"is complete, but the server's answer has no end: {text!r}"
    if read.complete and expected.sure and text != expected.text:
        return f"is complete with {text!r} in place of {expected.text!r}"
    if not read.complete and is_sound:
        return f"is not complete, and the server's answer is: {answer.body[-300:]!r}"
    return None


def run(host, stub, seed, count):
    """Sends `count` broken streams through the gateway in turn of the dialects: what was wrong."""
    streams = {}

    def behave(path, body):
        # The answer to the others is `404`, and the gateway asks for a chat.
        return None if path.endswith("/responses") else HEAD + streams[re.search(rb"stream (\d+)!", body)[1].decode()]

    def one(number):
        dialect = list(DIALECTS)[number % len(DIALECTS)]
        harms = number // len(DIALECTS) % 4
        stream = made(random.Random(f"{seed} {number}"), harms)
        streams[str(number)] = stream
        request = json.loads(json.dumps(DIALECTS[dialect]))
        asked = f"stream {number}!"
        if "input" in request:
            request["input"] = asked
        else:
            request["messages"][0]["content"] = asked
        try:
            answers = wire.ask(host.address, posted(dialect, written(request)), False)
        except wire.Hang:
            return f"{seed} {number}, {dialect}: hangs: {stream!r}"
        del streams[str(number)]
        fault = fault_of(dialect, stream, answers[-1], harms == 0) if answers else "closed without an answer"
        return fault and f"{seed} {number}, {dialect}: {fault}: {stream!r}"

    stub.behave(behave)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [fault for fault in pool.map(one, range(count)) if fault]
