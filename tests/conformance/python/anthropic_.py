import anthropic
from cells import *

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=SECONDS)
TOOL = {"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}


def ask(tier, text=QUESTION, **fields):
    return client.messages.create(model=tier, messages=user(text), **{"max_tokens": 64, **fields})


def text_in(message):
    return "".join(block.text for block in message.content if block.type == "text")


def text(tier):
    return text_in(ask(tier, max_tokens=12))


def stream(tier):
    with client.messages.stream(model=tier, messages=user(QUESTION), max_tokens=12) as pieces:
        return list(pieces.text_stream)


def tools(tier):
    ask(tier, ASK_PARCEL, tools=[TOOL], max_tokens=12)
    call = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Stored."}
    messages = [*user(ASK_PARCEL), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return text_in(client.messages.create(model=tier, messages=messages, tools=[TOOL], tool_choice={"type": "none"}, max_tokens=12))


def forced(tier):
    for choice in ({"type": "any"}, {"type": "tool", "name": NAME}):
        message = ask(tier, ASK_PARCEL, tools=[TOOL], tool_choice=choice)
        calls = [block for block in message.content if block.type == "tool_use"]
        check(calls, f"tool_choice {choice}: {text_in(message)!r}")
    return calls[0].name, calls[0].input


def structured(tier):
    return client.messages.parse(model=tier, messages=user(ASK_PARCEL), output_format=Parcel, max_tokens=64).parsed_output


def both(tier):
    config = {"format": {"type": "json_schema", "schema": SCHEMA}}
    message = ask(tier, ASK_PARCEL, tools=[TOOL], output_config=config)
    calls = [block.input for block in message.content if block.type == "tool_use"]
    return calls[0] if calls else text_in(message)


def overflow(tier):
    return raised(lambda: ask(tier, STORY), anthropic.BadRequestError)


def unknown(tier):
    return raised(lambda: ask(tier), anthropic.NotFoundError)


run("anthropic")
