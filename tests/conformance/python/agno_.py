"""Agno's agents, by the name of its model: openai, responses or ollama."""

from agno.agent import Agent
from agno.models.message import Message
from agno.run import RunStatus
from agno.tools import tool
from cells import *

DIALECT = sys.argv[1]


def model(tier, tokens):
    if DIALECT == "ollama":
        from agno.models.ollama import Ollama

        return Ollama(id=tier, host=URL, timeout=SECONDS, options={"num_predict": tokens, "temperature": 0})
    of_openai = {"base_url": V1, "api_key": KEY, "max_retries": 0, "timeout": SECONDS, "temperature": 0}
    if DIALECT == "responses":
        from agno.models.openai import OpenAIResponses

        return OpenAIResponses(id=tier, max_output_tokens=tokens, **of_openai)
    from agno.models.openai import OpenAIChat

    return OpenAIChat(id=tier, max_tokens=tokens, **of_openai)


CALLED = []


@tool(name=NAME, description=DESCRIPTION, stop_after_tool_call=True)
def store_parcel(shelf: Literal["K-7", "Q-2"], fragile: bool, floor: Literal[1, 2, 3]) -> str:
    CALLED.append({"shelf": shelf, "fragile": fragile, "floor": floor})
    return "Stored."


def agent(tier, tokens=64, **fields):
    return Agent(model=model(tier, tokens), telemetry=False, **fields)


def text(tier):
    return agent(tier, 12).run(QUESTION).content


def stream(tier):
    return [event.content for event in agent(tier, 12).run(QUESTION, stream=True)]


def tools(tier):
    call = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": json.dumps(ARGUMENTS)}}
    messages = [
        Message(role="user", content=ASK_PARCEL),
        Message(role="assistant", tool_calls=[call]),
        Message(role="tool", tool_call_id="call_1", tool_name=NAME, content="Stored."),
    ]
    return agent(tier, 12, tools=[store_parcel], tool_choice="none").run(messages).content


# Ollama's dialect has no choice of a tool.
if DIALECT != "ollama":

    def forced(tier):
        CALLED.clear()
        agent(tier, tools=[store_parcel], tool_choice="required").run(ASK_PARCEL)
        check(CALLED, "not called")
        return NAME, CALLED[0]


def structured(tier):
    return agent(tier, output_schema=Parcel).run(ASK_PARCEL).content


def refusal(tier, text):
    """A run that fails has the error's message as its content."""
    answer = agent(tier).run(text)
    check(answer.status == RunStatus.error, f"no error, but {answer.content!r}")
    return RuntimeError(answer.content)


def overflow(tier):
    return refusal(tier, STORY)


def unknown(tier):
    return refusal(tier, QUESTION)


run("agno")
