import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from cells import *
from dspy.utils.exceptions import ContextWindowExceededError


def model(tier, tokens=64):
    return dspy.LM(f"openai/{tier}", api_base=V1, api_key=KEY, max_tokens=tokens, num_retries=0, cache=False, temperature=0)


class Describe(dspy.Signature):
    """Describe the parcel."""

    question: str = dspy.InputField()
    parcel: Parcel = dspy.OutputField()


def text(tier):
    return model(tier, 12)(QUESTION)[0]


def structured(tier):
    with dspy.context(lm=model(tier), adapter=dspy.JSONAdapter()):
        return dspy.Predict(Describe)(question=ASK_PARCEL).parcel


def embeddings(tier):
    return dspy.Embedder(f"openai/{tier}", api_base=V1, api_key=KEY, caching=False)(QUESTION)


def overflow(tier):
    return raised(lambda: model(tier)(STORY), ContextWindowExceededError)


def unknown(tier):
    return raised(lambda: model(tier)(QUESTION), Exception)


run("dspy")
