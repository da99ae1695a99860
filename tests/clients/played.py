"""A server of OpenAI's dialect with a scripted model that calls tools, thinks and sees images."""

import base64
import dataclasses
import http.server
import itertools
import json
import re
import threading
import unittest

from host import Host

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 12,
    "total_tokens": 32,
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
# The fields that such servers accept in a chat: strict ones refuse all others. This one also knows our fields for thinking.
FIELDS = set(
    "model messages stream stream_options tools tool_choice parallel_tool_calls response_format reasoning_effort"
    " temperature top_p max_tokens max_completion_tokens stop seed n logprobs top_logprobs presence_penalty"
    " frequency_penalty user metadata store verbosity think thinking_budget_tokens chat_template_kwargs dry_multiplier"
    " dry_allowed_length dry_penalty_last_n".split()
)
# One red pixel.
PNG_BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
PNG = base64.b64decode(PNG_BASE64)
PNG_URI = f"data:image/png;base64,{PNG_BASE64}"


@dataclasses.dataclass(frozen=True)
class Answer:
    text: str = ""
    thought: str = ""
    # A tool's name and its arguments, of each.
    calls: tuple = ()
    # Interleaves the pieces of calls, as some servers do.
    mixed: bool = False

    @property
    def finish(self):
        return "tool_calls" if self.calls else "stop"

    def message(self):
        message = {"role": "assistant", "content": self.text or None}
        if self.thought:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (name, arguments) in enumerate(self.calls)
            ]
        return message

    def deltas(self):
        """The message in pieces."""
        message = self.message()
        # Some servers send every field of a message each time.
        yield {"role": "assistant", "content": "" if self.text else None, "tool_calls": None}
        for key in ("reasoning_content", "content"):
            for piece in re.findall(r"\S+\s*", message.get(key) or ""):
                yield {key: piece}
        streams = [self.pieces(index, call) for index, call in enumerate(message.get("tool_calls", []))]
        if self.mixed:
            pieces = (piece for turn in itertools.zip_longest(*streams) for piece in turn if piece)
        else:
            pieces = itertools.chain(*streams)
        for piece in pieces:
            yield {"tool_calls": [piece]}

    def pieces(self, index, call):
        function = call["function"]
        yield {**call, "index": index, "function": {**function, "arguments": ""}}
        for piece in re.findall(".{1,5}", function["arguments"]):
            yield {"index": index, "function": {"arguments": piece}}


@dataclasses.dataclass(frozen=True)
class Refusal:
    status: int
    message: str
    headers: tuple = ()


class Cloud(http.server.ThreadingHTTPServer):
    """Returns scripted answers in order, or always the same one. `requests` are those it received."""

    daemon_threads = True

    def __init__(self, always=None):
        super().__init__(("127.0.0.1", 0), Chat)
        self.always = always
        self.play()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def play(self, *answers):
        self.script, self.requests, self.faults = list(answers), [], []

    def next(self, request):
        if fault := wrong(request):
            self.faults.append(fault)
            return Refusal(400, fault)
        self.requests.append(request)
        if self.always:
            return self.always
        if not self.script:
            self.faults.append("more requests came than the script has answers")
            return Refusal(400, self.faults[-1])
        return self.script.pop(0)

    def stop(self):
        self.shutdown()
        self.server_close()


def wrong(request):
    """What such a server would refuse, as a sentence."""
    if unknown := request.keys() - FIELDS:
        return f"unknown fields: {sorted(unknown)}"
    if "stream_options" in request and not request.get("stream"):
        return "stream_options without stream"
    for tool in request.get("tools", []):
        if tool.get("type") != "function" or not tool.get("function", {}).get("name"):
            return f"no function: {tool}"
    if "tool_choice" in request and not request.get("tools"):
        return "tool_choice without tools"
    called = []
    for message in request["messages"]:
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in called:
                return f"{message} answers none of {called}"
            called.remove(message["tool_call_id"])
        elif called:
            return f"a message of the {role} while {called} are not answered"
        for call in message.get("tool_calls") or []:
            if role != "assistant" or call.get("type") != "function":
                return f"no call: {call}"
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return f"arguments are no object: {call}"
            called.append(call["id"])
        content = message.get("content")
        if not (isinstance(content, (str, list)) or message.get("tool_calls")):
            return f"no content: {message}"
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "image_url":
                kind, data = part["image_url"]["url"].split(",")
                if kind != "data:image/png;base64" or base64.b64decode(data, validate=True) != PNG:
                    return f"not the image: {part}"
            elif part.get("type") != "text" or not isinstance(part.get("text"), str):
                return f"no part: {part}"
    return f"{called} are not answered" if called else None


