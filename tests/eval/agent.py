"""What a model does as an agent: which tool it takes first, and which of the tasks it solves, in both ways of saying it."""

import http.server
import json
import re
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

import agent_tasks
from host import Subject, lines, share, table

WAYS = {"calls": "tool calls", "text": "one word, one line"}
WORDS = ["search", "shell", "files", "documents", "chat"]
WORD_OF_TOOL = {
    "run_command": "shell", "read_file": "files", "list_files": "files", "write_file": "files", "edit_file": "files",
    "search_web": "search", "read_page": "search", "search_documents": "documents"}
# Nobody is asked: a turn ends with its first question.
NOBODY = "http://127.0.0.1:9"
# A task may take this long, and a model that talks instead of acting this many characters.
TASK_SECONDS, TALK = 120, 600
SILENT_SECONDS = 300


class Turn:
    """One turn of a new chat, with its events."""

    def __init__(self, host, text, agent):
        self.host = host
        chat, _ = host.post("/tierbar/v1/chats", {"model": "primary"})
        begun, _ = host.post(f"/tierbar/v1/chats/{chat['id']}/turns", {"text": text, "agent": agent})
        if "error" in begun:
            raise SystemExit(f"the host refused a turn: {begun['error']['message']}")
        self.path = f"/tierbar/v1/chats/{chat['id']}/turns/{begun['id']}"

    def asked(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.host.token}", "Content-Type": "application/json"}
        return urllib.request.Request(self.host.url + path, body and json.dumps(body).encode(), headers, method=method)

    def events(self):
        with urllib.request.urlopen(self.asked("GET", f"{self.path}/events?after=0"), timeout=SILENT_SECONDS) as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def allow(self, question):
        """Answers as a person does who looks at each: this act, once."""
        self.send("POST", f"{self.path}/consent", {"id": question["id"], "allow": "once"})

    def stop(self):
        self.send("DELETE", self.path)

    def send(self, method, path, body=None):
        try:
            urllib.request.urlopen(self.asked(method, path, body), timeout=SILENT_SECONDS).close()
        except urllib.error.HTTPError as refused:
            # The turn may have ended meanwhile.
            if refused.code not in (404, 409):
                raise


def word_of_question(title):
    """The tool that asks, by its question."""
    for sign, word in (("command", "shell"), ("web", "search"), ("page", "search"), ("file", "files"), ("document", "documents")):
        if sign in title.lower():
            return word
    return title


def first_word(host, prompt, agent):
    """The word for what the agent does first, with its seconds; "failed" if the turn broke off."""
    began = time.monotonic()
    turn = Turn(host, prompt, agent)
    found, talked = None, 0
    for event in turn.events():
        kind = event["type"]
        if kind == "consent":
            found = word_of_question(event["question"]["title"])
        elif kind == "tool_call":
            found = WORD_OF_TOOL.get(event["name"], event["name"])
        elif kind == "text":
            # Text that is not constrained may come before a call.
            talked += len(event["text"])
            found = "chat" if agent["way"] == "text" or talked > TALK else None
        elif kind in ("finished", "failed"):
            return ("chat" if kind == "finished" else "failed"), time.monotonic() - began
        if found:
            break
    seconds = time.monotonic() - began
    turn.stop()
    return found or "failed", seconds


