"""smolagents' model: its agents' own prompts alone would fill the context."""

import openai
from cells import *
from smolagents import OpenAIModel, Tool


class StoreParcel(Tool):
    name = NAME
    description = DESCRIPTION
    inputs = {
        "shelf": {"type": "string", "description": "The shelf.", "enum": ["K-7", "Q-2"]},
        "fragile": {"type": "boolean", "description": "Whether it breaks."},
        "floor": {"type": "integer", "description": "The floor.", "enum": [1, 2, 3]},
    }
    output_type = "string"

    def forward(self, shelf: str, fragile: bool, floor: int) -> str:
        return "Stored."


def model(tier, tokens=64):
    return OpenAIModel(tier, api_base=V1, api_key=KEY, client_kwargs={"max_retries": 0, "timeout": SECONDS}, max_tokens=tokens, temperature=0)


def message(role, text):
    return {"role": role, "content": [{"type": "text", "text": text}]}


def ask(tier, text=QUESTION, tokens=64, **more):
    return model(tier, tokens).generate([message("user", text)], **more)


def text(tier):
    return ask(tier, tokens=12).content


def stream(tier):
    return [delta.content for delta in model(tier, 12).generate_stream([message("user", QUESTION)])]


def tools(tier):
    """Its agents write calls and their results as text."""
    call = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}
    messages = [message("user", ASK_PARCEL), message("tool-call", f"Calling tools:\n{[call]}"), message("tool-response", "Stored.")]
    return model(tier, 12).generate(messages, stop_sequences=["Observation:"]).content


def forced(tier):
    """A call is its default."""
    calls = ask(tier, ASK_PARCEL, tools_to_call_from=[StoreParcel()]).tool_calls
    check(calls, "not called")
    return calls[0].function.name, calls[0].function.arguments


def structured(tier):
    form = {"type": "json_schema", "json_schema": {"name": "parcel", "schema": SCHEMA, "strict": True}}
    return ask(tier, ASK_PARCEL, response_format=form).content


def overflow(tier):
    return raised(lambda: ask(tier, STORY), openai.BadRequestError)


def unknown(tier):
    return raised(lambda: ask(tier), openai.NotFoundError)


run("smolagents")
