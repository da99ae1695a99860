"""What llama-server answers, recorded for the engine's tests to compare with: `tests/bench/engine --record`.

It goes to tests/fixtures/llama-server.json, with the package that the peer was built from: of each test model, prompts
rendered by its template, their tokens, and greedy answers; of each template that bundle/templates fetches, prompts rendered
by it on the first test model.

An answer is kept up to the first token that is not far from a tie, by the distance between the logarithms of its two
likeliest ones, so that another CPU's rounding does not change it; one that ends there too soon is not kept.
"""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures/llama-server.json"
PORT = 18431
CONTEXT = 4096
TOKENS, FEWEST_TOKENS = 32, 4
MARGIN = 0.4
FEWEST_ANSWERS = 20

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.\nNow, or on a day.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its \"name\""},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                "unit": {"type": "string", "enum": ["C", "F"]},
            },
            "required": ["city"],
        },
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(identity, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": identity, "type": "function", "function": function}


def result(identity, content):
    return {"role": "tool", "tool_call_id": identity, "content": content}


SYSTEM = {"role": "system", "content": "Answer in one word."}
CALLED = [
    user("What is the weather in Köln?"),
    assistant(None, tool_calls=[call("call_1", "get_weather", {"city": "Köln", "days": [1, 2], "unit": "C"})]),
    result("call_1", '{"sky": "grey", "degrees": 7.5}'),
]
PARALLEL = [
    user("The weather in Oslo and in Rome?"),
    assistant(
        "I look.",
        tool_calls=[call("call_1", "get_weather", {"city": "Oslo"}), call("call_2", "get_weather", {"city": "Rome"})],
    ),
    result("call_1", "snow"),
    result("call_2", "sun"),
]
THOUGHT = [user("2 + 2?"), assistant("4", reasoning_content="Two and two.\nFour.\n"), user("And 3 + 3?")]
NOT_THINKING, THINKING = ({"chat_template_kwargs": {"enable_thinking": flag}} for flag in (False, True))
CONVERSATIONS = {
    "one user message": {"messages": [user("What is the capital of France?")]},
    "a system message": {"messages": [SYSTEM, user("Why?")]},
    "several turns": {"messages": [user("Hello!"), assistant("Hello, how can I help?"), user("  A joke.\n\nA short one.  ")]},
    "other scripts": {"messages": [user("Grüße, 世界! 🦙 <|im_end|> <end_of_turn> {{ x }}")]},
    "content in parts": {"messages": [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]},
    "one tool": {"messages": [user("What is the weather in Köln?")], "tools": [WEATHER]},
    "two tools and a system message": {"messages": [SYSTEM, user("What time is it?")], "tools": [WEATHER, TIME]},
    "no tool may be called": {"messages": [user("What time is it?")], "tools": [WEATHER, TIME], "tool_choice": "none"},
    "a tool must be called": {"messages": [user("What time is it?")], "tools": [WEATHER, TIME], "tool_choice": "required"},
    "a call and its result": {"messages": CALLED, "tools": [WEATHER]},
    "an answer from a result": {"messages": [*CALLED, assistant("Grey, 7.5 °C."), user("And now?")], "tools": [WEATHER]},
    "parallel calls": {"messages": PARALLEL, "tools": [WEATHER, TIME], "parallel_tool_calls": True},
    "a prescribed form": {
        "messages": [user("Name a city.")],
        "response_format": {"type": "json_object", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
    },
    "thinking": {"messages": [SYSTEM, user("Why?")], **THINKING},
    "reasoning in the past": {"messages": THOUGHT},
    "reasoning in the past, and thinking": {"messages": THOUGHT, **THINKING},
    "thinking before a call": {
        "messages": [CALLED[0], {**CALLED[1], "reasoning_content": "I have to look."}, CALLED[2]],
        "tools": [WEATHER],
        **THINKING,
    },
}
# Settings whose defaults differ between the two servers are set.
CONVERSATIONS = {
    name: {**NOT_THINKING, "parallel_tool_calls": False, **request} for name, request in CONVERSATIONS.items()
}

COUNTED = " ".join(str(number) for number in range(1, 330))
REFRAIN = "The wheels of the train go round and round, all along the line. " * 60
PARAGRAPH = (
    "In the north the rivers freeze in November, and the boats lie on land until the thaw. In the south they do not, and "
    "the ferries run through the winter. "
)
RECORDS = "".join(f'{{"id": {number}, "name": "item {number}", "ready": true}}\n' for number in range(1, 40))
PROMPTS = [
    "1, 2, 3, 4, 5, 6, 7, 8, 9,",
    "10, 20, 30, 40, 50, 60,",
    "2, 4, 6, 8, 10, 12, 14, 16,",
    "100, 99, 98, 97, 96, 95, 94, 93,",
    "The alphabet: A B C D E F G",
    "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, Monday, Tuesday,",
    "January, February, March, April, May, June,",
    "one two three four five six seven one two three four five six seven one two three",
    "red green blue red green blue red green blue red",
    "def add(a, b):\n    return a + b\n\ndef subtract(a, b):\n    return a - b\n\ndef multiply(a, b):\n",
    "for i in range(10):\n    print(i)\n\nfor j in range(10):\n    print(",
    "#include <stdio.h>\n\nint main(void) {\n    printf(\"Hello, world!\\n\");\n",
    "<ul>\n<li>one</li>\n<li>two</li>\n<li>three</li>\n<li>",
    "CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT);\nCREATE TABLE b (id INTEGER PRIMARY KEY, name TEXT);\nCREATE TABLE c (",
    '[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}, {"id": 4,',
    '{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f":',
    "1. one\n2. two\n3. three\n4. four\n5.",
    "a: 1\nb: 2\nc: 3\nd: 4\ne:",
    "| n | square |\n|---|---|\n| 1 | 1 |\n| 2 | 4 |\n| 3 | 9 |\n| 4 |",
    "eins, zwei, drei, vier, fünf, eins, zwei, drei, vier, fünf, eins, zwei,",
    "один, два, три, один, два, три, один, два, три, один,",
    "一、二、三、四、五、一、二、三、四、五、一、二、三、",
    "🍎🍐🍊🍎🍐🍊🍎🍐🍊🍎",
    "α β γ δ α β γ δ α β γ δ α β",
    "abcabcabcabcabcabc",
    "Paris is the capital of France. Berlin is the capital of Germany. Rome is the capital of",
    "To be, or not to be, that is the",
    "Our Father, who art in heaven, hallowed be thy",
    "Twinkle, twinkle, little star,",
    "Question: What is 2 + 2?\nAnswer: 4\n\nQuestion: What is 3 + 3?\nAnswer: 6\n\nQuestion: What is 4 + 4?\nAnswer:",
    "2025-01-01\n2025-01-02\n2025-01-03\n2025-01-04\n",
    "http://a.example/1\nhttp://a.example/2\nhttp://a.example/3\nhttp://a.example/",
    # Longer than a batch, and than a sliding window.
    COUNTED,
    REFRAIN,
    PARAGRAPH * 20,
    RECORDS,
    (PARAGRAPH + "\n") * 12 + REFRAIN,
]
CHATS = [
    [user("What is the capital of France?")],
    [user("Say: hello hello hello hello")],
    [user("Count from 1 to 10.")],
    [user("Repeat this: red green blue"), assistant("red green blue"), user("Repeat this: one two three")],
    [user(PARAGRAPH * 18 + "\n\nWhat do the rivers do in the north?")],
]


class Peer:
    """llama-server, while the block runs."""

    def __init__(self, program, model, *options):
        self.command = [program, "-m", str(model), "--port", str(PORT), "-c", str(CONTEXT), "-np", "1", "-t", "1", "--no-webui"]
        self.command += options

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"llama-server ended with {self.process.returncode}: {' '.join(self.command)}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
                return self
            except OSError:
                time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def call(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode())
        return json.load(urllib.request.urlopen(request, timeout=300))

    def rendered(self, request):
        return self.call("/apply-template", request)["prompt"]

    def tokens(self, text):
        return self.call("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]

    def completion(self, prompt, tokens):
        request = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "n_probs": 2, "cache_prompt": False}
        return self.call("/completion", request)


def margins(answer):
    for token in answer["completion_probabilities"]:
        best, second = sorted((entry["logprob"] for entry in token["top_logprobs"]), reverse=True)
        yield best - second


def greedy(peer, prompt):
    """The start of the answer that is far from a tie; None if it is too short."""
    answer = peer.completion(prompt, TOKENS)
    far = list(margins(answer))
    kept = next((at for at, margin in enumerate(far) if margin < MARGIN), len(far))
    if kept < FEWEST_TOKENS:
        return None
    if kept < len(far):
        answer = peer.completion(prompt, kept)
    margin = round(min(far[:kept]), 3)
    return {"text": answer["content"], "tokens": answer["tokens_predicted"], "margin": margin}


def record_model(program, model):
    with Peer(program, model) as peer:
        plain = {name: request for name, request in CONVERSATIONS.items() if "tools" not in request}
        templates = {}
        for name, request in plain.items():
            prompt = peer.rendered(request)
            templates[name] = {"prompt": prompt, "tokens": peer.tokens(prompt)}
        prompts = PROMPTS + [peer.rendered({"messages": messages, **NOT_THINKING}) for messages in CHATS]
        # Both would add the token that begins a text.
        prompts = [prompt.removeprefix("<bos>") for prompt in prompts]
        completions = {}
        for prompt in prompts:
            answer = greedy(peer, prompt)
            print(f"  {prompt[-20:]!r}: {answer['text'] if answer else 'too near a tie'!r}", file=sys.stderr, flush=True)
            if answer:
                completions[prompt] = answer
        print(f"{model.stem}: {len(completions)} answers of {len(prompts)} prompts", file=sys.stderr, flush=True)
        if len(completions) < FEWEST_ANSWERS:
            raise SystemExit(f"{FEWEST_ANSWERS} are wanted: add prompts whose answers are far from a tie.")
        return {"templates": templates, "completions": completions}


def record_template(program, model, template):
    with Peer(program, model, "--jinja", "--chat-template-file", str(template)) as peer:
        rendered = {}
        for name, request in CONVERSATIONS.items():
            try:
                rendered[name] = peer.rendered(request)
            except urllib.error.HTTPError as error:
                raise SystemExit(f"{template.name}: {name}: {error.read().decode()}") from None
        return rendered


def record(program, package, models, templates):
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stderr.splitlines()[0].removeprefix("version: ")
    recorded = {
        "package": package,
        "version": version,
        "conversations": CONVERSATIONS,
        "models": {model.name: record_model(program, model) for model in models},
        "templates": {path.name: record_template(program, models[0], path) for path in sorted(templates.glob("*.jinja"))},
    }
    text = json.dumps(recorded, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[\s\d,-]+\]", lambda tokens: re.sub(r"\s+", " ", tokens.group()), text)
    FIXTURE.write_text(text + "\n")
