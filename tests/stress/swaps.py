"""Swap time as a client sees it: from a request for the model that is not loaded to the first token of its answer.

Ours and the peer's in turn, each first every other time. The host's memory is read after the first swaps and after the last.
"""

import time

from servers import memory

TURN = 10
# The host's memory is first read after so many.
SETTLED = 10


def measure(host, router, count, compared, pair):
    """`count` swaps of the host; the first `compared` of them beside the router's."""
    seconds = {"tierbar": [], "llama-server": []}
    for server in filter(None, (host, router)):
        server.first_token(pair[1])
    before = None
    while len(seconds["tierbar"]) < count:
        done = len(seconds["tierbar"])
        both = [host, router] if router and done < compared else [host]
        for server in both if done // TURN % 2 == 0 else reversed(both):
            for place in range(TURN):
                seconds[server.name].append(server.first_token(pair[place % 2]))
        if before is None and len(seconds["tierbar"]) >= SETTLED:
            before = settled(host)
        if (done + TURN) % 100 == 0:
            print(f"  {done + TURN} swaps", flush=True)
    return {"seconds": seconds, "memory": {"before": before, "after": settled(host)}}


def settled(host):
    """The host's memory once the last answer is cleaned up."""
    time.sleep(1)
    return memory(host.process.pid)


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
