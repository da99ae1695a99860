"""Broken whole answers of two servers behind the gateway, one of OpenAI's dialect and one of Anthropic's, and what four dialects make of
them, whole and as a stream.

What must not be: an answer that counts as complete and lacks what arrived, a sound answer that does not, a failure that does not say who is
at fault, a panic, a hang."""

import json
import random
from typing import Callable, NamedTuple

import mutation
import words
from reading import Read
from streams import READERS, Case, fault_of_read, play, refusal_fault

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"


class Twice(ValueError):
    """A field that stands twice in an object: which one counts is not said."""


def text(random):
    """A text with a mark in it."""
    before, behind = ("".join(random.choices(words.TEXT, k=random.randint(1, 3))) for _ in range(2))
    return f"{before}@@{behind}"


def sound_chat(random):
    """A whole answer of OpenAI's dialect: a text, and in some thoughts or a call of a tool."""
    message = {"role": "assistant", "content": text(random)}
    if random.random() < 0.4:
        message["reasoning_content"] = text(random)
    has_call = random.random() < 0.4
    if has_call:
        arguments = json.dumps({"city": text(random)}, ensure_ascii=random.random() < 0.5)
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": {"name": words.TOOL, "arguments": arguments}}]
        message["content"] = random.choice([None, message["content"]])
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if has_call else "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def sound_message(random):
    """The same of Anthropic's dialect."""
    content = []
    if random.random() < 0.4:
        content.append({"type": "thinking", "thinking": text(random), "signature": "c2ln"})
    has_call = random.random() < 0.4
    if not has_call or random.random() < 0.5:
        content.append({"type": "text", "text": text(random)})
    if has_call:
        content.append({"type": "tool_use", "id": "call-1", "name": words.TOOL, "input": {"city": text(random)}})
    usage = {"input_tokens": 3, "output_tokens": 9}
    reason = "tool_use" if has_call else "end_turn"
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason, "usage": usage}


def made(random, harm, form):
    """The bytes of an answer: as it should be for 0, else with bytes or escapes that are no letters, cut, or with wrong values."""
    answer = form.sound(random)
    if harm == 3:
        return mutation.of_json(random, answer)
    data = json.dumps(answer, ensure_ascii=random.random() < 0.5).encode()
    data = data.replace(b"@@", random.choice(mutation.NO_LETTERS) if harm == 1 else b"")
    return data[: random.randrange(len(data))] if harm == 2 else data


def fields(pairs):
    if len(dict(pairs)) < len(pairs):
        raise Twice
    return dict(pairs)


def reference(data, form):
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
        is_odd = value.get("error") or form.add(read, value) or read.has_odd_call()
        read.sure = not is_odd and isinstance(read.text, str) and isinstance(read.thoughts, str)
    except (KeyError, TypeError, ValueError, AttributeError):
        read.sure = False
    return read


def add_chat(read, value):
    """Adds what a completion has to what was read: whether it is odd."""
    (choice,) = value["choices"]
    message = choice["message"]
    read.text, read.thoughts = ("" if part is None else part for part in (message["content"], message.get("reasoning_content")))
    calls = message.get("tool_calls") or []
    for number, call in enumerate(calls):
        read.add_call(number, call["function"]["name"], call["function"]["arguments"])
    is_odd = choice["finish_reason"] not in ("stop", "tool_calls") or choice.get("index", 0) != 0
    is_odd = is_odd or message["role"] != "assistant" or len(calls) > 1
    return is_odd or any(call["type"] != "function" or not isinstance(call["id"], str) or not call["id"] for call in calls)


def add_message(read, value):
    """Adds what a message has to what was read: whether it is odd."""
    blocks = value["content"]
    for number, block in enumerate(blocks):
        if block["type"] == "text":
            read.text += block["text"]
        elif block["type"] == "thinking":
            read.thoughts += block["thinking"]
        else:
            read.add_call(number, block["name"], json.dumps(block["input"]))
    names = [block["type"] for block in blocks]
    order = ["thinking", "text", "tool_use"]
    is_odd = value["type"] != "message" or value["role"] != "assistant" or value["stop_reason"] not in ("end_turn", "tool_use")
    is_odd = is_odd or not names or names != [name for name in order if name in names]
    return is_odd or any(name == "tool_use" and not (isinstance(block["id"], str) and block["id"]) for name, block in zip(names, blocks))


class Form(NamedTuple):
    """The dialect of a server: the path of the clients to whom its answers pass, a right answer, and what one says."""

    passes: str
    sound: Callable
    add: Callable


# The form of each tier's server.
FORMS = {
    "fast": Form("/v1/chat/completions", sound_chat, add_chat),
    "cloud": Form("/v1/messages", sound_message, add_message),
}


def read_chat(body):
    return reference(body, FORMS["fast"])


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


WHOLE = {**READERS, "/v1/chat/completions": read_chat, "/v1/responses": read_responses, "/v1/messages": read_messages}


def fault_of(dialect, sent, answer, is_streamed, is_sound=False, form=FORMS["fast"]):
    """What is wrong with what a client gets of an answer, or None. A broken one may be refused, or end with an error."""
    expected = reference(sent, form)
    if answer.status != 200:
        return refusal_fault(answer, is_sound)
    try:
        read = (READERS if is_streamed else WHOLE)[dialect](answer.body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # What is odd passes to clients of the server's own dialect.
        passes = dialect == form.passes and expected.sure is False
        return None if passes else f"cannot be read: {error!r}: {answer.body[-300:]!r}"
    return fault_of_read(read, expected, is_sound, answer)


def run(host, stub, seed, count):
    """Sends `count` broken answers through the gateway, of each server in turn: what was wrong."""

    def case(number, dialect):
        chance = random.Random(f"{seed} {number}")
        turn, is_streamed = number // len(READERS), chance.random() < 0.5
        model, harm = list(FORMS)[turn % len(FORMS)], turn // len(FORMS) % 4
        form = FORMS[model]
        answer = made(chance, harm, form)
        return Case(model, is_streamed, HEAD + answer, lambda reply: fault_of(dialect, answer, reply, is_streamed, harm == 0, form))

    return play(host, stub, seed, count, case)