def routed(host, most):
    prompts = lines("tools.jsonl")
    rows, texts = [], []
    with tempfile.TemporaryDirectory(prefix="tierbar-eval-") as folder:
        agent = {"folder": folder, "search": NOBODY, "pages": True}
        if offers_documents(host, agent):
            agent["documents"] = True
        else:
            prompts = [prompt for prompt in prompts if prompt["word"] != "documents"]
            texts = ["", "The agent of this host has no documents: the prompts for them are left out."]
        for way, called in WAYS.items():
            for which in ("dev", "test"):
                part = [prompt for prompt in prompts if prompt["set"] == which][:most]
                found = [first_word(host, prompt["prompt"], {**agent, "way": way}) for prompt in part]
                pairs = [(prompt["word"], word) for prompt, (word, _) in zip(part, found)]
                right = sum(word in [prompt["word"], *prompt.get("also", [])] for prompt, (word, _) in zip(part, found))
                rows.append([
                    called, which + (", held out" if which == "test" else ""), share(right, len(part)),
                    str(sum(word not in WORDS for _, word in pairs)), f"{median(seconds for _, seconds in found):.1f} s"])
                if which == "test":
                    taken = sorted({word for _, word in pairs} - set(WORDS))
                    counts = [[f"**{label}**", *(str(pairs.count((label, one))) for one in [*WORDS, *taken])] for label in WORDS]
                    texts += ["", table([f"held out, by {called}: label \\ taken", *WORDS, *taken], counts)]
    head = ["way", "prompts", "tool as labeled", "none of the tools", "median time to the first step"]
    return "\n".join([table(head, rows), *texts])


def offers_documents(host, agent):
    """Whether documents are a tool of this host's agent; a passage to find is added if so."""
    papers = Path(host.folder.name, "papers")
    papers.mkdir(exist_ok=True)
    (papers / "lease.txt").write_text("The lease can be ended with a notice of three months.\n")
    host.post("/tierbar/v1/documents", {"path": str(papers)})
    chat, _ = host.post("/tierbar/v1/chats", {"model": "primary"})
    path = f"/tierbar/v1/chats/{chat['id']}/turns"
    begun, _ = host.post(path, {"text": "Hello", "agent": {**agent, "documents": True}})
    if "error" in begun:
        return False
    turn = Turn.__new__(Turn)
    turn.host, turn.path = host, f"{path}/{begun['id']}"
    turn.stop()
    return True


class Outcome:
    def __init__(self):
        self.solved = self.late = self.broken = False
        self.steps = self.errors = self.consents = self.tokens = 0
        self.seconds = 0.0


def generated(host):
    """The tokens that this host's models have generated."""
    metrics = urllib.request.urlopen(f"{host.url}/metrics", timeout=SILENT_SECONDS).read().decode()
    return sum(float(count) for count in re.findall(r"^tierbar_completion_tokens_total\S* (\S+)$", metrics, re.MULTILINE))


def attempt(host, task, way):
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="tierbar-task-") as folder:
        folder = Path(folder)
        task.lay(folder)
        before, began, answer = generated(host), time.monotonic(), ""
        turn = Turn(host, task.request, {"folder": str(folder), "allow": {"reading": True}, "way": way})
        # A model that generates without an end sends no event for a while.
        timer = threading.Timer(TASK_SECONDS, turn.stop)
        timer.start()
        for event in turn.events():
            kind = event["type"]
            if kind == "consent":
                outcome.consents += 1
                turn.allow(event["question"])
            elif kind == "tool_call":
                outcome.steps += 1
            elif kind == "tool_result":
                outcome.errors += event["failed"]
            elif kind == "failed":
                outcome.broken = True
            elif kind == "finished":
                parts = event["message"]["parts"]
                answer = "".join(part["text"] for part in parts if part["type"] == "text")
        timer.cancel()
        outcome.seconds = time.monotonic() - began
        outcome.late = outcome.seconds >= TASK_SECONDS
        outcome.tokens = generated(host) - before
        outcome.solved = task.is_done(folder, answer)
    return outcome


def of_each(numbers):
    """A median, and all together."""
    return f"{median(numbers):g} ({sum(numbers):g})" if numbers else "–"


