"""The events of a server of Anthropic's dialect, whose answers are blocks."""

import re

import words

# Behind the last event.
END = ""
# What the event has that ends the answer.
LAST = '"message_stop"'
# Whether what comes behind that event is ignored.
ENDS_THERE = True
# In place of a text.
ODD = [7, {"a": "b"}, ["x"], True]


def delta(kind, field, value, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}}


def piece(text, index=0):
    return delta("text_delta", "text", text, index)


def name(event):
    """The line before an event's data."""
    kind = re.search(r'"type": "(\w+)"', event)
    return f"event: {kind[1]}\n" if kind else ""


def block(index, begun, pieces):
    begin = {"type": "content_block_start", "index": index, "content_block": begun}
    return [begin, *pieces, {"type": "content_block_stop", "index": index}]


def sound(random):
    """The events of a whole answer."""
    has_thoughts, has_call = words.parts(random)
    events = [{"type": "message_start", "message": {"id": "m", "model": "m", "content": [], "usage": {"input_tokens": 3}}}]
    index = 0
    if has_thoughts:
        pieces = [delta("thinking_delta", "thinking", text) for text in words.texts(random)]
        signature = delta("signature_delta", "signature", "c2ln")
        events += block(index, {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signature])
        index += 1
    events += block(index, {"type": "text", "text": ""}, [piece(text, index) for text in words.texts(random)])
    if has_call:
        index += 1
        call = {"type": "tool_use", "id": "call-1", "name": words.TOOL, "input": {}}
        events += block(index, call, [delta("input_json_delta", "partial_json", part, index) for part in words.arguments(random)])
    reason = "tool_use" if has_call else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]


def add(read, event):
    """Adds what an event has to what was read: whether it is the last."""
    kind = event.get("type")
    if kind == "error":
        read.sure = None
    if kind in ("content_block_start", "message_delta"):
        read.follow(kind, "")
    part = event.get({"content_block_start": "content_block", "content_block_delta": "delta"}.get(kind))
    if isinstance(part, dict):
        of = part.get("type")
        if of in ("text", "text_delta"):
            read.add("text", part.get("text"))
        elif of in ("thinking", "thinking_delta"):
            read.add("thoughts", part.get("thinking"))
        elif of == "tool_use":
            read.add_call(event.get("index", 0), part.get("name") or "", "")
        elif of == "input_json_delta":
            read.add_call(event.get("index", 0), "", part.get("partial_json") or "")
    return kind == "message_stop"
