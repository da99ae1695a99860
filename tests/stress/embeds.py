"""Embedding and chatting in turn, as a client does that searches documents before each question: which tier answers, how often a
model is loaded, and what is planned and held meanwhile.
"""

import json
import re
import time

from servers import memory

MIB = 1 << 20
# The status is looked at once in so many requests.
LOOK = 10


def measure(host, turns):
    """So many requests, every second of which embeds. The one that chats has the text that was embedded."""
    asked, lost, planned, total, looks = {"embedded": 0, "answered": 0}, [], 0, 0, 0
    started = time.monotonic()
    for turn in range(turns):
        question = f"Question {turn // 2}: what did the river do at mill {turn // 2 % 7}?"
        if turn % 2 == 0:
            status, text = host.ask("POST", "/v1/embeddings", {"input": [question, question * (1 + turn // 2 % 9)]})
            fine = status == 200 and [len(each["embedding"]) for each in json.loads(text)["data"]] == [384, 384]
            asked["embedded"] += fine
        else:
            status, text = host.ask("POST", "/v1/chat/completions", {
                "model": "primary", "messages": [{"role": "user", "content": question}], "max_tokens": 4, "temperature": 0})
            fine = status == 200 and json.loads(text)["choices"][0]["finish_reason"]
            asked["answered"] += bool(fine)
        if not fine:
            lost.append(f" {turn}: {status} {text[:200]!r}")
        if turn % LOOK == LOOK - 1:
            budget = host.admin("GET", "/status")[1]["budget"]
            planned, total, looks = max(planned, budget["planned_bytes"]), budget["total_bytes"], looks + 1
    seconds = time.monotonic() - started
    tiers = {tier["id"]: tier for tier in host.admin("GET", "/status")[1]["tiers"]}
    workers = {id: (memory(tier["pid"])["pss"], sum(line["bytes"] for line in tier["plan"]["lines"]) / MIB)
               for id, tier in tiers.items() if tier["pid"]}
    begun = re.findall(r"loading tier=(\S+)", re.sub(r"\x1b\[[0-9;]*m", "", host.log.read_text()))
    return {"requests": asked, "lost": lost, "seconds": seconds, "budget_bytes": [planned, total], "looks": looks,
            "workers_mib": workers, "loads": {tier: begun.count(tier) for tier in sorted(set(begun), reverse=True)}}
