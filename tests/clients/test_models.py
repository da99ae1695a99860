"""The list of models as the real `openai` package reads it, with a model that no tier has."""

import pathlib
import unittest

import openai

from host import HANG_SECONDS, MODEL, Host, starter

OTHER = "gemma-3-270m-q4_k_m"


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)
        other = starter().with_name(f"{OTHER}.gguf")
        (pathlib.Path(cls.host.folder.name) / "models" / other.name).symlink_to(other)
        cls.client = openai.OpenAI(
            base_url=f"{cls.host.url}/v1", api_key="unused", max_retries=0, timeout=HANG_SECONDS
        )
        cls.addClassCleanup(cls.client.close)

    def test_models_are_listed_with_their_tiers(self):
        models = {model.id: model.tierbar for model in self.client.models.list()}
        self.assertEqual(sorted(models), sorted(["auto", "fast", MODEL]))
        self.assertEqual(models[MODEL], {"kind": "model", "tiers": ["fast"], "input_modalities": ["text"]})
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_a_model_without_a_tier_is_refused_with_a_hint(self):
        for name in (OTHER, f"{OTHER}.gguf"):
            with self.assertRaises(openai.NotFoundError) as refusal:
                self.client.responses.create(input="Hi", model=name)
            self.assertIn(f"{OTHER} is installed, but no tier uses it", refusal.exception.message)
            self.assertIn("tierbar tier use", refusal.exception.body["hint"])
            self.assertIn("fast", refusal.exception.body["available"])


if __name__ == "__main__":
    unittest.main()
