"""The real `ollama` package with a scripted model that calls tools, thinks and sees images, behind a tier."""

import asyncio
import json
import unittest

import ollama
from host import HANG_SECONDS
from played import LOOKS, MIXED, PNG, PNG_BASE64, PNG_URI, SEEN, Able, Answer

QUESTION = {"role": "user", "content": "What is there?"}
SEEN_IMAGE = {"type": "image_url", "image_url": {"url": PNG_URI}}
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}


def look(at: str) -> str:
    """Looks.

    Args:
        at: A place.
    """
    return f"{at} by night"


def gathered(parts):
    """A streamed answer's whole message, and its last line."""
    text, thoughts, calls = "", "", []
    for part in parts:
        text += part.message.content or ""
        thoughts += part.message.thinking or ""
        calls += part.message.tool_calls or []
    message = ollama.Message(role="assistant", content=text, thinking=thoughts or None, tool_calls=calls or None)
    return message, part


class Ollama(Able):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = ollama.Client(host=cls.host.url, timeout=HANG_SECONDS)
        cls.addClassCleanup(cls.client.close)

    def ask(self, *messages, **fields):
        return self.client.chat(model="cloud", messages=messages or [QUESTION], **fields)

    def streamed(self, *messages, **fields):
        return gathered(list(self.ask(*messages, stream=True, **fields)))

    def results_of(self, message):
        """The messages after the question: the calls as received, and the result of each."""
        yield message
        for call in message.tool_calls:
            yield {"role": "tool", "tool_name": call.function.name, "content": look(**call.function.arguments)}

    def check_calls(self, message):
        self.assertEqual((message.thinking, message.content), (LOOKS.thought, ""))
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls]
        self.assertEqual(calls, list(LOOKS.calls))

    def test_a_conversation_with_tools_and_thinking(self):
        self.cloud.play(LOOKS, SEEN)
        first = self.ask(tools=[look], think=True)
        self.check_calls(first.message)
        self.assertTrue(first.done)
        second = self.ask(QUESTION, *self.results_of(first.message), tools=[look], think=True)
        self.assertEqual((second.message.content, second.message.thinking), (SEEN.text, SEEN.thought))
        self.assertEqual(second.done_reason, "stop")
        self.check_round()

    def test_a_streamed_conversation_with_tools_and_thinking(self):
        self.cloud.play(LOOKS, SEEN)
        first, last = self.streamed(tools=[look], think="low")
        self.check_calls(first)
        self.assertTrue(last.done)
        self.assertEqual(self.last["reasoning_effort"], "low")
        second, last = self.streamed(QUESTION, *self.results_of(first), tools=[look], think=True)
        self.assertEqual((second.content, second.thinking), (SEEN.text, SEEN.thought))
        self.assertEqual(last.done_reason, "stop")
        self.check_round()

    def test_interleaved_calls_are_returned_whole(self):
        self.cloud.play(MIXED)
        self.check_calls(self.streamed(tools=[look], think=True)[0])

    def test_an_asynchronous_client_gets_the_same_answers(self):
        self.cloud.play(LOOKS, LOOKS)

        async def ask():
            client = ollama.AsyncClient(host=self.host.url, timeout=HANG_SECONDS)
            fields = {"model": "cloud", "messages": [QUESTION], "tools": [look], "think": True}
            whole = await client.chat(**fields)
            parts = [part async for part in await client.chat(**fields, stream=True)]
            await client.close()
            return whole.message, gathered(parts)[0]

        for message in asyncio.run(ask()):
            self.check_calls(message)

    def test_text_beside_a_single_call(self):
        answer = Answer(text="Let me see.", calls=(("look", {"at": "Oslo"}),))
        self.cloud.play(answer, answer)
        for message in (self.ask(tools=[look]).message, self.streamed(tools=[look])[0]):
            self.assertEqual(message.content, "Let me see.")
            (call,) = message.tool_calls
            self.assertEqual((call.function.name, call.function.arguments), ("look", {"at": "Oslo"}))

    def test_images_reach_the_model(self):
        self.cloud.play(SEEN, SEEN, SEEN)
        # Bytes, and base64: the package sends both alike.
        for image in (PNG, PNG_BASE64):
            answer = self.ask({"role": "user", "content": "What is this?", "images": [image]})
            self.assertEqual(answer.message.content, SEEN.text)
            self.check_image()
        answer = self.client.generate(model="cloud", prompt="What is this?", images=[PNG], system="Be brief.")
        self.assertEqual(answer.response, SEEN.text)
        self.check_image()
        self.assertEqual(self.last["messages"][0], {"role": "system", "content": "Be brief."})

    def check_image(self):
        content = self.last["messages"][-1]["content"]
        self.assertIn(SEEN_IMAGE, content)
        self.assertIn({"type": "text", "text": "What is this?"}, content)

    def test_generate_returns_thinking_beside_the_text(self):
        self.cloud.play(SEEN, SEEN)
        whole = self.client.generate(model="cloud", prompt="What is there?", think=True)
        parts = list(self.client.generate(model="cloud", prompt="What is there?", think=True, stream=True))
        self.assertEqual((whole.response, whole.thinking), (SEEN.text, SEEN.thought))
        self.assertEqual("".join(part.response or "" for part in parts), SEEN.text)
        self.assertEqual("".join(part.thinking or "" for part in parts), SEEN.thought)
        self.assertEqual([request["think"] for request in self.cloud.requests], [True, True])
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])

    def test_an_answer_follows_the_requested_schema(self):
        answer = Answer(text='{"capital":"Paris"}')
        self.cloud.play(answer, answer, answer, answer)
        for message in (self.ask(format=SCHEMA).message, self.streamed(format=SCHEMA)[0]):
            self.assertEqual(json.loads(message.content), {"capital": "Paris"})
            request = self.last["response_format"]
            self.assertEqual((request["type"], request["json_schema"]["schema"]), ("json_schema", SCHEMA))
        self.client.generate(model="cloud", prompt="Of France?", format=SCHEMA)
        self.assertEqual(self.last["response_format"], request)
        self.ask(format="json")
        self.assertEqual(self.last["response_format"], {"type": "json_object"})

    def test_usage_is_returned_whole_and_on_the_last_line(self):
        self.cloud.play(SEEN, SEEN)
        for answer in (self.ask(), self.streamed()[1]):
            self.assertEqual((answer.prompt_eval_count, answer.eval_count), (20, 12))
            self.assertGreater(answer.total_duration, 0)

    def test_options_reach_the_model_by_their_openai_names(self):
        self.cloud.play(SEEN)
        self.ask(options={"num_predict": 7, "temperature": 0.5, "seed": 3, "stop": ["END"], "num_ctx": 4096})
        request = {name: self.last.get(name) for name in ("max_tokens", "temperature", "seed", "stop", "num_ctx")}
        self.assertEqual(request, {"max_tokens": 7, "temperature": 0.5, "seed": 3, "stop": ["END"], "num_ctx": None})


if __name__ == "__main__":
    unittest.main()
