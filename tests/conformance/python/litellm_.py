"""LiteLLM, by its provider: openai, anthropic or ollama_chat."""

import os

# It would fetch a list of prices at its first import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from cells import *

DIALECT = sys.argv[1]
BASE = V1 if DIALECT == "openai" else URL
REACH = {"api_base": BASE, "api_key": KEY, "timeout": SECONDS, "max_retries": 0}


def ask(tier, text=QUESTION, **fields):
    return litellm.completion(model=f"{DIALECT}/{tier}", messages=user(text), **REACH, **{"max_tokens": 64, **fields})


def text(tier):
    return ask(tier, max_tokens=12).choices[0].message.content


def stream(tier):
    return [chunk.choices[0].delta.content for chunk in ask(tier, max_tokens=12, stream=True)]


def tools(tier):
    ask(tier, ASK_PARCEL, tools=[FUNCTION], max_tokens=12)
    call = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": json.dumps(ARGUMENTS)}}
    result = {"role": "tool", "tool_call_id": "call_1", "name": NAME, "content": "Stored."}
    messages = [*user(ASK_PARCEL), {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    fields = {"model": f"{DIALECT}/{tier}", "messages": messages, "tools": [FUNCTION], "max_tokens": 12}
    return litellm.completion(**fields, **REACH).choices[0].message.content


if DIALECT != "ollama_chat":

    def forced(tier):
        choice = {"type": "function", "function": {"name": NAME}}
        message = ask(tier, ASK_PARCEL, tools=[FUNCTION], tool_choice=choice).choices[0].message
        check(message.tool_calls, f"not called: {message.content!r}")
        return message.tool_calls[0].function.name, message.tool_calls[0].function.arguments


def structured(tier):
    return ask(tier, ASK_PARCEL, response_format=Parcel).choices[0].message.content


if DIALECT == "openai":

    def both(tier):
        message = ask(tier, ASK_PARCEL, tools=[FUNCTION], response_format=Parcel).choices[0].message
        return message.tool_calls[0].function.arguments if message.tool_calls else message.content


if DIALECT != "anthropic":

    def embeddings(tier):
        provider = "ollama" if DIALECT == "ollama_chat" else "openai"
        return litellm.embedding(model=f"{provider}/{tier}", input=[QUESTION], api_base=BASE, api_key=KEY).data[0]["embedding"]


def overflow(tier):
    return raised(lambda: ask(tier, STORY), litellm.ContextWindowExceededError)


def unknown(tier):
    return raised(lambda: ask(tier), litellm.NotFoundError)


run("litellm")
