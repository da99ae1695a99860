"""The real `litellm` package, in each dialect that it knows, against a running host with a real model."""

import os
import unittest

# It would fetch a list of prices at its first import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from host import HANG_SECONDS, Host  # noqa: E402

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
DIALECTS = {"openai": "/v1", "anthropic": "", "ollama_chat": ""}


class LiteLlm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)

    def completion(self, dialect, **fields):
        fields = {"model": f"{dialect}/fast", "messages": QUESTION, "max_tokens": 16, "temperature": 0, **fields}
        base = self.host.url + DIALECTS[dialect]
        return litellm.completion(api_base=base, api_key="unused", timeout=HANG_SECONDS, max_retries=0, **fields)

    def test_a_chat_has_the_same_answer_in_each_dialect(self):
        expected = self.completion("openai").choices[0].message.content
        self.assertTrue(expected.strip())
        for dialect in DIALECTS:
            with self.subTest(dialect):
                answer = self.completion(dialect)
                self.assertEqual(answer.choices[0].message.content, expected)
                self.assertGreater(answer.usage.prompt_tokens, 10)
                self.assertGreater(answer.usage.completion_tokens, 0)

    def test_a_stream_is_the_same_in_each_dialect(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                whole = self.completion(dialect).choices[0].message.content
                chunks = self.completion(dialect, stream=True)
                self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), whole)

    def test_a_refusal_is_an_error_in_each_dialect(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                with self.assertRaises(Exception) as raised:
                    self.completion(dialect, model=f"{dialect}/gpt-9")
                self.assertIn('there is no model or tier', str(raised.exception))

    def test_embeddings_are_returned(self):
        base = self.host.url + "/v1"
        answer = litellm.embedding(model="openai/fast", input=["a", "b"], api_base=base, api_key="unused")
        self.assertEqual([len(vector["embedding"]) for vector in answer.data], [576, 576])


if __name__ == "__main__":
    unittest.main()
