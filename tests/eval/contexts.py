"""What the compact form of saved contexts does to answers, beside a q4_0 KV cache."""

import json
import subprocess
from math import exp
from pathlib import Path
from statistics import mean

from host import ROOT, Host, share, table

# Long enough for most tokens to be coded, and short enough for a context of 4,096 tokens.
BYTES, ANSWER_TOKENS, TOP = 6000, 64, 5
QUESTION = "\n\nIn short, this text says that"
TIER = "fast"


def texts(most=None):
    """The start of each of our longer pages, in the order of their names."""
    pages = sorted(page for page in (ROOT / "docs").glob("*.md") if page.stat().st_size > BYTES)
    return [page.read_text()[:BYTES] for page in pages[:most or 10]]


class QuantizedCache(Host):
    """As `Host`, with a q4_0 KV cache."""

    def config(self):
        return super().config().replace("context = 4096\n", 'context = 4096\nkv_cache = "q4_0"\n')


def next_token(host, prompt):
    """The likeliest next tokens with their probabilities, the likeliest first, and how many of the prompt were in memory."""
    asked = {"model": TIER, "prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": TOP}
    made, _ = host.post("/v1/completions", asked)
    top = made["choices"][0]["logprobs"]["top_logprobs"][0]
    likeliest = sorted(top.items(), key=lambda item: -item[1])
    return {token: exp(logprob) for token, logprob in likeliest}, made["timings"]["cache_n"]


def continued(host, text):
    """The beginnings of the likeliest continuation: each is a prompt for its next token."""
    asked = {"model": TIER, "prompt": text + QUESTION, "max_tokens": ANSWER_TOKENS, "temperature": 0, "logprobs": 0}
    made, _ = host.post("/v1/completions", asked)
    tokens = made["choices"][0]["logprobs"]["tokens"]
    return [text + QUESTION + "".join(tokens[:at]) for at in range(len(tokens))]


def predicted(host, prompts, least=0):
    """The next tokens of each prompt. The first one must find so many tokens in memory."""
    found = [next_token(host, prompt) for prompt in prompts]
    if found[0][1] < least:
        raise SystemExit(f"{found[0][1]} of {least} tokens came from the saved context")
    return [tokens for tokens, _ in found]


def row(name, expected, found, of_memory):
    pairs = [(a, b) for one, other in zip(expected, found) for a, b in zip(one, other)]
    same = sum(next(iter(a)) == next(iter(b)) for a, b in pairs)
    changes = [abs(a[token] - b.get(token, 0)) for a, b in pairs for token in list(a)[:1]]
    return [name, of_memory, share(same, len(pairs)), f"{100 * mean(changes):.1f}"]


def saved(host, name, form, text):
    made, _ = host.post("/v1/context/save", {"name": name, "model": TIER, "prompt": text, "form": form, "replace": True})
    if made.get("form") != form:
        raise SystemExit(f"the context was not saved in the form {form}: {made}")
    return made


def loaded(host, name):
    """Puts a saved context into empty memory."""
    host.post(f"/tierbar/v1/tiers/{TIER}/stop", {})
    made, _ = host.post("/v1/context/load", {"name": name, "model": TIER})
    if "error" in made:
        raise SystemExit(f"the context was not loaded: {made}")


def measure(tierbar, subject, most=None):
    """The tables of both: how alike the numbers are, and how alike the predictions."""
    prompts, kept, found = [], [], {"exact": [], "compact": []}
    alike, sizes = [], []
    with Host(tierbar, subject) as host:
        for text in texts(most):
            forms = {form: saved(host, form, form, text) for form in found}
            alike.append(difference(host))
            sizes.append([made["bytes"] / made["raw_bytes"] for made in forms.values()])
            prompts.append(continued(host, text))
            kept.append(predicted(host, prompts[-1]))
            for form, made in forms.items():
                loaded(host, form)
                found[form].append(predicted(host, prompts[-1], made["tokens"]))
    with QuantizedCache(tierbar, subject) as host:
        quantized = []
        for text, beginnings in zip(texts(most), prompts):
            saved(host, "exact", "exact", text)
            quantized.append(predicted(host, beginnings))
    exact, small = (f"{mean(size):.0%}" for size in zip(*sizes))
    answers = table(
        ["form", "file, of the memory", "same next tokens", "mean change of their probability, in points"],
        [row("exact", kept, found["exact"], exact), row("compact", kept, found["compact"], small),
         row("q4_0 cache, for comparison", kept, quantized, "–")])
    return f"{numbers(alike)}\n\n{answers}"


def difference(host):
    """What the example says of the two contexts."""
    folder = Path(host.folder.name, "contexts")
    files = {json.loads(about(file))["name"]: file for file in folder.glob("*.context")}
    program = ROOT / "target/release/examples/context_forms"
    return json.loads(subprocess.check_output([program, files["exact"], files["compact"]]))


def about(file):
    """The description at the end of a saved context."""
    data = file.read_bytes()
    length = int.from_bytes(data[-44:-40], "little")
    return data[-44 - length:-44]


def numbers(alike):
    head = ["numbers", "cosine, compact", "of the worst layer", "cosine, q4_0", "of the worst layer"]
    rows = []
    for kind in ("keys", "values"):
        of = [found[kind] for found in alike]
        means = [[mean(one[form]["cosine"] for one in of), min(one[form]["worst"] for one in of)]
                 for form in ("compact", "q4_0")]
        rows.append([kind, *(f"{figure:.4f}" for pair in means for figure in pair)])
    return table(head, rows)
