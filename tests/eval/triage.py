"""Whether a model finds the types of messages.jsonl, and whether the rule for clouds then does the right thing."""

from collections import Counter
from statistics import median

from host import lines, share, table

TYPES = ["problem", "request", "appointment", "question", "idea", "promotion", "fyi", "greeting"]
HERE = ["fyi", "greeting"]


def measure(host, most=None):
    """The tables for the host's model; `most` messages of each set."""
    messages = lines("messages.jsonl")
    host.post("/v1/triage", {"text": messages[0]["text"]})
    rows, texts = [], []
    for which in ("dev", "test"):
        part = [message for message in messages if message["set"] == which][:most]
        asked = [host.post("/v1/triage", {"text": message["text"]}) for message in part]
        found = [answer.get("type") for answer, _ in asked]
        pairs = list(zip((message["type"] for message in part), found))
        usable = [(message, answer) for message, (answer, _) in zip(part, asked) if "type" in answer]
        near = sum(abs(message["urgency"] - answer["urgency"]) <= 1 for message, answer in usable)
        stays = [message["type"] for message, answer in usable
                 if answer["type"] in HERE and not answer["needs_cloud"]]
        right = sum(kind in HERE for kind in stays)
        rows.append([
            which + (", held out" if which == "test" else ""), share(sum(label == one for label, one in pairs), len(pairs)),
            share(near, len(pairs)), share(right, sum(label in HERE for label, _ in pairs)),
            str(len(stays) - right), str(len(part) - len(usable)), f"{median(seconds for _, seconds in asked):.2f} s"])
        if which == "test":
            count = Counter(pairs)
            kinds = [[f"**{label}**", *(str(count[label, one]) for one in [*TYPES, None])] for label in TYPES]
            texts = ["", f"Of the {len(pairs)} held-out messages, the type as labeled and as sorted:", "",
                     table(["label \\ sorted", *TYPES, "unusable"], kinds)]
    head = ["messages", "type as labeled", "urgency within one", "greetings and FYI kept from the cloud", "others kept from it",
            "unusable answers", "median time"]
    return "\n".join([table(head, rows), *texts])
