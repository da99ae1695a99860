"""Broken files of saved contexts, their checksums made right again, given to our own engine. What must not be: a worker that dies, a hang,
`internal`."""

import hashlib
import json
import random
import struct

import mutation
import verdict
from corpus import Sent, request, written

NAME = "sound"


def ask(host, path, **body):
    headers = ["Content-Type: application/json", f"Authorization: Bearer {host.token}"]
    return Sent(request("POST", path, written({"model": "fast", **body}), headers), False, "answered")


def sealed(state, about, magic):
    body = state + about
    return body + struct.pack("<I", len(about)) + hashlib.sha256(body).digest() + magic


def parts(data):
    """A file of version 2 or 3: its state, its description, its magic."""
    at = len(data) - 44
    length = struct.unpack("<I", data[at : at + 4])[0]
    return data[: at - length], data[at - length : at], data[-8:]


def broken(random, data):
    state, about, magic = parts(data)
    harm = random.randrange(4)
    if harm == 0:
        return mutation.of_bytes(random, data)
    if harm == 1:
        return sealed(mutation.of_bytes(random, state), about, magic)
    if harm == 2:
        return sealed(state, mutation.of_json(random, json.loads(about)), magic)
    return sealed(state, about, random.choice([b"TIERCTX1", b"TIERCTX2", b"TIERCTX3", b"TIERCTX9", b"\x00" * 8]))


def run(host, seed, count):
    """Loads `count` broken contexts: what was wrong."""
    _, faults = verdict.run(host.address, [("a sound context", ask(host, "/v1/context/save", name=NAME, prompt="The capital of France is Paris."))])
    (sound,) = host.home.glob("contexts/*.context")
    data = sound.read_bytes()

    def requests():
        for number in range(count):
            path = sound.with_name(f"b{number % 32}.context")
            path.write_bytes(broken(random.Random(f"{seed} {number}"), data))
            load = ask(host, "/v1/context/load", name=path.stem)
            yield f"{seed}/{number} context", load._replace(expected=None)

    # One at a time: each takes the place of an earlier one.
    for load in requests():
        _, found = verdict.run(host.address, [load], ["corrupt"])
        faults += found
    _, found = verdict.run(host.address, [("the sound context", ask(host, "/v1/context/load", name=NAME))])
    return faults + found
