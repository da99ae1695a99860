"""Requests over three tiers from several clients, some of whom leave, while workers are killed and memory is taken away.

All of it is drawn from one seed: of each request the tier, the kind, the length and whether and when its client leaves; and at
which request a worker is killed or a hog begins. When things happen then depends on the machine.
"""

import json
import math
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from group import MIB

HANG_SECONDS = 600
# A tier whose worker was killed while it loaded may rest as long.
REST_SECONDS = 60
# How long an alarm of the memory guard outlasts its cause, and what that doubles to when it returns so soon: CALM, LONGEST_CALM
# and RELAPSE of src-tauri/crates/core/src/memory_guard.rs. Memory is read once a second.
CALM_SECONDS, LONGEST_CALM_SECONDS, RELAPSE_SECONDS, READING_SECONDS = 10, 320, 300, 1
WORDS = "river boat winter stone light paper engine garden north bread music window salt train letter cloud".split()
LEAVING = 0.15


@dataclass
class Request:
    number: int
    tier: str
    path: str
    body: dict
    # The client disconnects after this many seconds, or pieces of the answer.
    leaves_after: float | None = None
    leaves_at_piece: int | None = None


@dataclass
class Outcome:
    request: Request
    began: float
    ended: float = 0.0
    # answered, refused, left, or what was lost
    kind: str = ""
    code: str = ""
    words: str = ""


@dataclass
class Act:
    kind: str
    began: float
    ended: float = math.inf
    what: dict = field(default_factory=dict)


