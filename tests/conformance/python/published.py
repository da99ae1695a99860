"""Holds the tables of fields in docs/api.md against the packages that publish them: prints what differs, a line each."""

import re
import sys
from pathlib import Path

import anthropic
import openai
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_count_tokens_params as beta_count_params
from anthropic.types.beta import message_create_params as beta_params
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import input_token_count_params, response_compact_params, response_create_params

PUBLISHED = {
    "/v1/chat/completions": (openai, [chat_params.CompletionCreateParamsNonStreaming]),
    "/v1/completions": (openai, [completion_create_params.CompletionCreateParamsNonStreaming]),
    "/v1/embeddings": (openai, [embedding_create_params.EmbeddingCreateParams]),
    "/v1/responses": (openai, [response_create_params.ResponseCreateParamsNonStreaming]),
    "/v1/responses/input_tokens": (openai, [input_token_count_params.InputTokenCountParams]),
    "/v1/responses/compact": (openai, [response_compact_params.ResponseCompactParams]),
    "/v1/messages": (
        anthropic,
        [message_create_params.MessageCreateParamsNonStreaming, beta_params.MessageCreateParamsNonStreaming],
    ),
    "/v1/messages/count_tokens": (
        anthropic,
        [message_count_tokens_params.MessageCountTokensParams, beta_count_params.MessageCountTokensParams],
    ),
}
# The packages send these as headers.
HEADERS = {"betas", "user_profile_id", "workspace_id"}
# Names that clients send nevertheless: those of before, and vLLM's.
OTHER = {
    "/v1/embeddings": {"truncate_prompt_tokens"},
    "/v1/messages": {"output_format", "temperature", "top_k", "top_p"},
    "/v1/messages/count_tokens": {"output_format"},
}


def published(kinds):
    names = set()
    for kind in kinds:
        names |= kind.__required_keys__ | kind.__optional_keys__
    return names - HEADERS


def main():
    document = Path(sys.argv[1]).read_text()
    differ = []
    for path, (package, kinds) in PUBLISHED.items():
        part = document.split(f"### `{path}`\n")[1].split("\n### ")[0].split("<!--")[0]
        listed, names = set(re.findall(r"^\| `([^`]+)`", part, re.MULTILINE)), published(kinds)
        differ += [f"{path}: {name} is published, and not in the table" for name in sorted(names - listed)]
        differ += [f"{path}: {name} is in the table, and not published" for name in sorted(listed - names - OTHER.get(path, set()))]
        if f"package {package.__version__}." not in part:
            differ.append(f"{path}: the table is not of {package.__name__} {package.__version__}")
    print("\n".join(differ))
    return 1 if differ else 0


sys.exit(main())