class Chat(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self.answer(json.dumps({"error": {"message": f"no {self.path}"}}), status=404)
        answer = self.server.next(request)
        if isinstance(answer, Refusal):
            error = {"error": {"message": answer.message, "type": "played", "code": None}}
            return self.answer(json.dumps(error), status=answer.status, headers=answer.headers)
        common = {"id": "chatcmpl-1", "created": 1, "model": "played"}
        if not request.get("stream"):
            choice = {"index": 0, "message": answer.message(), "finish_reason": answer.finish}
            return self.answer(json.dumps({**common, "object": "chat.completion", "choices": [choice], "usage": USAGE}))
        empty = {"index": 0, "finish_reason": None, "logprobs": None}
        chunks = [{"choices": [{**empty, "delta": delta}]} for delta in answer.deltas()]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish}]})
        if request.get("stream_options", {}).get("include_usage"):
            chunks = [{**chunk, "usage": None} for chunk in chunks] + [{"choices": [], "usage": USAGE}]
        common["object"] = "chat.completion.chunk"
        events = [json.dumps({**common, **chunk}) for chunk in chunks] + ["[DONE]"]
        self.answer("".join(f"data: {event}\n\n" for event in events), "text/event-stream")

    def answer(self, body, kind="application/json", status=200, headers=()):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def tier(name, cloud):
    """Its words in a configuration."""
    return f'[tiers.{name}]\nmodel = "played"\nengine = {{ endpoint = "{cloud.url}" }}\n'


LOOKS = Answer(thought="I should look.", calls=(("look", {"at": "Paris"}), ("look", {"at": "Rome"})))
MIXED = dataclasses.replace(LOOKS, mixed=True)
SEEN = Answer(text="I saw Paris by night and Rome by night.", thought="Both are dark.")
PARAMETERS = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}


class Able(unittest.TestCase):
    """A host with a scripted cloud as its tier `cloud`. Each test sets the script, and must use all of it."""

    config = ""

    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud()
        cls.addClassCleanup(cls.cloud.stop)
        cls.host = Host(tier("cloud", cls.cloud) + cls.config)
        cls.addClassCleanup(cls.host.stop)

    def setUp(self):
        self.cloud.play()

    def tearDown(self):
        self.assertEqual(self.cloud.faults, [])
        self.assertEqual(self.cloud.script, [])

    @property
    def last(self):
        return self.cloud.requests[-1]

    def check_round(self, thought=LOOKS.thought):
        """Checks that the second request has the reasoning and calls of the first answer, and their results."""
        messages = self.last["messages"]
        self.assertEqual([message["role"] for message in messages], ["user", "assistant", "tool", "tool"])
        self.assertEqual(messages[1].get("reasoning_content"), thought)
        calls = [call["function"] for call in messages[1]["tool_calls"]]
        self.assertEqual([(call["name"], json.loads(call["arguments"])) for call in calls], list(LOOKS.calls))
        self.assertEqual([message["content"] for message in messages[2:]], ["Paris by night", "Rome by night"])
        # Each names the call whose result it is.
        self.assertEqual(
            [message["tool_call_id"] for message in messages[2:]], [call["id"] for call in messages[1]["tool_calls"]]
        )
        for request in self.cloud.requests:
            self.assertEqual([tool["function"]["name"] for tool in request["tools"]], ["look"])
