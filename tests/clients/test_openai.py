"""The real `openai` package against a running host with a real model."""

import threading
import unittest

import openai
from host import HANG_SECONDS, MODEL, Host

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about the sea."}]


def cosine(one, other):
    """Of vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


class OpenAI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)
        cls.client = openai.OpenAI(
            base_url=f"{cls.host.url}/v1", api_key="unused", max_retries=0, timeout=HANG_SECONDS
        )
        cls.addClassCleanup(cls.client.close)

    def chat(self, messages=QUESTION, model="fast", **fields):
        return self.client.chat.completions.create(messages=messages, model=model, temperature=0, **fields)

    def test_models_are_the_router_the_tiers_and_their_models(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], ["auto", "fast", MODEL])
        self.assertEqual({model.object for model in models}, {"model"})
        self.assertEqual([model.tierbar["kind"] for model in models], ["router", "tier", "model"])
        self.assertEqual(self.client.models.retrieve("fast").id, "fast")

    def test_a_whole_answer_has_text_and_usage(self):
        answer = self.chat(max_tokens=24)
        self.assertTrue(answer.choices[0].message.content.strip())
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual(answer.object, "chat.completion")
        usage = answer.usage
        self.assertGreater(usage.prompt_tokens, 10)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)

    def test_a_stream_equals_the_whole_answer_with_its_usage(self):
        whole = self.chat(max_tokens=24)
        chunks = list(self.chat(max_tokens=24, stream=True, stream_options={"include_usage": True}))
        words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        self.assertEqual("".join(word or "" for word in words), whole.choices[0].message.content)
        reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
        self.assertEqual(reasons[-1], whole.choices[0].finish_reason)
        self.assertEqual(set(reasons[:-1]), {None})
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage, whole.usage)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))

    def test_every_name_of_a_tier_reaches_it(self):
        for name in ("auto", "fast", MODEL):
            answer = self.client.chat.completions.with_raw_response.create(
                messages=QUESTION, model=name, max_tokens=1
            )
            self.assertEqual(answer.headers["x-tierbar-tier"], "fast", name)
            self.assertEqual(answer.headers["x-tierbar-model"], MODEL, name)

    def test_an_answer_ends_before_its_stop_string(self):
        text = self.chat(max_tokens=24).choices[0].message.content
        before, stop = text.split(" ", 2)[0], text.split(" ", 2)[1]
        answer = self.chat(max_tokens=24, stop=[stop])
        self.assertEqual(answer.choices[0].message.content.strip(), before)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        chunks = list(self.chat(max_tokens=24, stop=stop, stream=True))
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        self.assertEqual(streamed.strip(), before)

    def test_a_length_limit_is_reported(self):
        answer = self.chat(max_tokens=3)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 3)
        answer = self.chat(max_completion_tokens=4)
        self.assertEqual(answer.usage.completion_tokens, 4)

    def test_a_seed_fixes_the_answer(self):
        def say(seed):
            answer = self.client.chat.completions.create(
                messages=STORY, model="fast", temperature=1.5, seed=seed, max_tokens=32
            )
            return answer.choices[0].message.content

        first = say(7)
        self.assertEqual(say(7), first)
        self.assertNotEqual(say(8), first)

    def test_additions_of_llama_server_are_supported(self):
        fields = {"extra_body": {"ignore_eos": True, "cache_prompt": True}, "max_tokens": 40}
        self.chat(**fields)
        timings = self.chat(**fields).timings
        self.assertEqual(timings["predicted_n"], 40)
        self.assertGreater(timings["predicted_per_second"], 0)
        self.assertGreater(timings["cache_n"], 10)
        cold = self.chat(max_tokens=1, extra_body={"cache_prompt": False})
        self.assertEqual(cold.timings["cache_n"], 0)
        self.assertEqual(cold.timings["prompt_n"], cold.usage.prompt_tokens)
        tokens = self.chat(max_tokens=3, extra_body={"n_probs": 2}).choices[0].logprobs.content
        self.assertEqual([len(token.top_logprobs) for token in tokens], [2, 2, 2])
        last = [chunk for chunk in self.chat(max_tokens=4, stream=True) if chunk.choices][-1]
        self.assertEqual(last.timings["predicted_n"], 4)

    def test_text_completion_continues_a_prompt(self):
        answer = self.client.completions.create(
            model="fast", prompt="1, 2, 3, 4, 5, 6, 7, 8, 9,", max_tokens=8, temperature=0
        )
        self.assertTrue(answer.choices[0].text.startswith(" 10, 11,"), answer.choices[0].text)
        self.assertEqual(answer.object, "text_completion")

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.chat(model="gpt-5")
        self.assertEqual(raised.exception.code, "model_unknown")
        self.assertEqual(raised.exception.body["available"], ["auto", "fast", "heavy", MODEL])

    def test_a_tier_without_a_model_is_refused(self):
        with self.assertRaises(openai.APIStatusError) as raised:
            self.chat(model="heavy")
        self.assertEqual(raised.exception.status_code, 503)
        self.assertEqual(raised.exception.code, "model_missing")

    def test_a_prompt_beyond_the_context_is_refused_with_figures(self):
        long = [{"role": "user", "content": "word " * 20_000}]
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.chat(messages=long, stream=stream)
            body = raised.exception.body
            self.assertEqual(body["code"], "context_length_exceeded")
            self.assertEqual(body["context_tokens"], 2048)
            self.assertGreater(body["prompt_tokens"], 20_000)

    def test_a_stream_that_is_closed_frees_the_tier(self):
        stream = self.chat(messages=STORY, max_tokens=1900, stream=True, extra_body={"ignore_eos": True})
        next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)
        self.assertEqual(self.host.state_of("fast"), "busy")
        stream.close()
        self.host.until_state("fast", "ready")
        self.assertEqual(self.chat(max_tokens=3).usage.completion_tokens, 3)

    def test_concurrent_answers_do_not_mix(self):
        # Far from a tie, since computing several together rounds differently.
        prompts = ("1, 2, 3, 4, 5, 6, 7, 8, 9,", "10, 20, 30, 40, 50, 60,")

        def ask(prompt):
            chunks = self.client.completions.create(
                model="fast", prompt=prompt, max_tokens=24, temperature=0, stream=True
            )
            return "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)

        alone = [ask(prompt) for prompt in prompts]
        answers = {}
        threads = [
            threading.Thread(target=lambda index=index: answers.update({index: ask(prompts[index % 2])})) for index in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, {index: alone[index % 2] for index in range(4)})

    def test_embeddings_are_the_same_in_both_encodings(self):
        texts = ["The cat sits outside.", "A cat is sitting outside.", "Share prices fell on Monday."]
        # The package requests base64 by default, and decodes it.
        packed = self.client.embeddings.create(model="fast", input=texts)
        floats = self.client.embeddings.create(model="fast", input=texts, encoding_format="float")
        vectors = [entry.embedding for entry in packed.data]
        self.assertEqual([entry.index for entry in packed.data], [0, 1, 2])
        self.assertEqual(packed.usage.total_tokens, packed.usage.prompt_tokens)
        self.assertGreater(packed.usage.prompt_tokens, 10)
        for vector, entry in zip(vectors, floats.data, strict=True):
            self.assertEqual(len(vector), 576)
            self.assertGreater(cosine(vector, entry.embedding), 0.99999)
        self.assertAlmostEqual(cosine(vectors[0], vectors[0]), 1, places=5)
        self.assertGreater(cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2]))

    def test_a_text_beyond_the_context_is_not_embedded(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.embeddings.create(model="fast", input=["short", "word " * 3000])
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        self.assertEqual(raised.exception.body["index"], 1)
        self.assertEqual(raised.exception.body["context_tokens"], 2048)


if __name__ == "__main__":
    unittest.main()