def plan(seed, count, kills, hogs, tiers):
    """The requests, and what happens when the one of that number is sent."""
    random_ = random.Random(seed)
    requests = [request(random_, number, list(tiers)) for number in range(count)]
    # Not among the last ones, so that it can be seen that all goes on; a hog, for which a kill may have to wait, well before them.
    first = count // 20
    hogged = random_.sample(range(first, count // 2), hogs)
    killed = random_.sample([place for place in range(first, count * 9 // 10) if place not in hogged], kills)
    acts = {place: ("kill", {"after": random_.uniform(0, 1.0)}) for place in killed}
    acts |= {place: ("hog", {"spared": random_.randint(0, 8 * MIB), "seconds": random_.uniform(12, 16)}) for place in hogged}
    return requests, acts


def request(random_, number, tiers):
    tier = random_.choice(tiers)
    text = f"{number}: " + " ".join(random_.choices(WORDS, k=random_.randint(3, 24)))
    tokens, stream = random_.randint(1, 16), random_.random() < 0.6
    kind = random_.random()
    if kind < 0.6:
        path, body = "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": stream}
    elif kind < 0.85:
        path, body = "/v1/completions", {"prompt": text, "max_tokens": tokens, "stream": stream}
    else:
        path, body = "/v1/embeddings", {"input": text}
    made = Request(number, tier, path, {"model": tier, **body})
    if random_.random() < LEAVING:
        how = random_.random()
        if how < 0.35:
            made.leaves_after = random_.uniform(0, 0.3)
        elif how < 0.7:
            made.leaves_after = random_.uniform(0.3, 3)
        else:
            made.leaves_at_piece = random_.randint(1, 4)
    return made


class Load:
    """One run of a plan against a host."""

    def __init__(self, host, requests, acts, clients, hogs_to):
        self.host, self.planned, self.hogs_to = host, acts, hogs_to
        self.requests = iter(requests)
        self.clients, self.lock = clients, threading.Lock()
        self.outcomes, self.acts = [], []
        self.due, self.over = queue.Queue(), threading.Event()
        self.failure = None

    def run(self):
        threads = [threading.Thread(target=self.client, daemon=True) for _ in range(self.clients)]
        actor = threading.Thread(target=self.actor, daemon=True)
        for thread in [actor, *threads]:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            self.over.set()
            self.due.put(None)
            actor.join()
        if self.failure:
            raise self.failure
        return self.outcomes, self.acts

    def client(self):
        while not self.over.is_set():
            with self.lock:
                request = next(self.requests, None)
            if request is None:
                return
            if request.number in self.planned:
                self.due.put(self.planned[request.number])
            outcome = Outcome(request, time.monotonic())
            try:
                exchange(self.host, outcome)
            except Exception as error:  # noqa: BLE001 — whatever it is, this request has not been served
                outcome.kind, outcome.words = "lost", f"{type(error).__name__}: {error}"
            outcome.ended = time.monotonic()
            with self.lock:
                self.outcomes.append(outcome)
                progress(len(self.outcomes), outcome)

    def actor(self):
        try:
            while (due := self.due.get()) and not self.over.is_set():
                kind, what = due
                self.kill(**what) if kind == "kill" else self.hog(**what)
        except Exception as error:  # noqa: BLE001 — reported by the thread that waits
            self.failure = error

    def kill(self, after):
        """The worker alive at that time, whatever it does; the next one if there is none."""
        self.over.wait(after)
        while not self.over.is_set():
            for pid in self.host.workers():
                act = Act("kill", time.monotonic())
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                act.ended = time.monotonic()
                self.acts.append(act)
                return
            time.sleep(0.005)

    def hog(self, spared, seconds):
        """Takes all that may be taken but so many bytes, and what becomes free meanwhile."""
        act = Act("hog", time.monotonic(), what={"mib": 0, "least_left_mib": self.host.group.limit // MIB, "most_swapped_mib": 0})
        self.acts.append(act)
        program, fine = Path(__file__).parent / "hog.py", True
        with subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=self.host.group.enter) as hog:
            until = time.monotonic() + seconds
            while fine and time.monotonic() < until and not self.over.is_set():
                size = self.hogs_to(act.what["mib"] * MIB) - spared
                if size >= MIB:
                    hog.stdin.write(f"{size}\n")
                    hog.stdin.flush()
                    fine = hog.stdout.readline() == "held\n"
                    act.what["mib"] += size // MIB
                act.what["least_left_mib"] = min(act.what["least_left_mib"], self.host.group.free() // MIB)
                act.what["most_swapped_mib"] = max(act.what["most_swapped_mib"], self.host.group.swapped() // MIB)
                self.over.wait(0.5)
            hog.stdin.close()
        act.ended = time.monotonic()
        act.what["whole"] = fine and hog.returncode == 0


def exchange(host, outcome):
    request = outcome.request
    ends = None if request.leaves_after is None else outcome.began + request.leaves_after
    connection = host.connection()
    try:
        connection.request("POST", request.path, json.dumps(request.body), {"Content-Type": "application/json"})
        # The connection forgets it once an answer has begun that ends with it.
        sock = connection.sock

        def patient():
            left = HANG_SECONDS if ends is None else ends - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)

        patient()
        response = connection.getresponse()
        if response.status != 200:
            refused(outcome, json.loads(response.read()))
        elif request.body.get("stream"):
            read_stream(outcome, response, patient)
        else:
            patient()
            whole(outcome, json.loads(response.read()))
    except TimeoutError:
        outcome.kind = "lost" if ends is None else "left"
        outcome.words = f"nothing for {HANG_SECONDS} s" if ends is None else ""
    finally:
        connection.close()


def read_stream(outcome, response, patient):
    pieces, finished = 0, False
    for line in response:
        line = line.strip()
        if line == b"data: [DONE]":
            outcome.kind, outcome.words = ("answered", "") if finished else ("lost", "the stream ends without a finish_reason")
            return
        if line.startswith(b"data: "):
            chunk = json.loads(line[6:])
            if "error" in chunk:
                return refused(outcome, chunk)
            pieces += 1
            finished |= any(choice.get("finish_reason") for choice in chunk["choices"])
            if outcome.request.leaves_at_piece == pieces:
                outcome.kind = "left"
                return None
        patient()
    outcome.kind, outcome.words = "lost", f"the stream breaks off after {pieces} pieces, without a reason"
    return None


def whole(outcome, answer):
    if outcome.request.path == "/v1/embeddings":
        vector = answer["data"][0]["embedding"]
        length = math.sqrt(sum(value * value for value in vector))
        fine = abs(length - 1) < 0.01
    else:
        choice = answer["choices"][0]
        fine = bool(choice["finish_reason"]) and isinstance(choice.get("text", choice.get("message", {}).get("content")), str)
    outcome.kind, outcome.words = ("answered", "") if fine else ("lost", f"no answer: {json.dumps(answer)[:200]}")


def refused(outcome, body):
    error = body.get("error") or {}
    outcome.code, outcome.words = error.get("code") or "", error.get("message") or ""
    outcome.kind = "refused" if outcome.code and outcome.words else "lost"


def alarms(hogs):
    """When each hog may have kept the memory guard's alarm raised, as pairs of moments."""
    spans, relapses = [], 0
    for hog in sorted(hogs, key=lambda hog: hog.began):
        since = hog.began - spans[-1][1] if spans else math.inf
        if since > 0:
            relapses = relapses + 1 if since < RELAPSE_SECONDS else 0
        calm = min(CALM_SECONDS * 2**relapses, LONGEST_CALM_SECONDS)
        spans.append((hog.began, hog.ended + calm + 2 * READING_SECONDS))
    return spans


def unexplained(outcomes, acts):
    """The refusals that nothing in this run explains, by what was going on at their time."""
    kills = [act for act in acts if act.kind == "kill"]
    short = alarms([act for act in acts if act.kind == "hog"])

    def is_explained(outcome):
        killed = any(outcome.began <= kill.ended and kill.began <= outcome.ended for kill in kills)
        rests = any(0 <= outcome.ended - kill.began and outcome.began - kill.ended <= REST_SECONDS for kill in kills)
        alarmed = any(outcome.began <= ended and began <= outcome.ended for began, ended in short)
        return {"worker_crashed": killed, "tier_failed": rests, "tier_stopped": alarmed, "overloaded": alarmed}.get(outcome.code, False)

    return [outcome for outcome in outcomes if outcome.kind == "refused" and not is_explained(outcome)]


def progress(count, outcome):
    if count % 50 == 0:
        print(f"  {count} requests, the last one {outcome.kind} after {outcome.ended - outcome.began:.1f} s", flush=True)


def serves_again(host, tiers):
    """Seconds until each tier answers and nothing is held any more; `None` for one that does not."""
    waited = {}
    for tier in tiers:
        started = time.monotonic()
        waited[tier] = None
        while time.monotonic() - started < HANG_SECONDS and waited[tier] is None:
            status, _ = host.ask("POST", "/v1/completions", {"model": tier, "prompt": "Hi", "max_tokens": 1})
            if status == 200:
                waited[tier] = time.monotonic() - started
            else:
                time.sleep(0.2)
    return waited


def is_idle(host):
    """Whether no request is held, once those that were left have been noticed."""
    until = time.monotonic() + HANG_SECONDS
    while time.monotonic() < until:
        states = {tier["state"] for tier in host.admin("GET", "/status")[1]["tiers"]}
        if not states & {"busy", "starting", "stopping"}:
            return True
        time.sleep(0.1)
    return False
