"""OpenAI's Agents SDK, by the name of the API: chat or responses."""

import asyncio

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from cells import *

# Traces would go to OpenAI.
set_tracing_disabled(True)
MODEL = OpenAIResponsesModel if sys.argv[1] == "responses" else OpenAIChatCompletionsModel
CALLED = []


@function_tool(name_override=NAME, description_override=DESCRIPTION)
def store_parcel(shelf: Literal["K-7", "Q-2"], fragile: bool, floor: Literal[1, 2, 3]) -> str:
    CALLED.append({"shelf": shelf, "fragile": fragile, "floor": floor})
    return "Stored."


def agent(tier, tokens=64, choice=None, **fields):
    client = openai.AsyncOpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS)
    settings = ModelSettings(max_tokens=tokens, temperature=0, tool_choice=choice, parallel_tool_calls=False if fields.get("tools") else None)
    return Agent(name="clerk", model=MODEL(model=tier, openai_client=client), model_settings=settings, **fields)


def ask(agent, text):
    return asyncio.run(Runner.run(agent, text, max_turns=2)).final_output


def text(tier):
    return ask(agent(tier, 12), QUESTION)


def stream(tier):
    async def pieces():
        events = Runner.run_streamed(agent(tier, 12), QUESTION).stream_events()
        raw = [event.data async for event in events if event.type == "raw_response_event"]
        return [event.delta for event in raw if event.type == "response.output_text.delta"]

    return asyncio.run(pieces())


def tools(tier):
    call = {"type": "function_call", "call_id": "call_1", "name": NAME, "arguments": json.dumps(ARGUMENTS)}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "Stored."}
    # The SDK raises an error for a response that is cut off.
    return ask(agent(tier, 512, choice="none", tools=[store_parcel]), [*user(ASK_PARCEL), call, result])


def forced(tier):
    for choice in ("required", NAME):
        CALLED.clear()
        ask(agent(tier, choice=choice, tools=[store_parcel], tool_use_behavior="stop_on_first_tool"), ASK_PARCEL)
        check(CALLED, f"tool_choice {choice}: not called")
    return NAME, CALLED[0]


def structured(tier):
    return ask(agent(tier, output_type=Parcel), ASK_PARCEL)


def both(tier):
    CALLED.clear()
    asked = agent(tier, output_type=Parcel, tools=[store_parcel], tool_use_behavior="stop_on_first_tool")
    answer = ask(asked, ASK_PARCEL)
    return CALLED[0] if CALLED else answer


def overflow(tier):
    return raised(lambda: ask(agent(tier), STORY), openai.BadRequestError)


def unknown(tier):
    return raised(lambda: ask(agent(tier), QUESTION), openai.NotFoundError)


run("openai-agents")
