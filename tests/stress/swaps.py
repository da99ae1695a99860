"""Swap time as a client sees it: from a request for the model that is not loaded to the first token of its answer.

Ours and the peer's in turn, each first every other time; the peer with its warm-up and without, since ours has none. The host's
memory is read after the first turn and after the last.
"""

import time

from servers import memory

# So many swaps of one server, before the other's.
TURN = 10


def measure(host, routers, count, compared, pair):
    """`count` swaps of the host; so many as are to be compared beside each of the routers, which run one after another."""
    beside, alone, memories = {}, [], {}

    def turn(servers, taken):
        done = len(taken[host.name])
        for server in servers if done // TURN % 2 == 0 else reversed(servers):
            for place in range(TURN):
                taken[server.name].append(server.first_token(pair[place % 2]))
        if not memories:
            memories["before"] = settled(host)
        if (done + TURN) % 100 == 0:
            print(f"  {done + TURN} swaps{' beside ' + servers[1].name if servers[1:] else ''}", flush=True)

    host.first_token(pair[1])
    for router in routers:
        with router:
            router.first_token(pair[1])
            taken = beside[router.name] = {host.name: [], router.name: []}
            while len(taken[host.name]) < compared:
                turn([host, router], taken)
        alone += taken[host.name]
    own = {host.name: alone}
    while len(alone) < count:
        turn([host], own)
    return {"seconds": alone, "beside": beside, "memory": {**memories, "after": settled(host)}}


def settled(host):
    """The host's memory once the last answer is cleaned up."""
    time.sleep(1)
    return memory(host.process.pid)


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
