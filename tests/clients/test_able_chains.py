"""A chain by its name, through each real package: the next step answers for a busy cloud, or the request is queued."""

import os
import unittest

# It would fetch a list of prices at its first import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import anthropic  # noqa: E402
import litellm  # noqa: E402
import ollama  # noqa: E402
import openai  # noqa: E402
from host import CONFIG, HANG_SECONDS  # noqa: E402
from packages import Packages  # noqa: E402
from played import LOOKS, PARAMETERS, SEEN, Answer, Cloud, Refusal, tier  # noqa: E402

# The package prints hints for what it considers a failure.
litellm.suppress_debug_info = True
CHAINS = '[chains.night]\nsteps = ["busy", "cloud"]\n[chains.later]\nsteps = ["busy", "queue"]\n[chains.here]\nsteps = ["busy", "fast"]\n'
QUESTION = [{"role": "user", "content": "What is there?"}]
DIALECTS = {"openai": "/v1", "anthropic": "", "ollama_chat": ""}


class Chained(Packages):
    @classmethod
    def setUpClass(cls):
        cls.busy = Cloud(always=Refusal(429, "Too many of them.", (("Retry-After", "3600"),)))
        cls.addClassCleanup(cls.busy.stop)
        cls.config = tier("busy", cls.busy) + CONFIG + CHAINS
        super().setUpClass()

    def litellm(self, dialect, model, **fields):
        base = self.host.url + DIALECTS[dialect]
        reach = {"api_base": base, "api_key": "unused", "timeout": HANG_SECONDS, "max_retries": 0}
        return litellm.completion(model=f"{dialect}/{model}", messages=QUESTION, max_tokens=64, **reach, **fields)

    def check_headers(self, headers):
        named = {name: headers[f"x-tierbar-{name}"] for name in ("chain", "tier", "fallback-from")}
        self.assertEqual(named, {"chain": "night", "tier": "cloud", "fallback-from": "busy"})
        self.assertIn("busy=", headers["x-tierbar-tried"])


class InPlaceOfTheFirst(Chained):
    def test_openai_gets_an_answer_and_its_source(self):
        self.cloud.play(SEEN, SEEN, SEEN)
        fields = {"model": "night", "messages": QUESTION}
        raw = self.openai.chat.completions.with_raw_response.create(**fields)
        completion = raw.parse()
        self.assertEqual(completion.choices[0].message.content, SEEN.text)
        self.check_headers(raw.headers)
        self.assertEqual((completion.tierbar["fallback_from"], completion.tierbar["tier"]), ("busy", "cloud"))
        raw = self.openai.chat.completions.with_raw_response.create(**fields, stream=True)
        chunks = list(raw.parse())
        self.check_headers(raw.headers)
        self.assertEqual(chunks[0].tierbar["fallback_from"], "busy")
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), SEEN.text)
        raw = self.openai.responses.with_raw_response.create(model="night", input="What is there?")
        self.assertEqual(raw.parse().output_text, SEEN.text)
        self.check_headers(raw.headers)

    def test_anthropic_gets_an_answer_and_its_source(self):
        self.cloud.play(SEEN, SEEN)
        fields = {"model": "night", "messages": QUESTION, "max_tokens": 64}
        raw = self.anthropic.messages.with_raw_response.create(**fields)
        self.assertEqual(raw.parse().content[-1].text, SEEN.text)
        self.check_headers(raw.headers)
        with self.anthropic.messages.stream(**fields) as stream:
            self.assertEqual("".join(stream.text_stream), SEEN.text)
            self.check_headers(stream.response.headers)

    def test_ollama_gets_an_answer(self):
        # The package returns no headers.
        self.cloud.play(SEEN, SEEN, SEEN)
        fields = {"model": "night", "messages": QUESTION}
        self.assertEqual(self.ollama.chat(**fields).message.content, SEEN.text)
        parts = list(self.ollama.chat(**fields, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), SEEN.text)
        self.assertEqual(self.ollama.generate(model="night", prompt="What is there?").response, SEEN.text)

    def test_litellm_gets_answers_and_sources_in_each_dialect(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                self.cloud.play(SEEN, SEEN)
                whole = self.litellm(dialect, "night")
                self.assertEqual(whole.choices[0].message.content, SEEN.text)
                headers = whole._hidden_params["additional_headers"]
                # The package returns no headers of Ollama servers.
                if dialect != "ollama_chat":
                    self.check_headers({name.removeprefix("llm_provider-"): value for name, value in headers.items()})
                chunks = self.litellm(dialect, "night", stream=True)
                self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), SEEN.text)

    def test_our_own_engine_answers_as_without_a_chain(self):
        fields = {"messages": QUESTION, "max_tokens": 6, "temperature": 0, "logprobs": True, "top_logprobs": 2, "n": 2}
        here, alone = (self.openai.chat.completions.create(model=model, **fields) for model in ("here", "fast"))
        self.assertEqual(here.tierbar["tier"], "fast")
        for one, other in zip(here.choices, alone.choices, strict=True):
            self.assertEqual(one.message.content, other.message.content)
            self.assertEqual(len(one.logprobs.content), 6)
            self.assertEqual([token.token for token in one.logprobs.content], [token.token for token in other.logprobs.content])
        self.assertEqual(here.usage.completion_tokens, alone.usage.completion_tokens)
        fields = {"prompt": "1, 2, 3,", "max_tokens": 6, "temperature": 0, "logprobs": 1}
        here, alone = (self.openai.completions.create(model=model, **fields).choices[0] for model in ("here", "fast"))
        self.assertEqual((here.text, here.logprobs.tokens), (alone.text, alone.logprobs.tokens))

    def test_a_chain_runs_a_task_in_its_schema(self):
        self.cloud.play(Answer(text='{"type": "fyi", "urgency": 0, "needs_cloud": false}'))
        answer = self.openai.post("/triage", body={"model": "night", "text": "The night was calm."}, cast_to=object)
        self.assertEqual((answer["type"], answer["tier"]), ("fyi", "cloud"))
        self.assertIs(self.last["think"], False)
        self.assertEqual(self.last["response_format"]["type"], "json_schema")

    def test_tool_calls_pass_through(self):
        self.cloud.play(LOOKS, LOOKS, LOOKS)
        tool = {"name": "look", "description": "Looks.", "parameters": PARAMETERS}
        tools = [{"type": "function", "function": tool}]
        message = self.openai.chat.completions.create(model="night", messages=QUESTION, tools=tools).choices[0].message
        self.assertEqual([call.function.name for call in message.tool_calls], ["look", "look"])
        self.assertEqual(message.reasoning_content, LOOKS.thought)
        tool = {"name": "look", "description": "Looks.", "input_schema": PARAMETERS}
        message = self.anthropic.messages.create(model="night", messages=QUESTION, max_tokens=64, tools=[tool])
        calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        self.assertEqual(calls, list(LOOKS.calls))
        message = self.ollama.chat(model="night", messages=QUESTION, tools=tools).message
        self.assertEqual([call.function.arguments["at"] for call in message.tool_calls], ["Paris", "Rome"])


