"""pydantic-ai, by the name of its provider: openai, responses, anthropic or ollama."""

from cells import *
from pydantic_ai import Agent, ModelHTTPError, ModelSettings, Tool, UsageLimitExceeded, UsageLimits
from pydantic_ai.output import NativeOutput
from pydantic_ai.profiles import ModelProfile

DIALECT = sys.argv[1]


def model(tier):
    if DIALECT == "anthropic":
        import anthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = anthropic.AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=SECONDS)
        # It knows of no model of ours that it takes schemas.
        profile = ModelProfile(supports_json_schema_output=True)
        return AnthropicModel(tier, provider=AnthropicProvider(anthropic_client=client), profile=profile)
    import openai
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = openai.AsyncOpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS)
    kind = OpenAIResponsesModel if DIALECT == "responses" else OpenAIChatModel
    return kind(tier, provider=OpenAIProvider(openai_client=client))


def agent(tier, tokens=64, **fields):
    return Agent(model(tier), model_settings=ModelSettings(max_tokens=tokens), retries=0, **fields)


def text(tier):
    return agent(tier, 12).run_sync(QUESTION).output


def stream(tier):
    import asyncio

    async def pieces():
        async with agent(tier, 12).run_stream(QUESTION) as run:
            return [piece async for piece in run.stream_text(delta=True, debounce_by=None)]

    return asyncio.run(pieces())


def tools(tier):
    def store_parcel(shelf: str, fragile: bool, floor: int) -> str:
        """Stores a parcel."""
        return "Stored."

    return agent(tier, 12, tools=[Tool(store_parcel)]).run_sync(QUESTION).output


def forced(tier):
    """Its default way to an object: a tool that must be called."""
    return NAME, agent(tier, output_type=Parcel).run_sync(ASK_PARCEL).output


def structured(tier):
    return agent(tier, output_type=NativeOutput(Parcel)).run_sync(ASK_PARCEL).output


def both(tier):
    called = []

    def store_parcel(parcel: Parcel) -> str:
        """Stores a parcel."""
        called.append(parcel)
        return "Stored."

    with_tools = agent(tier, SEVERAL, output_type=NativeOutput(Parcel), tools=[Tool(store_parcel)])
    try:
        return with_tools.run_sync(ASK_PARCEL, usage_limits=UsageLimits(request_limit=2)).output
    # A small model may call again and again.
    except UsageLimitExceeded:
        return called[0]


def overflow(tier):
    error = raised(lambda: agent(tier).run_sync(STORY), ModelHTTPError)
    check(error.status_code == 400, f"status {error.status_code}")
    return error


def unknown(tier):
    error = raised(lambda: agent(tier).run_sync(QUESTION), ModelHTTPError)
    check(error.status_code == 404, f"status {error.status_code}")
    return error


run("pydantic-ai-slim")
