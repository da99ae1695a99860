"""Log probabilities as lm-eval's `local-completions` asks for them, beside a direct computation."""

import json
import unittest
import urllib.request

from host import HANG_SECONDS, Host, slow

# Questions with the answers to choose from, as in its multiple-choice tasks.
TASK = [
    ("Question: What is the capital of France?\nAnswer:", [" Paris", " London", " a banana"]),
    ("Question: How many days has a week?\nAnswer:", [" Seven days", " Twelve", " 7"]),
    ("Question: What do bees make?\nAnswer:", [" honey", " milk and cheese", " cars"]),
]
# Batches of other sizes round otherwise, and the weights have 4 bits.
NEAR = 0.4


@slow
class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)

    def complete(self, **fields):
        request = {"model": "fast", "temperature": 0, "seed": 1234, **fields}
        body = urllib.request.Request(
            f"{self.host.url}/v1/completions",
            data=json.dumps(request).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(body, timeout=HANG_SECONDS) as response:
            choices = json.load(response)["choices"]
        return sorted(choices, key=lambda choice: choice["index"])

    def tokens(self, text):
        """The ids of a text: all but a first line break, which nothing precedes."""
        listed = self.complete(prompt="\n" + text, prompt_logprobs=0, max_tokens=0)[0]["prompt_logprobs"]
        return [int(next(iter(token))) for token in listed[1:]]

    def scores(self, prompts, lengths):
        """The harness's request, and what it makes of the answer: the continuation's log probability, and whether it is greedy."""
        choices = self.complete(prompt=prompts, max_tokens=1, logprobs=1, echo=True)
        self.assertEqual(len(choices), len(prompts))
        found = []
        for choice, length in zip(choices, lengths, strict=True):
            logprobs = choice["logprobs"]
            self.assertIsNone(logprobs["token_logprobs"][0])
            own = logprobs["token_logprobs"][length:-1]
            best = [max(top.values()) for top in logprobs["top_logprobs"][length:-1]]
            found.append((sum(own), own == best))
        return found

    def directly(self, context, continuation):
        """The same, each token forced upon the model after those before it."""
        total = 0
        for at, token in enumerate(continuation):
            prompt = context + continuation[:at]
            forced = self.complete(prompt=prompt, max_tokens=1, logprobs=0, logit_bias={str(token): 1000})
            total += forced[0]["logprobs"]["token_logprobs"][0]
        return total

    def test_multiple_choice_scores_equal_a_direct_computation(self):
        for question, options in TASK:
            context = self.tokens(question)
            whole = [self.tokens(question + option) for option in options]
            self.assertTrue(all(tokens[: len(context)] == context for tokens in whole))
            lengths = [len(context)] * len(options)
            by_ids = self.scores(whole, lengths)
            # One by one: what is computed beside a prompt rounds it otherwise.
            by_text = [self.scores([question + option], [len(context)])[0] for option in options]
            expected = [self.directly(context, tokens[len(context) :]) for tokens in whole]
            for option, wanted, found, same in zip(options, expected, by_ids, by_text, strict=True):
                self.assertAlmostEqual(found[0], wanted, delta=NEAR, msg=option)
                self.assertAlmostEqual(same[0], wanted, delta=NEAR, msg=option)
                self.assertEqual(found[1], same[1], option)
            scores = [score for score, _ in by_ids]
            self.assertEqual(scores.index(max(scores)), expected.index(max(expected)), question)

    def test_a_continuation_of_the_models_own_is_greedy(self):
        text = "1, 2, 3, 4, 5, 6, 7, 8, 9,"
        context = self.tokens(text)
        own = self.complete(prompt=context, max_tokens=4)[0]["text"]
        prompts = [self.tokens(text + own), self.tokens(text + " 3, 17,")]
        scores = self.scores(prompts, [len(context)] * 2)
        self.assertEqual([greedy for _, greedy in scores], [True, False])


if __name__ == "__main__":
    unittest.main()
