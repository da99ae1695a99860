"""The real `openai` package with a scripted model that calls tools, thinks and sees images, behind a tier."""

import asyncio
import json
import unittest
from typing import Literal

import openai
from host import HANG_SECONDS
from openai.types.chat import ChatCompletion
from played import LOOKS, MIXED, PARAMETERS, PNG_URI, SEEN, Able, Answer
from pydantic import BaseModel

QUESTION = {"role": "user", "content": "What is there?"}
LOOK = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": PARAMETERS, "strict": True},
}


class Place(BaseModel):
    country: Literal["France", "Spain"]
    capital: str


class OpenAi(Able):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.settings = {
            "base_url": f"{cls.host.url}/v1",
            "api_key": "unused",
            "max_retries": 0,
            "timeout": HANG_SECONDS,
        }
        # Each answer is checked against the package's types.
        cls.client = openai.OpenAI(**cls.settings, _strict_response_validation=True)
        cls.addClassCleanup(cls.client.close)

    def ask(self, *messages, **fields):
        return self.client.chat.completions.create(model="cloud", messages=messages or [QUESTION], **fields)

    def streamed(self, *messages, **fields):
        with self.client.chat.completions.stream(model="cloud", messages=messages or [QUESTION], **fields) as stream:
            return list(stream), stream.get_final_completion()

    def results_of(self, message):
        """The messages after the question: the calls as received, and the result of each."""
        yield message.to_dict()
        for call in message.tool_calls:
            result = f"{json.loads(call.function.arguments)['at']} by night"
            yield {"role": "tool", "tool_call_id": call.id, "content": result}

    def check_calls(self, completion):
        self.assertIsInstance(completion, ChatCompletion)
        (choice,) = completion.choices
        self.assertEqual((choice.finish_reason, choice.message.content), ("tool_calls", None))
        self.assertEqual(choice.message.reasoning_content, LOOKS.thought)
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]
        self.assertEqual(calls, list(LOOKS.calls))

    def test_a_conversation_with_tools(self):
        self.cloud.play(LOOKS, SEEN)
        fields = {"tools": [LOOK], "tool_choice": "required", "parallel_tool_calls": True, "reasoning_effort": "low"}
        first = self.ask(**fields)
        self.check_calls(first)
        self.assertEqual((self.last["tool_choice"], self.last["parallel_tool_calls"]), ("required", True))
        self.assertEqual((self.last["reasoning_effort"], self.last["tools"]), ("low", [LOOK]))
        second = self.ask(QUESTION, *self.results_of(first.choices[0].message), tools=[LOOK])
        self.assertEqual(second.choices[0].message.content, SEEN.text)
        self.assertEqual(second.choices[0].message.reasoning_content, SEEN.thought)
        self.assertEqual(second.choices[0].finish_reason, "stop")
        self.check_round()

    def test_a_streamed_conversation_with_tools(self):
        self.cloud.play(LOOKS, SEEN)
        events, first = self.streamed(tools=[LOOK])
        done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        self.assertEqual([(event.index, event.name) for event in done], [(0, "look"), (1, "look")])
        self.assertEqual([event.parsed_arguments for event in done], [{"at": "Paris"}, {"at": "Rome"}])
        chunks = [event.chunk.choices[0].delta for event in events if event.type == "chunk" and event.chunk.choices]
        pieces = [call.function.arguments for delta in chunks for call in delta.tool_calls or []]
        self.assertGreater(len(pieces), 4)
        thoughts = [delta.reasoning_content for delta in chunks if getattr(delta, "reasoning_content", None)]
        self.assertEqual(thoughts, ["I ", "should ", "look."])
        self.check_calls(first)

        events, second = self.streamed(QUESTION, *self.results_of(first.choices[0].message), tools=[LOOK])
        self.assertEqual("".join(event.delta for event in events if event.type == "content.delta"), SEEN.text)
        self.assertEqual(second.choices[0].message.content, SEEN.text)
        self.check_round()

    def test_interleaved_calls_are_distinguished(self):
        # In the order of arrival: the package's own stream ends a call where the next one starts.
        self.cloud.play(MIXED)
        calls = [["", ""], ["", ""]]
        for chunk in self.ask(tools=[LOOK], stream=True):
            for piece in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
                calls[piece.index][0] += piece.function.name or ""
                calls[piece.index][1] += piece.function.arguments
        self.assertEqual([(name, json.loads(arguments)) for name, arguments in calls], list(LOOKS.calls))

    def test_an_asynchronous_client_gets_the_same_answers(self):
        self.cloud.play(LOOKS, LOOKS)

        async def ask():
            async with openai.AsyncOpenAI(**self.settings) as client:
                fields = {"model": "cloud", "messages": [QUESTION], "tools": [LOOK]}
                whole = await client.chat.completions.create(**fields)
                async with client.chat.completions.stream(**fields) as stream:
                    return whole, await stream.get_final_completion()

        for completion in asyncio.run(ask()):
            self.check_calls(completion)

    def test_text_beside_a_single_call(self):
        answer = Answer(text="Let me see.", calls=(("look", {"at": "Oslo"}),))
        self.cloud.play(answer, answer)
        for completion in (self.ask(tools=[LOOK]), self.streamed(tools=[LOOK])[1]):
            message = completion.choices[0].message
            self.assertEqual(message.content, "Let me see.")
            (call,) = message.tool_calls
            self.assertEqual((call.id, call.type), ("call_0", "function"))
            self.assertEqual(json.loads(call.function.arguments), {"at": "Oslo"})

    def test_an_image_reaches_the_model(self):
        image = {"type": "image_url", "image_url": {"url": PNG_URI, "detail": "low"}}
        text = {"type": "text", "text": "What is this?"}
        self.cloud.play(SEEN, SEEN)
        message = {"role": "user", "content": [text, image]}
        for completion in (self.ask(message), self.streamed(message)[1]):
            self.assertEqual(completion.choices[0].message.content, SEEN.text)
            self.assertEqual(self.last["messages"], [message])

    def test_an_answer_follows_the_requested_schema(self):
        answer = Answer(text='{"country":"France","capital":"Paris"}')
        self.cloud.play(answer, answer)
        place = Place(country="France", capital="Paris")
        parsed = self.client.chat.completions.parse(model="cloud", messages=[QUESTION], response_format=Place)
        self.assertEqual(parsed.choices[0].message.parsed, place)
        request = self.last["response_format"]
        self.assertEqual((request["type"], request["json_schema"]["name"]), ("json_schema", "Place"))
        self.assertEqual(request["json_schema"]["schema"]["properties"].keys(), {"country", "capital"})
        _, final = self.streamed(response_format=Place)
        self.assertEqual(final.choices[0].message.parsed, place)
        self.assertEqual(self.last["response_format"], request)

    def test_usage_is_returned_whole_and_streamed_on_request(self):
        self.cloud.play(SEEN, SEEN, SEEN)
        usage = self.ask().usage
        self.assertEqual((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (20, 12, 32))
        self.assertEqual(usage.prompt_tokens_details.cached_tokens, 8)
        self.assertEqual(usage.completion_tokens_details.reasoning_tokens, 4)
        chunks = list(self.ask(stream=True, stream_options={"include_usage": True}))
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.to_dict()), ([], usage.to_dict()))
        self.assertEqual([chunk.usage for chunk in chunks[:-1] if chunk.usage], [])
        self.assertEqual([chunk.usage for chunk in self.ask(stream=True) if chunk.usage], [])


if __name__ == "__main__":
    unittest.main()
