"""Broken whole answers of a server behind the gateway, and what four dialects make of them, whole and as a stream.

What must not be: an answer that counts as complete and lacks what arrived, a sound answer that does not, a failure that does not say who is
at fault, a panic, a hang."""

import json
import random

import mutation
import words
from reading import Read
from streams import READERS, Case, fault_of_read, play, refusal_fault

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"


class Twice(ValueError):
    """A field that stands twice in an object: which one counts is not said."""


def sound(random):
    """A whole answer: a text, and in some thoughts or a call of a tool. Each has a mark in it."""

    def text():
        before, behind = ("".join(random.choices(words.TEXT, k=random.randint(1, 3))) for _ in range(2))
        return f"{before}@@{behind}"

    message = {"role": "assistant", "content": text()}
    if random.random() < 0.4:
        message["reasoning_content"] = text()
    has_call = random.random() < 0.4
    if has_call:
        arguments = json.dumps({"city": text()}, ensure_ascii=random.random() < 0.5)
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": {"name": words.TOOL, "arguments": arguments}}]
        message["content"] = random.choice([None, message["content"]])
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if has_call else "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def made(random, harm):
    """The bytes of an answer: as it should be for 0, else with bytes or escapes that are no letters, cut, or with wrong values."""
    answer = sound(random)
    if harm == 3:
        return mutation.of_json(random, answer)
    data = json.dumps(answer, ensure_ascii=random.random() < 0.5).encode()
    data = data.replace(b"@@", random.choice(mutation.NO_LETTERS) if harm == 1 else b"")
    return data[: random.randrange(len(data))] if harm == 2 else data


def fields(pairs):
    if len(dict(pairs)) < len(pairs):
        raise Twice
    return dict(pairs)


def reference(data):
    """What an answer says, read by a program that is patient with its letters and not with its form."""
    read = Read(complete=True)
    try:
        value = json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"), object_pairs_hook=fields)
    except (Twice, RecursionError):
        read.sure = False
        return read
    except ValueError:
        read.complete, read.sure = False, None
        return read
    try:
        (choice,) = value["choices"]
        message = choice["message"]
        read.text, read.thoughts = ("" if part is None else part for part in (message["content"], message.get("reasoning_content")))
        calls = message.get("tool_calls") or []
        for number, call in enumerate(calls):
            read.add_call(number, call["function"]["name"], call["function"]["arguments"])
        is_odd = value.get("error") or choice["finish_reason"] not in ("stop", "tool_calls") or choice.get("index", 0) != 0
        is_odd = is_odd or message["role"] != "assistant" or len(calls) > 1
        is_odd = is_odd or any(call["type"] != "function" or not isinstance(call["id"], str) or not call["id"] for call in calls)
        is_odd = is_odd or read.has_odd_call()
        read.sure = not is_odd and isinstance(read.text, str) and isinstance(read.thoughts, str)
    except (KeyError, TypeError, ValueError, AttributeError):
        read.sure = False
    return read


def read_responses(body):
    value = json.loads(body)
    read = Read(complete=value["status"] == "completed")
    for number, item in enumerate(value["output"]):
        if item["type"] == "message":
            read.text += "".join(part["text"] for part in item["content"])
        elif item["type"] == "reasoning":
            read.thoughts += "".join(part["text"] for part in item["content"])
        elif item["type"] == "function_call":
            read.add_call(number, item["name"], item["arguments"])
    return read


def read_messages(body):
    value = json.loads(body)
    read = Read(complete=value["type"] == "message")
    for number, block in enumerate(value["content"]):
        read.text += block.get("text", "")
        read.thoughts += block.get("thinking", "")
        if block["type"] == "tool_use":
            read.add_call(number, block["name"], json.dumps(block["input"]))
    return read


WHOLE = {**READERS, "/v1/chat/completions": reference, "/v1/responses": read_responses, "/v1/messages": read_messages}


def fault_of(dialect, sent, answer, is_streamed, is_sound=False):
    """What is wrong with what a client gets of an answer, or None. A broken one may be refused, or end with an error."""
    expected = reference(sent)
    if answer.status != 200:
        return refusal_fault(answer, is_sound)
    try:
        read = (READERS if is_streamed else WHOLE)[dialect](answer.body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # What is odd in OpenAI's dialect passes to clients of that dialect.
        passes = dialect == "/v1/chat/completions" and expected.sure is False
        return None if passes else f"cannot be read: {error!r}: {answer.body[-300:]!r}"
    return fault_of_read(read, expected, is_sound, answer)


def run(host, stub, seed, count):
    """Sends `count` broken answers through the gateway: what was wrong."""

    def case(number, dialect):
        chance = random.Random(f"{seed} {number}")
        harm, is_streamed = number // len(READERS) % 4, chance.random() < 0.5
        answer = made(chance, harm)
        return Case("fast", is_streamed, HEAD + answer, lambda reply: fault_of(dialect, answer, reply, is_streamed, harm == 0))

    return play(host, stub, seed, count, case)
