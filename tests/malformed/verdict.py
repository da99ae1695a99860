"""Which answers are right, and a run of the corpus checked against that."""

import collections
import json
from concurrent.futures import ThreadPoolExecutor

import wire
from corpus import ANSWERED, REFUSED

AT_ONCE = 16
# What passes to a server of OpenAI's dialect as it came: that server refuses it, or is at fault.
PASSES = b"POST /v1/responses "
# The codes of a 5xx answer if the server behind the gateway is at fault; never `internal`.
HONEST = {
    "unreachable": 502,
    "corrupt": 502,
    "worker_crashed": 502,
    "worker_timeout": 504,
    "tier_failed": 503,
    "tier_stopped": 503,
    "over_budget": 503,
}


def fault_of(answer, allowed, expected=None):
    """What is wrong with an answer, or None."""
    if expected == REFUSED and not 400 <= answer.status < 500:
        return f"{answer.status} in place of a refusal: {answer.body[:200]!r}"
    # A server that is at fault may keep the gateway from answering.
    if expected == ANSWERED and not allowed and not 200 <= answer.status < 300:
        return f"{answer.status} in place of an answer: {answer.body[:300]!r}"
    if 200 <= answer.status < 500 or answer.status == 100:
        return None
    try:
        body = json.loads(answer.body)
        # Ollama's error is its message, with the rest beside it.
        code = body["error"]["code"] if isinstance(body["error"], dict) else body["code"]
    except (ValueError, KeyError, TypeError):
        return f"{answer.status} without a code: {answer.body[:200]!r}"
    if code not in allowed:
        return f"{answer.status} {code}: {answer.body[:300]!r}"
    if HONEST[code] != answer.status:
        return f"{code} as {answer.status}"
    return None


def run(address, requests, allowed=()):
    """Sends them all: (how many of each outcome, what was wrong)."""
    outcomes, faults = collections.Counter(), []

    def one(request):
        name, (data, loose, expected) = request
        if allowed and data.startswith(PASSES):
            expected = None
        try:
            answers = wire.ask(address, data, loose)
        except wire.Hang as hang:
            return "hang", f"{name}: hangs, {hang}: {data[:300]!r}"
        except (ValueError, OSError) as error:
            return "no HTTP", f"{name}: {error}: {data[:300]!r}"
        if not answers:
            # Bytes that are no request, or half of one, may be dropped; a whole request is answered.
            return "closed", None if loose else f"{name}: closed without an answer: {data[:300]!r}"
        # That it may go on is no answer yet. What follows a refused request may be read as another one.
        final = [answer for answer in answers if answer.status != 100] or answers
        for place, answer in enumerate(final):
            if fault := fault_of(answer, allowed, expected if place == 0 else None):
                return str(answer.status), f"{name}: {fault}: {data[:600]!r}"
        return str(final[0].status), None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for outcome, fault in pool.map(one, requests):
            outcomes[outcome] += 1
            if fault:
                faults.append(fault)
    return outcomes, faults


def summary(outcomes):
    return ", ".join(f"{count} × {outcome}" for outcome, count in sorted(outcomes.items()))
