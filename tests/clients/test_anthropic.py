"""The real `anthropic` package against a running host with a real model."""

import unittest

import anthropic
from host import HANG_SECONDS, MODEL, Host

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about the sea."}]


class Anthropic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)
        cls.client = anthropic.Anthropic(base_url=cls.host.url, api_key="unused", timeout=HANG_SECONDS, max_retries=0)
        cls.addClassCleanup(cls.client.close)

    def create(self, messages=QUESTION, max_tokens=24, **fields):
        # The package has left `temperature` out; its servers, and ours, have not.
        extra = {"temperature": 0, **fields.pop("extra_body", {})}
        fields = {"model": "fast", "extra_body": extra, **fields}
        return self.client.messages.create(messages=messages, max_tokens=max_tokens, **fields)

    def refused(self, kind, **fields):
        with self.assertRaises(kind) as raised:
            self.create(**fields)
        return raised.exception.body["error"]

    def test_a_message_is_answered_with_its_usage(self):
        message = self.create()
        self.assertEqual((message.type, message.role, message.model), ("message", "assistant", MODEL))
        self.assertTrue(message.id.startswith("msg_"))
        self.assertTrue(message.content[0].text.strip())
        self.assertIn(message.stop_reason, ("end_turn", "max_tokens"))
        usage = message.usage
        self.assertGreater(usage.input_tokens + usage.cache_read_input_tokens, 10)
        self.assertGreater(usage.output_tokens, 0)

    def test_a_repeated_prompt_is_counted_as_cached(self):
        messages = [{"role": "user", "content": "The sea was calm that day. " * 20 + "What was calm?"}]
        first, again = self.create(messages), self.create(messages)
        read = [usage.input_tokens + usage.cache_read_input_tokens for usage in (first.usage, again.usage)]
        self.assertEqual(read[0], read[1])
        self.assertGreater(again.usage.cache_read_input_tokens, 100)

    def test_an_answer_continues_a_prefilled_message(self):
        request = {"role": "user", "content": "What is the capital of France?"}
        begun = {"role": "assistant", "content": "The capital of France is"}
        message = self.create([request, begun], max_tokens=4)
        self.assertTrue(message.content[0].text.startswith(" Paris"), message.content)

    def test_a_system_prompt_and_blocks_are_supported(self):
        system = [{"type": "text", "text": "You answer with one word.", "cache_control": {"type": "ephemeral"}}]
        blocks = [{"role": "user", "content": [{"type": "text", "text": "What is the capital of France?"}]}]
        with_system = self.client.messages.count_tokens(model="fast", messages=blocks, system=system)
        without = self.client.messages.count_tokens(model="fast", messages=blocks)
        self.assertNotEqual(with_system.input_tokens, without.input_tokens)
        message = self.create(blocks, system=system)
        read = message.usage.input_tokens + message.usage.cache_read_input_tokens
        self.assertEqual(read, with_system.input_tokens)

    def test_an_answer_ends_by_its_limit_and_by_a_stop_sequence(self):
        cut = self.create(STORY, max_tokens=8)
        self.assertEqual((cut.stop_reason, cut.usage.output_tokens), ("max_tokens", 8))
        whole = self.create(STORY, max_tokens=40).content[0].text
        word = whole.split()[5]
        stopped = self.create(STORY, max_tokens=40, stop_sequences=["never written", word])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", word))
        self.assertTrue(whole.startswith(stopped.content[0].text))
        self.assertNotIn(word, stopped.content[0].text)

    def test_a_stream_equals_the_whole_answer(self):
        whole = self.create(STORY, max_tokens=32)
        with self.client.messages.stream(
            model="fast", messages=STORY, max_tokens=32, extra_body={"temperature": 0}
        ) as stream:
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(message.content[0].text, text)
        self.assertEqual((message.stop_reason, message.model), (whole.stop_reason, MODEL))
        self.assertEqual(message.usage.output_tokens, whole.usage.output_tokens)

    def test_events_are_in_order(self):
        events = list(self.create(max_tokens=4, stream=True))
        counted = self.client.messages.count_tokens(messages=QUESTION, model="fast").input_tokens
        usage = events[0].message.usage
        self.assertEqual(usage.input_tokens + usage.cache_read_input_tokens, counted)
        kinds = [event.type for event in events]
        self.assertEqual(kinds[:2], ["message_start", "content_block_start"])
        self.assertEqual(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(set(kinds[2:-3]), {"content_block_delta"})

    def test_fields_of_llama_server_pass(self):
        message = self.create(max_tokens=8, extra_body={"ignore_eos": True, "grammar": 'root ::= "a"+'})
        self.assertEqual(set(message.content[0].text), {"a"})

    def test_invalid_requests_are_refused_with_the_reason(self):
        unknown = self.refused(anthropic.NotFoundError, model="claude-opus-9")
        self.assertEqual((unknown["type"], unknown["code"]), ("not_found_error", "model_unknown"))
        long = self.refused(anthropic.BadRequestError, messages=[{"role": "user", "content": "sea " * 5000}])
        self.assertEqual(long["code"], "context_length_exceeded")
        self.assertGreater(long["prompt_tokens"], long["context_tokens"])
        pixel = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        image = self.refused(anthropic.BadRequestError, messages=[{"role": "user", "content": [pixel]}])
        self.assertIn("takes text, and the request has images", image["message"])

    def test_server_side_tools_are_left_out(self):
        tools = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]
        self.assertEqual(self.create(tools=tools).content[0].text, self.create().content[0].text)

    def test_headers_name_the_tier_and_model(self):
        raw = self.client.messages.with_raw_response.create(model="auto", messages=QUESTION, max_tokens=4)
        self.assertEqual((raw.headers["x-tierbar-tier"], raw.headers["x-tierbar-model"]), ("fast", MODEL))


if __name__ == "__main__":
    unittest.main()
