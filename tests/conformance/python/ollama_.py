import ollama
from cells import *

client = ollama.Client(host=URL, timeout=SECONDS)


def ask(tier, text=QUESTION, tokens=64, **fields):
    return client.chat(model=tier, messages=user(text), options={"num_predict": tokens, "temperature": 0}, **fields)


def text(tier):
    return ask(tier, tokens=12).message.content


def stream(tier):
    return [part.message.content for part in ask(tier, tokens=12, stream=True)]


def tools(tier):
    ask(tier, ASK_PARCEL, tokens=12, tools=[FUNCTION])
    call = {"function": {"name": NAME, "arguments": ARGUMENTS}}
    messages = [*user(ASK_PARCEL), {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_name": NAME, "content": "Stored."}]
    return client.chat(model=tier, messages=messages, options={"num_predict": 12}).message.content


def structured(tier):
    return ask(tier, ASK_PARCEL, format=SCHEMA).message.content


def both(tier):
    message = ask(tier, ASK_PARCEL, format=SCHEMA, tools=[FUNCTION]).message
    return dict(message.tool_calls[0].function.arguments) if message.tool_calls else message.content


def embeddings(tier):
    return client.embed(model=tier, input=QUESTION).embeddings[0]


def overflow(tier):
    error = raised(lambda: ask(tier, STORY), ollama.ResponseError)
    check(error.status_code == 400, f"status {error.status_code}")
    return error


def unknown(tier):
    error = raised(lambda: ask(tier), ollama.ResponseError)
    check(error.status_code == 404, f"status {error.status_code}")
    return error


run("ollama")
