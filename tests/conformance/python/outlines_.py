import openai
import outlines
from cells import *

client = openai.OpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS)


def model(tier):
    return outlines.from_openai(client, tier)


def text(tier):
    return model(tier)(QUESTION, max_tokens=12)


def stream(tier):
    return list(model(tier).stream(QUESTION, max_tokens=12))


def structured(tier):
    return model(tier)(ASK_PARCEL, Parcel, max_tokens=64)


def overflow(tier):
    return raised(lambda: model(tier)(STORY), Exception)


def unknown(tier):
    return raised(lambda: model(tier)(QUESTION), Exception)


run("outlines")
