"""The short form of tests/conformance: the clients whose packages are here, in the cells that both tiers can pass."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

from clients import CELLS, Client, try_client  # noqa: E402
from hosts import EMBEDDER, Serving, starter  # noqa: E402
from tasks import tried_to_edit  # noqa: E402


class Here(Client):
    """A script that runs with this Python's packages."""

    def command(self):
        script = Path(__file__).resolve().parents[1] / "conformance/python" / self.script
        return [sys.executable, str(script), self.kind]


CLIENTS = [
    Here("OpenAI: chat", "openai_chat.py"),
    Here("OpenAI: Responses", "openai_responses.py"),
    Here("Anthropic", "anthropic_.py"),
    Here("Ollama", "ollama_.py"),
    Here("LiteLLM: OpenAI", "litellm_.py", "openai"),
    Here("LiteLLM: Anthropic", "litellm_.py", "anthropic"),
]


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # What bundle/models leaves where a package is gone.
        gone = starter().with_name(f"{EMBEDDER}.gone")
        if gone.exists():
            raise unittest.SkipTest(gone.read_text())
        cls.serving = Serving()
        cls.addClassCleanup(cls.serving.__exit__)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.log = Path(folder.name, "stderr.log")

    def test_each_cell_is_green(self):
        # The engine's own tests have tools together with a schema.
        cells = {cell: title for cell, title in CELLS.items() if cell != "both"}
        for client in CLIENTS:
            row = try_client(client, self.serving, self.log, cells, TIERBAR_SHORT="both")
            for cell in cells:
                with self.subTest(client.name, cell=cell):
                    self.assertFalse(row.cells[cell], row.requests.get(cell))


class Tasks(unittest.TestCase):
    def test_an_edit_is_found_in_what_a_model_wrote(self):
        def streamed(*deltas):
            return "".join(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in deltas)

        for answer, is_edit in [
            (streamed({"content": "I will edit add.py."}), False),
            (streamed({"tool_calls": [{"function": {"name": "read", "arguments": "{}"}}]}), False),
            (streamed({"tool_calls": [{"function": {"name": "edit", "arguments": ""}}]}), True),
            (streamed({"content": '{"na'}, {"content": 'me": "ed'}, {"content": 'it"}'}), True),
            (json.dumps({"content": [{"type": "tool_use", "name": "Edit", "input": {}}]}), True),
            ('data: {"cut', False),
        ]:
            self.assertEqual(tried_to_edit([{"answer": answer.encode()}]), is_edit, answer)


if __name__ == "__main__":
    unittest.main()
