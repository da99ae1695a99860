"""Broken exports of chats: ChatGPT's, Open WebUI's, LM Studio's and Tierbar's own. What must not be: a panic, a 5xx, a hang."""

import json
import random

import mutation
import verdict
from corpus import Sent, request

IMPORT = "/tierbar/v1/chats/import"


def said(role, text):
    return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, "recipient": "all", "metadata": {"model_slug": "gpt-4o"}}


CHATGPT = [{
    "title": "France", "create_time": 1700000000.5, "update_time": 1700000100, "conversation_id": "6f0", "current_node": "b",
    "mapping": {
        "root": {"id": "root", "parent": None, "message": None, "children": ["a"]},
        "a": {"id": "a", "parent": "root", "message": said("user", "Which city?"), "children": ["b", "c"]},
        "b": {"id": "b", "parent": "a", "message": said("assistant", "Paris"), "children": []},
        "c": {"id": "c", "parent": "a", "message": said("assistant", "Berlin"), "children": []},
    },
}]  # fmt: skip
OPEN_WEBUI = [{"id": "1", "title": "France", "updated_at": 1700000000, "chat": {"title": "France", "models": ["m"], "history": {"currentId": "b", "messages": {
    "a": {"id": "a", "parentId": None, "childrenIds": ["b"], "role": "user", "content": "Which city?", "timestamp": 1700000000, "files": []},
    "b": {"id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": "<details type=\"reasoning\" done=\"true\"><summary>Thought</summary>&gt; is a &lt; b?</details>\nParis", "model": "m"},
}}}}]  # fmt: skip
LM_STUDIO = {"name": "France", "createdAt": 1700000000000, "messages": [
    {"currentlySelected": 0, "versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Which city?"}]}]},
    {"currentlySelected": 0, "versions": [{"type": "multiStep", "role": "assistant", "steps": [{"type": "contentBlock", "content": [{"type": "text", "text": "Paris"}]}]}]},
]}  # fmt: skip
OWN = {"id": "1f", "title": "France", "model": "fast", "created_at": "2026-11-26T08:15:00Z", "updated_at": "2026-11-26T08:16:00Z", "when_full": "drop", "pinned": False, "turn": None, "leaf": 9, "messages": [
    {"id": 7, "parent": None, "role": "user", "parts": [{"type": "text", "text": "Which city?"}]},
    {"id": 9, "parent": 7, "role": "assistant", "parts": [{"type": "reasoning", "text": "Look."}, {"type": "text", "text": "Paris"}], "finish": "stop"},
]}  # fmt: skip
SOUND = [CHATGPT, OPEN_WEBUI, LM_STUDIO, OWN]


def sent(host, body, broken):
    headers = ["Content-Type: application/json", f"Authorization: Bearer {host.token}"]
    return Sent(request("POST", IMPORT, body, headers), False, None if broken else "answered")


def requests(host, seed, count):
    for number, export in enumerate(SOUND):
        yield f"sound export {number}", sent(host, json.dumps(export).encode(), False)
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        yield f"{seed}/{number} export", sent(host, mutation.of_json(chance, SOUND[number % len(SOUND)]), True)


def run(host, seed, count):
    return verdict.run(host.address, requests(host, seed, count))[1]
