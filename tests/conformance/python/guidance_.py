from cells import *
from guidance import assistant, gen, user as says
from guidance import json as as_json
from guidance.models import OpenAI


def model(tier):
    return OpenAI(tier, api_key=KEY, base_url=V1, max_retries=0, timeout=SECONDS, echo=False)


def ask(tier, text, *parts):
    state = model(tier)
    with says():
        state += text
    with assistant():
        for part in parts:
            state += part
    return state["answer"]


def text(tier):
    return ask(tier, QUESTION, gen("answer", max_tokens=12))


def structured(tier):
    return ask(tier, ASK_PARCEL, as_json("answer", schema=Parcel, max_tokens=64))


def overflow(tier):
    return raised(lambda: ask(tier, STORY, gen("answer", max_tokens=12)), Exception)


def unknown(tier):
    return raised(lambda: ask(tier, QUESTION, gen("answer", max_tokens=12)), Exception)


run("guidance")
