"""Forced tool calls on a real model: its template knows tools, or it does not, or the model thinks first."""

import itertools
import json
import unittest

import openai
from calls import DIALECTS, FORMS, SCHEMAS, UNIT, Models, ask
from host import HANG_SECONDS, slow

QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
FORECAST = {"name": "get_forecast", "parameters": SCHEMAS["get_forecast"]}


class ForcedCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = Models()
        cls.addClassCleanup(cls.models.stop)
        cls.url = cls.models.url
        settings = {"api_key": "unused", "max_retries": 0, "timeout": HANG_SECONDS}
        cls.openai = openai.OpenAI(base_url=f"{cls.url}/v1", **settings)
        cls.addClassCleanup(cls.openai.close)

    @slow
    def test_each_dialect_calls_what_was_asked_for(self):
        # A form at a time: each has its model. Other numbers are other choices.
        cases = itertools.product(FORMS, DIALECTS, [False, True])
        for number, (form, dialect, stream) in enumerate(cases):
            with self.subTest(form=form, dialect=dialect, stream=stream):
                self.assertIsNone(ask(self.url, dialect, form, stream, number))

    @slow
    def test_each_dialect_calls_strict_functions(self):
        for number, (dialect, stream) in enumerate(itertools.product(DIALECTS, [False, True])):
            with self.subTest(dialect=dialect, stream=stream):
                self.assertIsNone(ask(self.url, dialect, "native", stream, number, strict=True))

    def test_a_call_and_its_result_go_on_to_text_without_a_template(self):
        fields = {"model": "generic", "tools": [{"type": "function", "function": FORECAST}], "max_tokens": 200}
        choice = {"type": "function", "function": {"name": "get_forecast"}}
        first = self.openai.chat.completions.create(messages=QUESTION, tool_choice=choice, **fields)
        (call,) = first.choices[0].message.tool_calls
        self.assertIn(json.loads(call.function.arguments)["unit"], UNIT["enum"])
        result = {"role": "tool", "tool_call_id": call.id, "content": "It rains."}
        messages = [*QUESTION, first.choices[0].message.to_dict(), result]
        second = self.openai.chat.completions.create(messages=messages, tool_choice="none", **fields)
        self.assertIsNone(second.choices[0].message.tool_calls)
        self.assertTrue(second.choices[0].message.content)

    def test_older_functions_get_older_calls(self):
        fields = {"model": "generic", "messages": QUESTION, "max_tokens": 200, "temperature": 0}
        fields |= {"functions": [FORECAST], "function_call": {"name": "get_forecast"}}
        choice = self.openai.chat.completions.create(**fields).choices[0]
        self.assertEqual((choice.finish_reason, choice.message.tool_calls), ("function_call", None))
        called = choice.message.function_call
        self.assertEqual(called.name, "get_forecast")
        stream = self.openai.chat.completions.create(**fields, stream=True)
        chunks = [chunk.choices[0] for chunk in stream if chunk.choices]
        pieces = [chunk.delta.function_call for chunk in chunks if chunk.delta.function_call]
        self.assertEqual("".join(piece.name or "" for piece in pieces), "get_forecast")
        self.assertEqual("".join(piece.arguments or "" for piece in pieces), called.arguments)
        self.assertEqual(chunks[-1].finish_reason, "function_call")


if __name__ == "__main__":
    unittest.main()
