"""The chunks of a server of OpenAI's dialect."""

import words

# Behind the last event.
END = "data: [DONE]\n\n"
# What the event has that ends the answer.
LAST = '"finish_reason": "'
# Whether what comes behind that event is ignored. Here, `[DONE]` is the end.
ENDS_THERE = False
# In place of a text.
ODD = [7, {"a": "b"}, ["x"], True, None]


def chunk(delta, finish=None):
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(text):
    return chunk({"content": text})


def name(event):
    """The line before an event's data."""
    return ""


def sound(random):
    """The events of a whole answer."""
    has_thoughts, has_call = words.parts(random)
    events = [chunk({"role": "assistant", "content": ""})]
    if has_thoughts:
        events += [chunk({"reasoning_content": text}) for text in words.texts(random)]
    events += map(piece, words.texts(random))
    if has_call:
        begin, rest = words.arguments(random)
        call = {"index": 0, "id": "call-1", "type": "function", "function": {"name": words.TOOL, "arguments": begin}}
        events += [chunk({"tool_calls": [call]}), chunk({"tool_calls": [{"index": 0, "function": {"arguments": rest}}]})]
    events.append(chunk({}, "tool_calls" if has_call else "stop"))
    if random.random() < 0.5:
        events.append({**chunk({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}})
    return events


def add(read, event):
    """Adds what an event has to what was read: whether it has a reason to end."""
    if event.get("error"):
        read.sure = None
    choices = event.get("choices") or []
    for choice in choices:
        delta = choice.get("delta") or {}
        read.add("text", delta.get("content"))
        read.add("thoughts", delta.get("reasoning_content"))
        for call in delta.get("tool_calls") or []:
            function = call.get("function") or {}
            read.add_call(call.get("index", 0), function.get("name") or "", function.get("arguments") or "")
    ends = any(choice.get("finish_reason") is not None for choice in choices)
    if ends:
        read.follow("end", "")
    return ends
