from cells import *
from haystack.components.embedders import OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import Tool
from haystack.utils import Secret

TOOL = Tool(name=NAME, description=DESCRIPTION, parameters=SCHEMA, function=lambda **_: "Stored.")


def ask(tier, *messages, tokens=64, callback=None, **fields):
    generator = OpenAIChatGenerator(
        model=tier, api_base_url=V1, api_key=Secret.from_token(KEY), max_retries=0, timeout=SECONDS, streaming_callback=callback
    )
    made = [ChatMessage.from_user(each) if isinstance(each, str) else each for each in messages]
    tools = fields.pop("tools", None)
    return generator.run(made, generation_kwargs={"max_tokens": tokens, **fields}, tools=tools)["replies"][0]


def text(tier):
    return ask(tier, QUESTION, tokens=12).text


def stream(tier):
    pieces = []
    ask(tier, QUESTION, tokens=12, callback=lambda chunk: pieces.append(chunk.content))
    return pieces


def tools(tier):
    ask(tier, ASK_PARCEL, tokens=12, tools=[TOOL])
    call = ToolCall(tool_name=NAME, arguments=ARGUMENTS, id="call_1")
    messages = [ASK_PARCEL, ChatMessage.from_assistant(tool_calls=[call]), ChatMessage.from_tool("Stored.", origin=call)]
    return ask(tier, *messages, tokens=12).text


def forced(tier):
    reply = ask(tier, ASK_PARCEL, tools=[TOOL], tool_choice="required")
    check(reply.tool_calls, f"not called: {reply.text!r}")
    return reply.tool_calls[0].tool_name, reply.tool_calls[0].arguments


def structured(tier):
    return ask(tier, ASK_PARCEL, response_format=Parcel).text


def embeddings(tier):
    return OpenAITextEmbedder(model=tier, api_base_url=V1, api_key=Secret.from_token(KEY)).run(QUESTION)["embedding"]


def overflow(tier):
    return raised(lambda: ask(tier, STORY), Exception)


def unknown(tier):
    return raised(lambda: ask(tier, QUESTION), Exception)


run("haystack-ai")
