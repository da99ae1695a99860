"""All real packages as clients of one host."""

import anthropic
import ollama
import openai
from host import HANG_SECONDS
from played import Able


class Packages(Able):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        settings = {"api_key": "unused", "max_retries": 0, "timeout": HANG_SECONDS}
        cls.openai = openai.OpenAI(base_url=f"{cls.host.url}/v1", **settings)
        cls.addClassCleanup(cls.openai.close)
        cls.anthropic = anthropic.Anthropic(base_url=cls.host.url, **settings)
        cls.addClassCleanup(cls.anthropic.close)
        cls.ollama = ollama.Client(host=cls.host.url, timeout=HANG_SECONDS)
        cls.addClassCleanup(cls.ollama.close)
