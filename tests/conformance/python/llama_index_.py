"""LlamaIndex, by its integration: openai_like or ollama."""

from cells import *
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.tools import FunctionTool

DIALECT = sys.argv[1]


def model(tier, tokens=64):
    if DIALECT == "openai_like":
        from llama_index.llms.openai_like import OpenAILike

        fields = {"is_chat_model": True, "is_function_calling_model": True, "context_window": CONTEXT, "max_retries": 0}
        return OpenAILike(model=tier, api_base=V1, api_key=KEY, timeout=SECONDS, max_tokens=tokens, temperature=0, **fields)
    from llama_index.llms.ollama import Ollama

    options = {"num_predict": tokens}
    return Ollama(model=tier, base_url=URL, request_timeout=SECONDS, temperature=0, context_window=CONTEXT, additional_kwargs=options)


def say_(text):
    return [ChatMessage(role=MessageRole.USER, content=text)]


def store_parcel(shelf: str, fragile: bool, floor: int) -> str:
    """Stores a parcel."""
    return "Stored."


TOOL = FunctionTool.from_defaults(store_parcel, name=NAME, fn_schema=Parcel)


def text(tier):
    return model(tier, 12).chat(say_(QUESTION)).message.content


def stream(tier):
    return [part.delta for part in model(tier, 12).stream_chat(say_(QUESTION))]


def tools(tier):
    return model(tier, 12).chat_with_tools([TOOL], user_msg=QUESTION).message.content


if DIALECT == "openai_like":

    def forced(tier):
        llm = model(tier)
        answer = llm.chat_with_tools([TOOL], user_msg=ASK_PARCEL, tool_required=True)
        calls = llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        check(calls, f"not called: {answer.message.content!r}")
        return calls[0].tool_name, calls[0].tool_kwargs


def structured(tier):
    return model(tier).as_structured_llm(Parcel).complete(ASK_PARCEL).raw


def embeddings(tier):
    if DIALECT == "openai_like":
        from llama_index.embeddings.openai_like import OpenAILikeEmbedding

        return OpenAILikeEmbedding(model_name=tier, api_base=V1, api_key=KEY, max_retries=0).get_text_embedding(QUESTION)
    from llama_index.embeddings.ollama import OllamaEmbedding

    return OllamaEmbedding(model_name=tier, base_url=URL).get_text_embedding(QUESTION)


def overflow(tier):
    return raised(lambda: model(tier).chat(say_(STORY)), Exception)


def unknown(tier):
    return raised(lambda: model(tier).chat(say_(QUESTION)), Exception)


run(f"llama-index-llms-{DIALECT.replace('_', '-')}")
