"""The real `litellm` package, in each dialect that it knows, against a model that calls tools, thinks and sees: one
that is played, behind a tier. What a local model can do is tested with one."""

import asyncio
import json
import os
import unittest

# It would fetch a list of prices at its first import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from host import CONFIG, HANG_SECONDS, MODEL  # noqa: E402
from played import LOOKS, MIXED, PARAMETERS, PNG_URI, SEEN, Able, Answer  # noqa: E402
from pydantic import BaseModel  # noqa: E402

# The package prints hints for models that it does not know.
litellm.suppress_debug_info = True
QUESTION = {"role": "user", "content": "What is there?"}
LOOK = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": PARAMETERS}}
DIALECTS = {"openai": "/v1", "anthropic": "", "ollama_chat": ""}


class Place(BaseModel):
    capital: str


class LiteLlm(Able):
    config = CONFIG

    def reach(self, dialect, model="cloud"):
        base = self.host.url + DIALECTS[dialect]
        return {"model": f"{dialect}/{model}", "api_base": base, "api_key": "unused", "timeout": HANG_SECONDS}

    def ask(self, dialect, *messages, model="cloud", **fields):
        fields = {"messages": list(messages or [QUESTION]), "max_tokens": 2048, "max_retries": 0, **fields}
        return litellm.completion(**self.reach(dialect, model), **fields)

    def streamed(self, dialect, *messages, **fields):
        chunks = list(self.ask(dialect, *messages, stream=True, **fields))
        return litellm.stream_chunk_builder(chunks)

    def results_of(self, message):
        """The messages after the question: the calls as received, and the result of each."""
        yield message
        for call in message.tool_calls:
            result = f"{json.loads(call.function.arguments)['at']} by night"
            yield {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": result}

    def check_calls(self, completion, dialect, streamed=False):
        message = completion.choices[0].message
        # Ollama's last line has no call in it, so the package takes the end of such a stream for a stop.
        finish = "stop" if streamed and dialect == "ollama_chat" else "tool_calls"
        self.assertEqual(completion.choices[0].finish_reason, finish)
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
        self.assertEqual(calls, list(LOOKS.calls))
        self.assertEqual(len({call.id for call in message.tool_calls}), 2)
        self.assertEqual(message.reasoning_content, LOOKS.thought)

    def test_a_conversation_with_tools(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(LOOKS)
                first = self.ask(dialect, tools=[LOOK])
                self.check_calls(first, dialect)
                # The package omits the calls in requests to Ollama servers, so there is no second request.
                if dialect != "ollama_chat":
                    self.cloud.play(SEEN)
                    second = self.ask(dialect, QUESTION, *self.results_of(first.choices[0].message), tools=[LOOK])
                    self.assertEqual(second.choices[0].message.content, SEEN.text)
                    self.assertEqual(second.choices[0].finish_reason, "stop")
                    self.check_round()

    def test_a_streamed_conversation_with_tools(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(LOOKS)
                first = self.streamed(dialect, tools=[LOOK])
                self.check_calls(first, dialect, streamed=True)
                if dialect != "ollama_chat":
                    self.cloud.play(SEEN)
                    second = self.streamed(dialect, QUESTION, *self.results_of(first.choices[0].message), tools=[LOOK])
                    self.assertEqual(second.choices[0].message.content, SEEN.text)
                    self.check_round()

    def test_interleaved_calls_are_distinguished(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(MIXED)
                self.check_calls(self.streamed(dialect, tools=[LOOK]), dialect, streamed=True)

    def test_awaited_answers_are_the_same(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(LOOKS, LOOKS)
                whole, streamed = asyncio.run(self.awaited(dialect))
                self.check_calls(whole, dialect)
                self.check_calls(streamed, dialect, streamed=True)

    async def awaited(self, dialect):
        request = {**self.reach(dialect), "messages": [QUESTION], "tools": [LOOK], "max_retries": 0, "max_tokens": 64}
        whole = await litellm.acompletion(**request)
        stream = await litellm.acompletion(**request, stream=True)
        return whole, litellm.stream_chunk_builder([chunk async for chunk in stream])

    def test_an_image_reaches_the_model(self):
        text, image = {"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PNG_URI}}
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(SEEN, SEEN)
                for ask in (self.ask, self.streamed):
                    completion = ask(dialect, {"role": "user", "content": [text, image]})
                    self.assertEqual(completion.choices[0].message.content, SEEN.text)
                    content = self.last["messages"][-1]["content"]
                    self.assertIn(image, content)
                    self.assertIn(text, content)

    def test_an_answer_follows_the_requested_schema(self):
        for dialect in ("openai", "ollama_chat"):
            with self.subTest(dialect):
                self.cloud.play(Answer(text='{"capital": "Paris"}'))
                completion = self.ask(dialect, response_format=Place)
                self.assertEqual(Place.model_validate_json(completion.choices[0].message.content).capital, "Paris")
                request = self.last["response_format"]
                self.assertEqual(request["type"], "json_schema")
                self.assertEqual(request["json_schema"]["schema"]["required"], ["capital"])
        # For models that the package does not know as Anthropic's, it requests the schema as a tool call.
        self.cloud.play(Answer(calls=(("json_tool_call", {"capital": "Paris"}),)))
        completion = self.ask("anthropic", response_format=Place)
        self.assertEqual(Place.model_validate_json(completion.choices[0].message.content).capital, "Paris")
        (tool,) = self.last["tools"]
        self.assertEqual(tool["function"]["parameters"]["required"], ["capital"])
        self.assertEqual(self.last["tool_choice"]["function"]["name"], tool["function"]["name"])

    def test_thinking_is_requested_and_returned(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(SEEN, SEEN)
                for ask in (self.ask, self.streamed):
                    fields = {"reasoning_effort": "low", "allowed_openai_params": ["reasoning_effort"]}
                    message = ask(dialect, **fields).choices[0].message
                    self.assertEqual((message.reasoning_content, message.content), (SEEN.thought, SEEN.text))

    def test_usage_is_returned_whole_and_streamed(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(SEEN, SEEN)
                options = {"stream_options": {"include_usage": True}}
                for usage in (self.ask(dialect).usage, self.streamed(dialect, **options).usage):
                    self.assertEqual((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (20, 12, 32))

    def test_a_response_calls_tools(self):
        self.cloud.play(LOOKS, SEEN)
        tool = {"type": "function", **LOOK["function"]}
        reach = self.reach("openai")
        first = litellm.responses(**reach, input=[QUESTION], tools=[tool])
        calls = [item for item in first.output if item.type == "function_call"]
        self.assertEqual([(call.name, json.loads(call.arguments)) for call in calls], list(LOOKS.calls))
        results = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": f"{json.loads(call.arguments)['at']} by night",
            }
            for call in calls
        ]
        items = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in first.output]
        second = litellm.responses(**reach, input=[QUESTION, *items, *results], tools=[tool])
        self.assertEqual(second.output_text, SEEN.text)
        self.check_round()

    def test_a_streamed_response_ends_with_the_whole_response(self):
        self.cloud.play(SEEN, SEEN)
        request = {**self.reach("openai"), "input": "What is there?"}
        events = list(litellm.responses(**request, stream=True))
        self.assertEqual((events[-1].type, events[-1].response.output_text), ("response.completed", SEEN.text))
        self.assertEqual(asyncio.run(litellm.aresponses(**request)).output_text, SEEN.text)

    def test_text_completions_whole_and_streamed(self):
        request = {
            **self.reach("openai", "fast"),
            "prompt": "The capital of France is",
            "max_tokens": 8,
            "temperature": 0,
        }
        request["model"] = "text-completion-openai/fast"
        whole = litellm.text_completion(**request)
        self.assertTrue(whole.choices[0].text.strip())
        self.assertEqual(whole.usage.completion_tokens, 8)
        chunks = list(litellm.text_completion(**request, stream=True))
        self.assertEqual("".join(chunk.choices[0].text or "" for chunk in chunks), whole.choices[0].text)

    def test_embeddings_are_the_same_in_each_dialect(self):
        texts = ["a", "b"]
        openai = litellm.embedding(**self.reach("openai", "fast"), input=texts)
        reach = {**self.reach("ollama_chat", "fast"), "model": "ollama/fast"}
        ollama = litellm.embedding(**reach, input=texts)
        awaited = asyncio.run(litellm.aembedding(**self.reach("openai", "fast"), input=texts))
        vectors = [[vector["embedding"] for vector in answer.data] for answer in (openai, ollama, awaited)]
        self.assertEqual([len(vector) for vector in vectors[0]], [576, 576])
        self.assertEqual(vectors[0], vectors[2])
        for one, other in zip(vectors[0], vectors[1], strict=True):
            self.assertAlmostEqual(sum(a * b for a, b in zip(one, other, strict=True)), 1, 4)

    def test_a_model_is_shown_as_in_ollama(self):
        info = litellm.get_model_info("ollama/fast", api_base=self.host.url)
        self.assertEqual((info["max_input_tokens"], info["supports_function_calling"]), (2048, False))

    def test_headers_name_the_tier_and_model(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play()
                if dialect != "ollama_chat":
                    self.assertEqual(
                        self.headers_of(self.ask(dialect, model="fast", max_tokens=4))["x-tierbar-model"], MODEL
                    )

    def headers_of(self, completion):
        headers = completion._hidden_params["additional_headers"]
        return {name.removeprefix("llm_provider-"): value for name, value in headers.items()}


if __name__ == "__main__":
    unittest.main()
