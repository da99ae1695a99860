import openai
from cells import *

client = openai.OpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS)
MADE = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": json.dumps(ARGUMENTS)}}


def ask(tier, text=QUESTION, **fields):
    return client.chat.completions.create(model=tier, messages=user(text), **{"max_tokens": 64, "temperature": 0, **fields})


def text(tier):
    return ask(tier, max_tokens=12).choices[0].message.content


def stream(tier):
    return [chunk.choices[0].delta.content for chunk in ask(tier, max_tokens=12, stream=True) if chunk.choices]


def tools(tier):
    ask(tier, ASK_PARCEL, tools=[FUNCTION], max_tokens=12)
    result = {"role": "tool", "tool_call_id": MADE["id"], "content": "Stored."}
    messages = [*user(ASK_PARCEL), {"role": "assistant", "tool_calls": [MADE]}, result]
    fields = {"model": tier, "tools": [FUNCTION], "tool_choice": "none", "max_tokens": 12}
    return client.chat.completions.create(messages=messages, **fields).choices[0].message.content


def forced(tier):
    for choice in ("required", {"type": "function", "function": {"name": NAME}}):
        message = ask(tier, ASK_PARCEL, tools=[FUNCTION], tool_choice=choice).choices[0].message
        check(message.tool_calls, f"tool_choice {choice}: {message.content!r}")
        call = message.tool_calls[0].function
    return call.name, call.arguments


def structured(tier):
    return client.chat.completions.parse(
        model=tier, messages=user(ASK_PARCEL), response_format=Parcel, max_tokens=64
    ).choices[0].message.parsed


def both(tier):
    form = {"type": "json_schema", "json_schema": {"name": "parcel", "schema": SCHEMA}}
    message = ask(tier, ASK_PARCEL, tools=[FUNCTION], response_format=form).choices[0].message
    return message.tool_calls[0].function.arguments if message.tool_calls else message.content


def embeddings(tier):
    return client.embeddings.create(model=tier, input=QUESTION).data[0].embedding


def overflow(tier):
    return raised(lambda: ask(tier, STORY), openai.BadRequestError)


def unknown(tier):
    return raised(lambda: ask(tier), openai.NotFoundError)


run("openai")
