"""LangChain's chat models, by the name of the package: openai, anthropic or ollama."""

from cells import *
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

DIALECT = sys.argv[1]


def model(tier, tokens=64):
    if DIALECT == "openai":
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=tier, base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS, max_tokens=tokens, temperature=0)
    if DIALECT == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=tier, base_url=URL, api_key=KEY, max_retries=0, timeout=SECONDS, max_tokens=tokens)
    from langchain_ollama import ChatOllama

    return ChatOllama(model=tier, base_url=URL, num_predict=tokens, temperature=0)


@tool(NAME, args_schema=Parcel, description=DESCRIPTION)
def store_parcel(**_):
    return "Stored."


def text(tier):
    return model(tier, 12).invoke(QUESTION).text


def stream(tier):
    return [chunk.text for chunk in model(tier, 12).stream(QUESTION)]


def tools(tier):
    with_tools = model(tier, 12).bind_tools([store_parcel])
    with_tools.invoke(ASK_PARCEL)
    call = {"name": NAME, "args": ARGUMENTS, "id": "call_1"}
    messages = [HumanMessage(ASK_PARCEL), AIMessage("", tool_calls=[call]), ToolMessage("Stored.", tool_call_id="call_1")]
    return model(tier, 12).invoke(messages).text


if DIALECT != "ollama":

    def forced(tier):
        answer = model(tier).bind_tools([store_parcel], tool_choice=NAME).invoke(ASK_PARCEL)
        check(answer.tool_calls, f"not called: {answer.text!r}")
        return answer.tool_calls[0]["name"], answer.tool_calls[0]["args"]


def structured(tier):
    """By its default method, and by the one with tools."""
    methods = {"openai": ["json_schema", "function_calling"], "anthropic": ["function_calling", "json_schema"]}
    for method in methods.get(DIALECT, ["json_schema"]):
        found = model(tier).with_structured_output(Parcel, method=method).invoke(ASK_PARCEL)
        check(isinstance(found, Parcel), f"{method}: {found!r}")
    return model(tier).with_structured_output(Parcel).invoke(ASK_PARCEL)


if DIALECT == "ollama":

    def both(tier):
        answer = model(tier, SEVERAL).bind_tools([store_parcel], format=SCHEMA).invoke(ASK_PARCEL)
        return answer.tool_calls[0]["args"] if answer.tool_calls else answer.text


if DIALECT == "openai":

    def both(tier):
        # As its agents ask for an object of the provider's.
        answer = model(tier, SEVERAL).bind_tools([store_parcel], strict=True, response_format=Parcel).invoke(ASK_PARCEL)
        return answer.tool_calls[0]["args"] if answer.tool_calls else answer.text


if DIALECT != "anthropic":

    def embeddings(tier):
        if DIALECT == "openai":
            from langchain_openai import OpenAIEmbeddings

            return OpenAIEmbeddings(model=tier, base_url=V1, api_key=KEY, check_embedding_ctx_length=False).embed_query(QUESTION)
        from langchain_ollama import OllamaEmbeddings

        return OllamaEmbeddings(model=tier, base_url=URL).embed_query(QUESTION)


def overflow(tier):
    kinds = (Exception,) if DIALECT == "ollama" else (ContextOverflowError,)
    return raised(lambda: model(tier).invoke(STORY), *kinds)


def unknown(tier):
    return raised(lambda: model(tier).invoke(QUESTION), Exception)


run(f"langchain-{DIALECT}")