def solved(host, most, sets):
    rows, by_task = [], []
    for way, called in WAYS.items():
        for which, tasks in sets.items():
            done = [(task, attempt(host, task, way)) for task in tasks[:most]]
            fields = {field: [getattr(outcome, field) for _, outcome in done]
                      for field in ("solved", "steps", "errors", "consents", "tokens", "late", "broken", "seconds")}
            rows.append([
                called, which + (", held out" if which == "test" else ""), share(sum(fields["solved"]), len(done)),
                *(of_each(fields[field]) for field in ("steps", "errors", "consents")), f"{median(fields['tokens']):.0f}",
                str(sum(fields["late"])), str(sum(fields["broken"])), f"{median(fields['seconds']):.1f} s"])
            # Which of the held-out ones fail, nobody looks at.
            if which == "dev":
                by_task += [[called, task.name, "yes" if outcome.solved else "no", str(outcome.steps), str(outcome.consents)]
                            for task, outcome in done]
    head = ["way", "tasks", "solved", "steps", "steps that failed", "acts asked for", "tokens generated", f"longer than {TASK_SECONDS} s",
            "broke off", "median time"]
    texts = [table(head, rows), "Steps and acts: the median of a task, and in brackets those of all tasks. Tokens: the median of a task."]
    if by_task:
        texts.append(table(["way", "task, dev", "solved", "steps", "acts asked for"], by_task))
    return "\n\n".join(texts)


def measure(host, most=None, short=False):
    """The tables for the host's model; `most` prompts of each set, and as many tasks. In short, one held-out task."""
    if host.subject.name == SCRIPTED:
        return solved(host, most, agent_tasks.SETS)
    tasks = solved(host, 1, {"test": agent_tasks.TEST}) if short else solved(host, most, agent_tasks.SETS)
    return f"### The first tool\n\n{routed(host, most)}\n\n### Tasks\n\n{tasks}"


SCRIPTED = "no model: each task by its own way"


class Player(http.server.BaseHTTPRequestHandler):
    """A server that solves each task by its own way: what the loop, the tools and the checks can reach at most, and with how little."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delta = played(request)
        choice = {"index": 0, "finish_reason": None, "delta": delta}
        end = {"index": 0, "finish_reason": "tool_calls" if "tool_calls" in delta else "stop", "delta": {}}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "script"}
        sent = [{**chunk, "choices": [choice]}, {**chunk, "choices": [end]}]
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in sent) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def played(request):
    """What the script answers: the next step of the task that the messages are about."""
    messages = request["messages"]
    said = [message.get("content") or "" for message in messages if message["role"] == "user"]
    tasks = [*agent_tasks.DEV, *agent_tasks.TEST]
    task = next((task for task in tasks if said and said[0].startswith(task.request)), None)
    done = sum(message["role"] == "assistant" for message in messages)
    if task is None or done >= len(task.way):
        if "One word:" in said[-1]:
            return {"content": "chat"}
        return {"content": task.answer if task else "I do not know this task."}
    name, arguments = task.way[done]
    if request.get("tools"):
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"tool_calls": [{"index": 0, "id": f"call-{done}", "type": "function", "function": function}]}
    if "One word:" in said[-1]:
        return {"content": WORD_OF_TOOL[name]}
    if name == "run_command":
        return {"content": arguments["command"]}
    if name == "read_file":
        return {"content": f"read {arguments['path']}"}
    content = arguments.get("content")
    # Without calls, a file is not edited but written as a whole.
    if content is None:
        content = edited(messages, arguments)
    return {"content": f"write {arguments['path']}\n{content}"}


def edited(messages, arguments):
    """The file that was read last, with its edit."""
    texts = (message.get("content") or "" for message in reversed(messages) if message["role"] != "system")
    read = next(text for text in texts if arguments["old"].strip() in text and "BEGIN DATA" in text)
    data = read.split("BEGIN DATA", 1)[1].split("\n", 1)[1].rsplit("\nEND DATA", 1)[0]
    return data.rstrip("\n").replace(arguments["old"], arguments["new"]) + "\n"


def script():
    """The subject that needs no model."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Player)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return Subject(SCRIPTED, url=f"http://127.0.0.1:{server.server_port}", model="script")