class Later(Chained):
    """A queued request is `202`, which no package knows: none may take it for an empty answer."""

    def test_the_raw_response_has_the_location_of_the_answer(self):
        request = {"model": "later", "messages": QUESTION}
        for raw in (
            self.openai.chat.completions.with_raw_response.create(**request),
            self.anthropic.messages.with_raw_response.create(**request, max_tokens=64),
        ):
            self.assertEqual(raw.status_code, 202)
            self.assertIn("busy", raw.parse().reason)
            kept = self.openai.get(raw.headers["location"].removeprefix("/v1"), cast_to=object)
            self.assertEqual((kept["object"], kept["state"]), ("queued.request", "waiting"))

    def test_openai_has_no_choices_and_no_output(self):
        completion = self.openai.chat.completions.create(model="later", messages=QUESTION)
        self.assertEqual((completion.object, completion.choices), ("queued.request", None))
        response = self.openai.responses.create(model="later", input="What is there?")
        self.assertEqual((response.object, response.output), ("queued.request", None))
        with self.assertRaises(TypeError):
            _ = response.output_text
        strict = self.openai.copy(_extra_kwargs={"_strict_response_validation": True})
        with self.assertRaises(openai.APIResponseValidationError):
            strict.chat.completions.create(model="later", messages=QUESTION)

    def test_anthropic_has_no_content(self):
        message = self.anthropic.messages.create(model="later", messages=QUESTION, max_tokens=64)
        self.assertEqual((message.object, message.content), ("queued.request", None))

    def test_litellm_raises(self):
        for dialect in DIALECTS:
            with self.subTest(dialect), self.assertRaises(Exception) as raised:
                self.litellm(dialect, "later")
            self.assertIsInstance(raised.exception, openai.OpenAIError)

    def test_a_stream_is_refused_as_without_a_queue(self):
        request = {"model": "later", "messages": QUESTION, "stream": True}
        with self.assertRaises(openai.APIStatusError):
            list(self.openai.chat.completions.create(**request))
        with self.assertRaises(openai.APIStatusError):
            list(self.openai.responses.create(model="later", input="What is there?", stream=True))
        with self.assertRaises(anthropic.APIStatusError):
            list(self.anthropic.messages.create(**request, max_tokens=64))
        with self.assertRaises(anthropic.APIStatusError):
            with self.anthropic.messages.stream(model="later", messages=QUESTION, max_tokens=64) as stream:
                list(stream.text_stream)
        for dialect in DIALECTS:
            with self.subTest(dialect), self.assertRaises(openai.OpenAIError):
                list(self.litellm(dialect, "later", stream=True))

    def test_ollama_is_refused(self):
        request = {"model": "later", "messages": QUESTION}
        for stream in (False, True):
            with self.subTest(stream=stream), self.assertRaises(ollama.ResponseError):
                list(self.ollama.chat(**request, stream=stream))
            with self.subTest(stream=stream), self.assertRaises(ollama.ResponseError):
                list(self.ollama.generate(model="later", prompt="What is there?", stream=stream))


if __name__ == "__main__":
    unittest.main()
