"""The Responses API of the real `openai` package against a running host: with a real model, and with a
scripted one that supports tools and thinking, since no test model does."""

import asyncio
import json
import unittest

import openai
from host import CONFIG, HANG_SECONDS, MODEL, Host
from openai.types.responses import Response
from played import LOOKS, MIXED, PARAMETERS, PNG_URI, SEEN, Cloud, tier

QUESTION = "What is the capital of France?"
# With it the answer comes to its own end.
BRIEF = {"instructions": "Be brief.", "max_output_tokens": 200}
LOOK = {
    "type": "function",
    "name": "look",
    "description": "Looks at a place.",
    "parameters": PARAMETERS,
    "strict": True,
}


class Responses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.played = Cloud()
        cls.addClassCleanup(cls.played.stop)
        cls.host = Host(CONFIG + tier("cloud", cls.played))
        cls.addClassCleanup(cls.host.stop)
        settings = {"base_url": f"{cls.host.url}/v1", "api_key": "unused", "max_retries": 0, "timeout": HANG_SECONDS}
        # Each answer is checked against the package's types.
        cls.client = openai.OpenAI(**settings, _strict_response_validation=True)
        cls.addClassCleanup(cls.client.close)
        cls.settings = settings

    def ask(self, input=QUESTION, model="fast", **fields):
        return self.client.responses.create(input=input, model=model, temperature=0, **fields)

    def test_a_whole_response_has_text_usage_and_parameters(self):
        response = self.ask(**BRIEF, metadata={"job": "7"})
        self.assertIn("Paris", response.output_text)
        self.assertEqual((response.object, response.status, response.error), ("response", "completed", None))
        self.assertTrue(response.id.startswith("resp_"))
        self.assertEqual(response.model, MODEL)
        self.assertEqual([item.type for item in response.output], ["message"])
        self.assertEqual((response.instructions, response.metadata), ("Be brief.", {"job": "7"}))
        self.assertEqual((response.temperature, response.max_output_tokens), (0, 200))
        usage = response.usage
        self.assertGreater(usage.input_tokens, 10)
        self.assertEqual(usage.total_tokens, usage.input_tokens + usage.output_tokens)

    def test_items_equal_a_chat(self):
        items = [
            {"role": "developer", "content": "You are terse."},
            {"role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
            {"role": "user", "content": QUESTION},
        ]
        messages = [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": QUESTION},
        ]
        chat = self.client.chat.completions.create(messages=messages, model="fast", temperature=0, max_tokens=24)
        response = self.ask(items, max_output_tokens=24)
        self.assertEqual(response.output_text, chat.choices[0].message.content)
        self.assertEqual(response.usage.input_tokens, chat.usage.prompt_tokens)

    def test_tokens_are_counted_without_an_answer(self):
        request = {"model": "fast", "input": QUESTION, "instructions": "Be brief."}
        counted = self.client.responses.input_tokens.count(**request)
        response = self.ask(instructions="Be brief.", max_output_tokens=1)
        self.assertEqual(counted.object, "response.input_tokens")
        self.assertEqual(counted.input_tokens, response.usage.input_tokens)

    def test_a_response_can_be_sent_back_unchanged(self):
        first = self.ask(**BRIEF)
        conversation = [{"role": "user", "content": QUESTION}, *first.output, {"role": "user", "content": "And of Spain?"}]
        self.assertTrue(self.ask(conversation, max_output_tokens=24).output_text.strip())

    def test_a_stream_yields_the_response_in_pieces(self):
        whole = self.ask(**BRIEF)
        events = list(self.ask(**BRIEF, stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        names = [event.type for event in events]
        self.assertEqual(
            names[:4],
            ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"],
        )
        self.assertEqual(
            names[-4:],
            ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"],
        )
        self.assertEqual(set(names[4:-4]), {"response.output_text.delta"})
        self.assertEqual("".join(event.delta for event in events[4:-4]), whole.output_text)
        last = events[-1].response
        self.assertEqual(last.output_text, whole.output_text)
        self.assertEqual(last.usage.output_tokens, whole.usage.output_tokens)
        self.assertEqual(last.id, events[0].response.id)

    def test_the_stream_helper_gathers_the_final_response(self):
        with self.client.responses.stream(input=QUESTION, model="fast", temperature=0, **BRIEF) as stream:
            snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        self.assertEqual(final.output_text, snapshots[-1])
        self.assertEqual(final.status, "completed")

    def test_an_asynchronous_client_gets_the_same_answers(self):
        async def ask():
            async with openai.AsyncOpenAI(**self.settings) as client:
                stream = await client.responses.create(
                    input=QUESTION, model="fast", temperature=0, max_output_tokens=24, stream=True
                )
                return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

        self.assertEqual(asyncio.run(ask()), self.ask(max_output_tokens=24).output_text)

    def test_a_truncated_response_is_incomplete(self):
        response = self.ask(max_output_tokens=3)
        self.assertEqual((response.status, response.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(response.usage.output_tokens, 3)
        last = list(self.ask(max_output_tokens=3, stream=True))[-1]
        self.assertEqual(last.type, "response.incomplete")
        self.assertEqual(last.response.output_text, response.output_text)
        self.assertEqual(last.response.output[0].status, "incomplete")

    def test_additions_of_llama_server_reach_the_model(self):
        response = self.ask(max_output_tokens=40, extra_body={"ignore_eos": True})
        self.assertEqual(response.usage.output_tokens, 40)
        response = self.ask(extra_body={"grammar": 'root ::= "yes" | "no"'})
        self.assertIn(response.output_text, ("yes", "no"))

    def test_images_are_refused_by_a_model_that_sees_none(self):
        image = [{"role": "user", "content": [{"type": "input_image", "image_url": PNG_URI, "detail": "auto"}]}]
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as refusal:
                self.ask(image, stream=stream)
            self.assertIn("takes text, and the request has images", refusal.exception.message)

    def test_responses_are_not_stored_and_say_so(self):
        response = self.ask(max_output_tokens=3, store=True)
        self.assertIs(response.store, False)
        for method in (self.client.responses.retrieve, self.client.responses.delete, self.client.responses.cancel):
            with self.assertRaises(openai.NotFoundError) as missing:
                method(response.id)
            self.assertIn("not stored", missing.exception.message)
        with self.assertRaises(openai.BadRequestError) as refusal:
            self.ask(previous_response_id=response.id)
        self.assertIn("`input`", refusal.exception.body["hint"])
        with self.assertRaises(openai.BadRequestError):
            self.ask(background=True)

    def test_refusals_are_those_of_a_chat(self):
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask("word " * 20_000, stream=stream)
            self.assertEqual(raised.exception.code, "context_length_exceeded")
            self.assertEqual(raised.exception.body["context_tokens"], 2048)
        with self.assertRaises(openai.NotFoundError) as raised:
            self.ask(model="gpt-5")
        self.assertEqual(raised.exception.code, "model_unknown")

    def test_a_stream_that_is_closed_frees_the_tier(self):
        stream = self.ask("Tell me a long story.", max_output_tokens=1900, stream=True, extra_body={"ignore_eos": True})
        next(event for event in stream if event.type == "response.output_text.delta")
        self.assertEqual(self.host.state_of("fast"), "busy")
        stream.close()
        self.host.until_state("fast", "ready")

    def converse(self, connection, **fields):
        """Has a turn on a WebSocket, and returns its events."""
        connection.response.create(model="fast", temperature=0, max_output_tokens=24, **fields)
        events = []
        for event in connection:
            events.append(event)
            if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                return events
        raise AssertionError("the connection ended")

    def test_a_websocket_gives_the_answers_of_http_and_continues_them(self):
        whole = self.ask(max_output_tokens=24)
        with self.client.responses.connect() as connection:
            events = self.converse(connection, input=QUESTION)
            first = events[-1].response
            self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
            self.assertEqual(first.output_text, whole.output_text)
            second = self.converse(connection, input="And of Spain?", previous_response_id=first.id)[-1].response
            conversation = [
                {"role": "user", "content": QUESTION},
                *first.output,
                {"role": "user", "content": "And of Spain?"},
            ]
            again = self.ask(conversation, max_output_tokens=24)
            self.assertEqual(second.output_text, again.output_text)
            self.assertEqual(second.usage.input_tokens, again.usage.input_tokens)
            self.assertEqual(second.previous_response_id, first.id)
        with self.client.responses.connect() as connection:
            lost = self.converse(connection, input="And?", previous_response_id=second.id)[-1]
            self.assertEqual((lost.type, lost.error.code), ("error", "previous_response_not_found"))
            self.assertEqual(self.converse(connection, input=QUESTION)[-1].response.output_text, whole.output_text)

    def test_a_websocket_that_is_closed_frees_the_tier(self):
        with self.client.responses.connect() as connection:
            story = {"model": "fast", "input": "Tell me a long story.", "max_output_tokens": 1900, "ignore_eos": True}
            connection.send({"type": "response.create", **story})
            next(event for event in connection if event.type == "response.output_text.delta")
            self.assertEqual(self.host.state_of("fast"), "busy")
        self.host.until_state("fast", "ready")

    def test_a_compacted_conversation_is_shorter_and_goes_on(self):
        told = "We agreed to launch on Tuesday, and to notify support first. "
        conversation = [
            {"role": "developer", "content": "You are terse."},
            {"role": "user", "content": told * 100},
            {"role": "assistant", "content": "Understood."},
            {"role": "user", "content": "When do we launch?"},
        ]
        before = self.client.responses.input_tokens.count(model="fast", input=conversation).input_tokens
        # The package's types have no instructions among what is kept, though it sends them back.
        with openai.OpenAI(**self.settings) as client:
            compacted = client.responses.compact(model="fast", input=conversation)
        self.assertEqual(compacted.object, "response.compaction")
        self.assertGreater(compacted.usage.output_tokens, 0)
        window = [item.to_dict() for item in compacted.output]
        self.assertEqual([item["type"] for item in window], ["message", "compaction", "message"])
        self.assertEqual(window[2]["content"][0]["text"], "When do we launch?")
        after = self.client.responses.input_tokens.count(model="fast", input=window).input_tokens
        self.assertLess(after * 2, before)
        self.assertTrue(self.ask(window, max_output_tokens=24).output_text.strip())

    def test_a_conversation_with_tools(self):
        self.played.play(LOOKS, SEEN)
        tools = [LOOK, {"type": "web_search"}]
        conversation = [{"role": "user", "content": "What is there?"}]
        first = self.ask(conversation, model="cloud", tools=tools, reasoning={"effort": "low"})
        self.check_calls(first)
        self.assertEqual(first.tierbar, {"left_out": ["tools[1]: web_search"]})
        request = self.played.requests[-1]
        self.assertEqual(request["reasoning_effort"], "low")
        self.assertEqual([tool["function"]["name"] for tool in request["tools"]], ["look"])

        conversation += first.output
        for item in first.output:
            if item.type == "function_call":
                result = f"{json.loads(item.arguments)['at']} by night"
                conversation.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
        second = self.ask(conversation, model="cloud", tools=tools)
        self.assertEqual(second.output_text, SEEN.text)
        messages = self.played.requests[-1]["messages"]
        self.assertEqual([message["role"] for message in messages], ["user", "assistant", "tool", "tool"])
        self.assertEqual(messages[1]["reasoning_content"], LOOKS.thought)
        self.assertEqual([call["id"] for call in messages[1]["tool_calls"]], ["call_0", "call_1"])

    def check_calls(self, response):
        self.assertIsInstance(response, Response)
        self.assertEqual([item.type for item in response.output], ["reasoning", "function_call", "function_call"])
        thought, *calls = response.output
        self.assertEqual(thought.content[0].text, LOOKS.thought)
        arguments = [(call.name, json.loads(call.arguments)) for call in calls]
        self.assertEqual(arguments, list(LOOKS.calls))
        self.assertEqual([call.call_id for call in calls], ["call_0", "call_1"])
        self.assertEqual(response.usage.input_tokens_details.cached_tokens, 8)
        self.assertEqual(response.usage.output_tokens_details.reasoning_tokens, 4)

    def test_streamed_thinking_and_calls_are_collected(self):
        for answer in (LOOKS, MIXED):
            with self.subTest(mixed=answer.mixed):
                self.played.play(answer)
                self.check_streamed_calls()

    def check_streamed_calls(self):
        with self.client.responses.stream(input="What is there?", model="cloud", tools=[LOOK]) as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.check_calls(final)
        self.assertEqual([call.parsed_arguments for call in final.output[1:]], [{"at": "Paris"}, {"at": "Rome"}])
        thoughts = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
        self.assertEqual(thoughts, ["I ", "should ", "look."])
        done = [event for event in events if event.type == "response.function_call_arguments.done"]
        self.assertEqual([event.arguments for event in done], [call.arguments for call in final.output[1:]])

    def test_an_image_reaches_a_vision_model(self):
        image = {"role": "user", "content": [{"type": "input_image", "image_url": PNG_URI, "detail": "auto"}]}
        for stream in (False, True):
            self.played.play(SEEN)
            answer = self.ask([image], model="cloud", stream=stream)
            last = list(answer)[-1].response if stream else answer
            self.assertEqual(last.output_text, SEEN.text)
            self.assertEqual(self.played.requests[-1]["messages"][0]["content"][0]["image_url"]["url"], PNG_URI)


if __name__ == "__main__":
    unittest.main()
