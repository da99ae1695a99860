"""A cloud's refusals as each real package raises them: the kind, the cloud's message, and when to retry."""

import unittest

import anthropic
import ollama
import openai
from packages import Packages
from played import Refusal

QUESTION = [{"role": "user", "content": "What is there?"}]
WORDS = "The cloud says so."
# The status of each refusal in OpenAI's chats, and in dialects that translate it.
AS_CHAT = {400: 400, 404: 404, 413: 413, 422: 422, 429: 429, 500: 500, 503: 503}
TURNED = {**AS_CHAT, 422: 400, 500: 502, 503: 502}
# A refused key is Tierbar's, not the client's, who would look for an error in its own.
KEYS = (401, 403)


class Refusals(Packages):
    def refusals(self, package, expected_by_status, call):
        """Refusals of each status, for a whole answer and a stream."""
        for status, expected in {**expected_by_status, **dict.fromkeys(KEYS, 502)}.items():
            for stream in (False, True):
                with self.subTest(status=status, stream=stream):
                    self.cloud.play(Refusal(status, WORDS, (("Retry-After", "7"),)))
                    with self.assertRaises(package.APIStatusError) as raised:
                        call(stream)
                    self.assertEqual(raised.exception.status_code, expected)
                    self.assertIn("did not accept the key" if status == 401 else WORDS, raised.exception.message)
                    if status in (429, 503):
                        self.assertEqual(raised.exception.response.headers["retry-after"], "7")

    def test_openai_raises_it_with_its_status(self):
        request = {"model": "cloud", "messages": QUESTION}
        self.refusals(openai, AS_CHAT, lambda stream: self.openai.chat.completions.create(**request, stream=stream))
        request = {"model": "cloud", "input": "What is there?"}
        self.refusals(openai, TURNED, lambda stream: self.openai.responses.create(**request, stream=stream))

    def test_anthropic_raises_it_with_its_status(self):
        request = {"model": "cloud", "messages": QUESTION, "max_tokens": 64}
        self.refusals(anthropic, TURNED, lambda stream: self.anthropic.messages.create(**request, stream=stream))

    def test_ollama_raises_it_with_its_status(self):
        for status, expected in TURNED.items():
            for stream in (False, True):
                with self.subTest(status=status, stream=stream):
                    self.cloud.play(Refusal(status, WORDS))
                    with self.assertRaises(ollama.ResponseError) as raised:
                        list(self.ollama.chat(model="cloud", messages=QUESTION, stream=stream))
                    self.assertEqual(raised.exception.status_code, expected)
                    self.assertIn(WORDS, raised.exception.error)


if __name__ == "__main__":
    unittest.main()
