"""Collections of documents as vector stores of the real `openai` package, and `file_search` in its responses."""

import json
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

import openai
from host import HANG_SECONDS, Host


class VectorStores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)
        settings = {"base_url": f"{cls.host.url}/v1", "max_retries": 0, "timeout": HANG_SECONDS}
        cls.stranger = openai.OpenAI(**settings, api_key="unused")
        cls.addClassCleanup(cls.stranger.close)
        # Each answer is checked against the package's types.
        cls.client = openai.OpenAI(**settings, api_key=cls.host.token, _strict_response_validation=True)
        cls.addClassCleanup(cls.client.close)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        papers = Path(folder.name)
        (papers / "lights.md").write_text("# Lighthouses\n\nThe tower is painted every seven years.\n")
        cls.add(papers)
        until = time.monotonic() + HANG_SECONDS
        while (store := cls.client.vector_stores.create(name="Papers")).file_counts.completed < 1:
            if time.monotonic() > until:
                raise AssertionError(store)
            time.sleep(0.2)
        cls.store = store

    @classmethod
    def add(cls, path):
        request = urllib.request.Request(
            f"{cls.host.url}/tierbar/v1/documents",
            data=json.dumps({"path": str(path), "collection": "Papers"}).encode(),
            headers={"Authorization": f"Bearer {cls.host.token}"},
        )
        urllib.request.urlopen(request, timeout=HANG_SECONDS).close()

    def test_a_collection_is_listed_searched_and_refuses_uploads(self):
        stores = self.client.vector_stores.list()
        self.assertEqual([store.id for store in stores], [self.store.id])
        self.assertEqual(self.client.vector_stores.retrieve(self.store.id), self.store)
        (file,) = self.client.vector_stores.files.list(self.store.id)
        self.assertEqual((file.status, file.last_error), ("completed", None))
        (found,) = self.client.vector_stores.search(self.store.id, query="Who paints the tower?")
        self.assertEqual((found.filename, found.file_id), ("lights.md", file.id))
        self.assertIn("seven years", found.content[0].text)
        with self.assertRaises(openai.BadRequestError) as refused:
            self.client.files.create(file=("a.txt", b"text"), purpose="assistants")
        self.assertIn("tierbar documents add", str(refused.exception.body))
        with self.assertRaises(openai.AuthenticationError):
            self.stranger.vector_stores.list()

    def test_a_response_has_the_search_whole_and_streamed(self):
        request = {
            "model": "fast",
            "input": "When is the tower painted?",
            "tools": [{"type": "file_search", "vector_store_ids": [self.store.id], "max_num_results": 2}],
            "include": ["file_search_call.results"],
            "max_output_tokens": 16,
        }
        whole = self.client.responses.create(**request)
        search, message = whole.output
        self.assertEqual((search.type, search.status), ("file_search_call", "completed"))
        self.assertIn("seven years", search.results[0].text)
        self.assertEqual(message.type, "message")
        with self.client.responses.stream(**request) as stream:
            events = list(stream)
        self.assertIn("response.file_search_call.completed", [event.type for event in events])
        self.assertEqual(events[-1].response.output[0].results, search.results)
        with self.assertRaises(openai.PermissionDeniedError):
            self.stranger.responses.create(**request)


if __name__ == "__main__":
    unittest.main()
