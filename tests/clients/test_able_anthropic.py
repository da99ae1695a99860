"""The real `anthropic` package with a scripted model that calls tools, thinks and sees images, behind a tier."""

import asyncio
import json
import unittest

import anthropic
from host import HANG_SECONDS
from played import LOOKS, MIXED, PARAMETERS, PNG_BASE64, PNG_URI, SEEN, Able, Answer
from pydantic import BaseModel

QUESTION = {"role": "user", "content": "What is there?"}
LOOK = {"name": "look", "description": "Looks.", "input_schema": PARAMETERS}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}}
SEEN_IMAGE = {"type": "image_url", "image_url": {"url": PNG_URI}}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


class Place(BaseModel):
    country: str
    capital: str


class Anthropic(Able):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.settings = {"base_url": cls.host.url, "api_key": "unused", "max_retries": 0, "timeout": HANG_SECONDS}
        # Each answer is checked against the package's types.
        cls.client = anthropic.Anthropic(**cls.settings, _strict_response_validation=True)
        cls.addClassCleanup(cls.client.close)

    def ask(self, *messages, **fields):
        fields = {"model": "cloud", "messages": messages or [QUESTION], "max_tokens": 64, **fields}
        return self.client.messages.create(**fields)

    def streamed(self, *messages, **fields):
        fields = {"model": "cloud", "messages": messages or [QUESTION], "max_tokens": 64, **fields}
        with self.client.messages.stream(**fields) as stream:
            return list(stream), stream.get_final_message()

    def results_of(self, message):
        """The messages after the question: the blocks as received, and the result of each call."""
        yield {"role": "assistant", "content": message.content}
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"{call.input['at']} by night"} for call in calls
        ]
        yield {"role": "user", "content": results}

    def check_calls(self, message):
        self.assertEqual([block.type for block in message.content], ["thinking", "tool_use", "tool_use"])
        thought, *calls = message.content
        self.assertEqual((thought.thinking, message.stop_reason), (LOOKS.thought, "tool_use"))
        self.assertTrue(thought.signature)
        self.assertEqual([(call.name, call.input) for call in calls], list(LOOKS.calls))
        self.assertEqual(len({call.id for call in calls}), 2)

    def test_a_conversation_with_tools_and_thinking(self):
        self.cloud.play(LOOKS, SEEN)
        first = self.ask(tools=[LOOK], tool_choice={"type": "any"}, **THINKING)
        self.check_calls(first)
        self.assertEqual((self.last["think"], self.last["thinking_budget_tokens"]), (True, 1024))
        self.assertEqual(self.last["tool_choice"], "required")
        self.assertEqual(self.last["tools"][0]["function"]["parameters"], PARAMETERS)
        second = self.ask(QUESTION, *self.results_of(first), tools=[LOOK], **THINKING)
        self.assertEqual([block.type for block in second.content], ["thinking", "text"])
        self.assertEqual((second.content[0].thinking, second.content[1].text), (SEEN.thought, SEEN.text))
        self.assertEqual(second.stop_reason, "end_turn")
        self.check_round()

    def test_a_streamed_conversation_with_tools_and_thinking(self):
        self.cloud.play(LOOKS, SEEN)
        events, first = self.streamed(tools=[LOOK], **THINKING)
        self.check_calls(first)
        self.assertEqual([event.thinking for event in events if event.type == "thinking"], ["I ", "should ", "look."])
        pieces = [event.partial_json for event in events if event.type == "input_json"]
        self.assertGreater(len(pieces), 4)
        # A block ends before the next one begins.
        blocks = [(event.type, event.index) for event in events if event.type.startswith("content_block_st")]
        order = [(f"content_block_{what}", index) for index in range(3) for what in ("start", "stop")]
        self.assertEqual(blocks, order)
        events, second = self.streamed(QUESTION, *self.results_of(first), tools=[LOOK], **THINKING)
        self.assertEqual("".join(event.text for event in events if event.type == "text"), SEEN.text)
        self.assertEqual(second.content[-1].text, SEEN.text)
        self.check_round()

    def test_interleaved_calls_are_returned_one_by_one(self):
        self.cloud.play(MIXED)
        events, message = self.streamed(tools=[LOOK])
        self.check_calls(message)
        started = [event.index for event in events if event.type == "content_block_start"]
        self.assertEqual(started, [0, 1, 2])

    def test_an_asynchronous_client_gets_the_same_answers(self):
        self.cloud.play(LOOKS, LOOKS)

        async def ask():
            async with anthropic.AsyncAnthropic(**self.settings) as client:
                fields = {"model": "cloud", "messages": [QUESTION], "tools": [LOOK], "max_tokens": 64}
                whole = await client.messages.create(**fields)
                async with client.messages.stream(**fields) as stream:
                    return whole, await stream.get_final_message()

        for message in asyncio.run(ask()):
            self.check_calls(message)

    def test_the_packages_tool_runner(self):
        @anthropic.beta_tool
        def look(at: str) -> str:
            """Looks.

            Args:
                at: A place.
            """
            return f"{at} by night"

        # By default it has the server store the conversation; if that is refused, it continues without.
        for fields in ({"thread": False}, {}, {"stream": True}):
            with self.subTest(fields):
                self.cloud.play(LOOKS, SEEN)
                runner = self.client.beta.messages.tool_runner(
                    model="cloud", messages=[QUESTION], max_tokens=64, tools=[look], **fields
                )
                self.assertEqual(runner.until_done().content[-1].text, SEEN.text)
                self.check_round()

    def test_text_beside_a_single_call(self):
        answer = Answer(text="Let me see.", calls=(("look", {"at": "Oslo"}),))
        self.cloud.play(answer, answer)
        for message in (self.ask(tools=[LOOK]), self.streamed(tools=[LOOK])[1]):
            text, call = message.content
            self.assertEqual((text.text, call.name, call.input), ("Let me see.", "look", {"at": "Oslo"}))

    def test_images_reach_the_model_even_from_a_tool(self):
        text = {"type": "text", "text": "What is this?"}
        message = {"role": "user", "content": [IMAGE, text]}
        self.cloud.play(SEEN, SEEN)
        for answer in (self.ask(message), self.streamed(message)[1]):
            self.assertEqual(answer.content[-1].text, SEEN.text)
            self.assertEqual(self.last["messages"], [{"role": "user", "content": [SEEN_IMAGE, text]}])

        self.cloud.play(Answer(calls=(("look", {"at": "Oslo"}),)), SEEN)
        call = self.ask(tools=[LOOK]).content[0]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": [text, IMAGE]}
        messages = [QUESTION, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        self.assertEqual(self.ask(*messages, tools=[LOOK]).content[-1].text, SEEN.text)
        self.assertEqual([message["role"] for message in self.last["messages"]], ["user", "assistant", "tool", "user"])
        self.assertIn(SEEN_IMAGE, self.last["messages"][-1]["content"])

    def test_an_answer_follows_the_requested_schema(self):
        answer = Answer(text=json.dumps({"country": "France", "capital": "Paris"}))
        place = Place(country="France", capital="Paris")
        self.cloud.play(answer, answer, answer)
        fields = {"model": "cloud", "messages": [QUESTION], "max_tokens": 64, "output_format": Place}
        self.assertEqual(self.client.messages.parse(**fields).parsed_output, place)
        request = self.last["response_format"]
        self.assertEqual(request["type"], "json_schema")
        schema = request["json_schema"]["schema"]
        self.assertEqual((schema["properties"].keys(), schema["type"]), ({"country", "capital"}, "object"))
        with self.client.messages.stream(**fields) as stream:
            self.assertEqual(stream.get_final_message().parsed_output, place)
        self.assertEqual(self.last["response_format"], request)
        config = {"format": {"type": "json_schema", "schema": schema}, "effort": "low"}
        self.assertEqual(json.loads(self.ask(output_config=config).content[-1].text)["capital"], "Paris")
        self.assertEqual((self.last["response_format"], self.last["reasoning_effort"]), (request, "low"))

    def test_usage_is_returned_whole_and_streamed(self):
        self.cloud.play(SEEN, SEEN)
        for message in (self.ask(), self.streamed()[1]):
            usage = message.usage
            # 8 of the 20 were in the cloud's cache.
            self.assertEqual((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (12, 8, 12))

    def test_a_cloud_of_another_dialect_refuses_to_count_tokens(self):
        with self.assertRaises(anthropic.BadRequestError) as refusal:
            self.client.messages.count_tokens(model="cloud", messages=[QUESTION])
        self.assertIn("count", refusal.exception.message)
        self.assertEqual(self.cloud.requests, [])


if __name__ == "__main__":
    unittest.main()
