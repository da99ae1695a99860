import openai
from cells import *

client = openai.OpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS)
TOOL = {"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}


def ask(tier, prompt=QUESTION, **fields):
    return client.responses.create(model=tier, input=prompt, **{"max_output_tokens": 64, "temperature": 0, **fields})


def text(tier):
    return ask(tier, max_output_tokens=12).output_text


def stream(tier):
    events = ask(tier, max_output_tokens=12, stream=True)
    return [event.delta for event in events if event.type == "response.output_text.delta"]


def tools(tier):
    ask(tier, ASK_PARCEL, tools=[TOOL], max_output_tokens=12)
    call = {"type": "function_call", "call_id": "call_1", "name": NAME, "arguments": json.dumps(ARGUMENTS)}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "Stored."}
    return ask(tier, [*user(ASK_PARCEL), call, result], tools=[TOOL], tool_choice="none", max_output_tokens=12).output_text


def forced(tier):
    for choice in ("required", {"type": "function", "name": NAME}):
        answer = ask(tier, ASK_PARCEL, tools=[TOOL], tool_choice=choice)
        calls = [item for item in answer.output if item.type == "function_call"]
        check(calls, f"tool_choice {choice}: {answer.output_text!r}")
    return calls[0].name, calls[0].arguments


def structured(tier):
    return client.responses.parse(model=tier, input=ASK_PARCEL, text_format=Parcel, max_output_tokens=64).output_parsed


def both(tier):
    form = {"type": "json_schema", "name": "parcel", "schema": SCHEMA}
    answer = ask(tier, ASK_PARCEL, tools=[TOOL], text={"format": form})
    calls = [item.arguments for item in answer.output if item.type == "function_call"]
    return calls[0] if calls else answer.output_text


def overflow(tier):
    return raised(lambda: ask(tier, STORY), openai.BadRequestError)


def unknown(tier):
    return raised(lambda: ask(tier), openai.NotFoundError)


run("openai")
