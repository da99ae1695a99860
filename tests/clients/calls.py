"""Forced tool calls in each dialect: requests, and what their answers call."""

import itertools
import json
import urllib.error
import urllib.request

import jsonschema
from gguf import write_with_text
from host import HANG_SECONDS, ROOT, Host, starter

TEMPLATE_KEY = "tokenizer.chat_template"
UNIT = {"enum": ["celsius", "fahrenheit"]}
# What a small model would not keep to by itself.
SCHEMAS = {
    "get_forecast": {
        "type": "object",
        "properties": {"unit": UNIT, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
        "required": ["unit", "days"],
        "additionalProperties": False,
    },
    "set-alarm": {
        "type": "object",
        "properties": {
            "days": {"type": "array", "items": {"enum": ["Mon", "Tue", "Wed"]}, "minItems": 1, "maxItems": 2},
            "label": {"type": "string", "maxLength": 12},
        },
        "required": ["days"],
        "additionalProperties": False,
    },
    "send": {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/person"}, "urgent": {"type": "boolean"}},
        "required": ["to", "urgent"],
        "additionalProperties": False,
        "$defs": {
            "person": {
                "type": "object",
                "properties": {"id": {"type": "string", "pattern": "^[a-c]{2}$"}, "team": {"enum": ["red", None]}},
                "required": ["id", "team"],
                "additionalProperties": False,
            }
        },
    },
}
QUESTION = "Plan my week: the weather, an alarm, a message."
THINKING_TOKENS = 8
ANSWER_TOKENS = 300
# Free to go on calling, a small model does.
CALLING_TOKENS = 150
# The starter model, or another one, as tiers, and their templates: its own, which knows neither tools nor thinking, one that knows both,
# and one that knows thinking alone.
TEMPLATES = {"generic": None, "native": "tools.jinja", "thinker": "thinking.jinja"}


class Models:
    """A host with these tiers."""

    config = "".join(f'[tiers.{tier}]\nmodel = "{tier}.gguf"\ncontext = 2048\n' for tier in TEMPLATES)

    def __init__(self, model=None):
        model = model or starter()
        self.host = Host(self.config)
        for tier, template in TEMPLATES.items():
            path = self.host.home / "models" / f"{tier}.gguf"
            if template is None:
                path.symlink_to(model)
            else:
                text = (ROOT / "tests/fixtures" / template).read_text().rstrip()
                write_with_text(model, path, TEMPLATE_KEY, text)
        self.url = self.host.url

    def stop(self):
        self.host.stop()


def most_tokens(parallel, thinks):
    return CALLING_TOKENS if parallel and not thinks else ANSWER_TOKENS


def post(url, body):
    """The status, and the body's lines."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def events(text):
    lines = (line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if line != "[DONE]"]


class Chat:
    path = "/v1/chat/completions"

    def request(self, names, choice, parallel, thinks):
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMAS[name]}} for name in names]
        if choice in SCHEMAS:
            choice = {"type": "function", "function": {"name": choice}}
        request = {"tools": tools, "tool_choice": choice, "max_tokens": most_tokens(parallel, thinks)}
        request |= {} if parallel is None else {"parallel_tool_calls": parallel}
        request["messages"] = [{"role": "user", "content": QUESTION}]
        if thinks:
            request |= {"think": True, "thinking_budget_tokens": THINKING_TOKENS}
        return request

    def whole(self, text):
        choice = json.loads(text)["choices"][0]
        message = choice["message"]
        assert not message["content"], message
        calls = [call["function"] for call in message.get("tool_calls") or []]
        thought = message.get("reasoning_content")
        return [(call["name"], call["arguments"]) for call in calls], choice["finish_reason"], thought

    def streamed(self, text):
        calls, finish, thought = {}, None, ""
        for chunk in events(text):
            for choice in chunk["choices"]:
                assert not choice["delta"].get("content"), choice
                thought += choice["delta"].get("reasoning_content") or ""
                for piece in choice["delta"].get("tool_calls") or []:
                    call = calls.setdefault(piece["index"], ["", ""])
                    call[0] += piece["function"].get("name") or ""
                    call[1] += piece["function"].get("arguments") or ""
                finish = choice["finish_reason"] or finish
        return [tuple(call) for call in calls.values()], finish, thought

    finished, cut = "tool_calls", "length"


class Responses:
    path = "/v1/responses"

    def request(self, names, choice, parallel, thinks):
        tools = [{"type": "function", "name": name, "parameters": SCHEMAS[name]} for name in names]
        if choice in SCHEMAS:
            choice = {"type": "function", "name": choice}
        request = {"tools": tools, "tool_choice": choice, "input": QUESTION}
        request |= {} if parallel is None else {"parallel_tool_calls": parallel}
        request["max_output_tokens"] = most_tokens(parallel, thinks)
        if thinks:
            request |= {"reasoning": {"effort": "low"}, "thinking_budget_tokens": THINKING_TOKENS}
        return request

    def whole(self, text):
        return self.read(json.loads(text))

    def streamed(self, text):
        last = events(text)[-1]
        return self.read(last["response"])

    def read(self, response):
        output = response["output"]
        assert not any(item["type"] == "message" for item in output), output
        calls = [(item["name"], item["arguments"]) for item in output if item["type"] == "function_call"]
        thought = any(item["type"] == "reasoning" for item in output)
        return calls, response["status"], thought

    finished, cut = "completed", "incomplete"


class Messages:
    path = "/v1/messages"

    def request(self, names, choice, parallel, thinks):
        tools = [{"name": name, "input_schema": SCHEMAS[name]} for name in names]
        choice = {"type": "tool", "name": choice} if choice in SCHEMAS else {"type": {"required": "any"}.get(choice, choice)}
        choice |= {} if parallel is None else {"disable_parallel_tool_use": not parallel}
        request = {"tools": tools, "tool_choice": choice, "max_tokens": most_tokens(parallel, thinks)}
        request["messages"] = [{"role": "user", "content": QUESTION}]
        if thinks:
            request["thinking"] = {"type": "enabled", "budget_tokens": THINKING_TOKENS}
        return request

    def whole(self, text):
        message = json.loads(text)
        assert not any(block["type"] == "text" for block in message["content"]), message
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        thought = any(block["type"] == "thinking" for block in message["content"])
        return [(call["name"], json.dumps(call["input"])) for call in calls], message["stop_reason"], thought

    def streamed(self, text):
        calls, finish, thought = {}, None, False
        for event in events(text):
            if event["type"] == "content_block_start":
                kind = event["content_block"]["type"]
                assert kind != "text", event
                thought = thought or kind == "thinking"
                if kind == "tool_use":
                    calls[event["index"]] = [event["content_block"]["name"], ""]
            elif event["type"] == "content_block_delta" and event["index"] in calls:
                calls[event["index"]][1] += event["delta"]["partial_json"]
            elif event["type"] == "message_delta":
                finish = event["delta"]["stop_reason"]
        return [tuple(call) for call in calls.values()], finish, thought

    finished, cut = "tool_use", "max_tokens"


class Ollama:
    path = "/api/chat"

    def request(self, names, choice, parallel, thinks):
        request = Chat().request(names, choice, parallel, False)
        del request["max_tokens"]
        request["options"] = {"num_predict": most_tokens(parallel, thinks)}
        if thinks:
            # Ollama has no budget for thoughts: the model has seen short ones.
            call = {"function": {"name": names[0], "arguments": {}}}
            seen = {"role": "assistant", "content": "", "thinking": "I should call.", "tool_calls": [call]}
            question = request["messages"][0]
            request |= {"think": True, "messages": [question, seen, question, seen, question]}
            request["options"]["temperature"] = 0.2
        return request

    def whole(self, text):
        return self.read([json.loads(text)])

    def streamed(self, text):
        return self.read([json.loads(line) for line in text.splitlines()])

    def read(self, lines):
        calls, thought, text = [], "", ""
        for line in lines:
            message = line["message"]
            text += message["content"]
            thought += message.get("thinking") or ""
            calls += [call["function"] for call in message.get("tool_calls") or []]
        finish = lines[-1]["done_reason"]
        calls = [(call["name"], json.dumps(call["arguments"])) for call in calls]
        # A call that was cut off is text.
        calls += [("", text)] if text and finish == self.cut else []
        assert not text or finish == self.cut, text
        return calls, finish, thought

    finished, cut = "stop", "length"


DIALECTS = {"chat": Chat(), "responses": Responses(), "messages": Messages(), "ollama": Ollama()}
# A tier, and whether its model thinks.
FORMS = {
    "native": ("native", False),
    "generic": ("generic", False),
    "native-thinking": ("native", True),
    "generic-thinking": ("thinker", True),
}


def seed(request, dialect, number):
    """Other numbers are other answers."""
    seeded = request.setdefault("options", {}) if isinstance(dialect, Ollama) else request
    seeded |= {"seed": number, "temperature": seeded.get("temperature", 1)}


def ask(url, dialect, form, stream, number, strict=False):
    """What is wrong with the answer to one forced call; nothing if it is valid."""
    dialect, (tier, thinks) = DIALECTS[dialect], FORMS[form]
    names = list(SCHEMAS)
    # All of them, or one by its name; one call, or several.
    choices = list(itertools.product([*names, "required"], [None, False, True]))
    choice, parallel = choices[number % len(choices)]
    request = dialect.request(names, choice, parallel, thinks)
    request |= {"model": tier, "stream": stream}
    if strict:
        for tool in request["tools"]:
            tool.get("function", tool)["strict"] = True
    seed(request, dialect, number)
    status, text = post(url + dialect.path, request)
    if status != 200:
        return f"{status}: {text}"
    try:
        calls, finish, thought = dialect.streamed(text) if stream else dialect.whole(text)
        if finish == dialect.cut and parallel:
            # Free to go on calling, a small model does, until its tokens end within a call.
            calls = calls[:-1]
        elif finish != dialect.finished:
            return f"it ended with {finish}: {calls}"
        if thinks and not thought:
            return "no thoughts"
        if not calls or (len(calls) > 1 and not parallel):
            return f"{len(calls)} calls"
        for name, arguments in calls:
            if choice not in ("required", name):
                return f"{name} was called"
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
    except (AssertionError, ValueError, KeyError, jsonschema.ValidationError) as error:
        return f"{type(error).__name__}: {error}: {text[-2000:]}"
    return None
