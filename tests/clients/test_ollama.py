"""The real `ollama` package against a running host with a real model."""

import base64
import contextlib
import json
import pathlib
import socket
import struct
import subprocess
import time
import unittest
import urllib.request
import zlib

import ollama
from host import CONFIG, HANG_SECONDS, MODEL, Host, program

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about the sea."}]
COUNTING = "1, 2, 3, 4, 5, 6, 7, 8, 9,"
FIGURES = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


def png():
    """One white pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\xff\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def cosine(one, other):
    """Of vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


class Ollama(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)
        cls.client = ollama.Client(host=cls.host.url, timeout=HANG_SECONDS)
        cls.addClassCleanup(cls.client.close)
        headers = {"Authorization": f"Bearer {cls.host.token}"}
        cls.owner = ollama.Client(host=cls.host.url, timeout=HANG_SECONDS, headers=headers)
        cls.addClassCleanup(cls.owner.close)

    def chat(self, messages=QUESTION, model="fast", options=None, **fields):
        options = {"temperature": 0, "num_predict": 24, **(options or {})}
        return self.client.chat(model=model, messages=messages, options=options, **fields)

    def refused(self, status, call):
        with self.assertRaises(ollama.ResponseError) as raised:
            call()
        self.assertEqual(raised.exception.status_code, status)
        return raised.exception.error

    def test_models_are_the_router_the_tiers_and_their_models(self):
        models = self.client.list().models
        self.assertEqual([model.model for model in models], ["auto", "fast", MODEL])
        for model in models[1:]:
            self.assertGreater(model.size, 90_000_000)
            self.assertGreater(model.modified_at.year, 2000)
            self.assertEqual(len(model.digest), 64)
            self.assertEqual(model.details.family, "llama")
            self.assertEqual(model.details.format, "gguf")
            self.assertEqual(model.details.parameter_size, "134.52M")
            self.assertEqual(model.details.quantization_level, "Q4_1")

    def test_a_model_is_shown_with_context_and_capabilities(self):
        shown = self.client.show("fast:latest")
        self.assertEqual(shown.capabilities, ["completion"])
        self.assertEqual(shown.modelinfo["general.architecture"], "llama")
        self.assertEqual(shown.modelinfo["llama.context_length"], 2048)
        self.assertEqual(shown.details.quantization_level, "Q4_1")
        self.assertIn("2048", shown.parameters)
        self.refused(404, lambda: self.client.show("gpt-5"))

    def test_a_whole_answer_has_text_and_usage(self):
        answer = self.chat()
        self.assertTrue(answer.message.content.strip())
        self.assertEqual(answer.message.role, "assistant")
        self.assertEqual(answer.model, "fast")
        self.assertTrue(answer.done)
        for figure in FIGURES:
            self.assertGreater(answer[figure], 0, figure)
        spent = answer.prompt_eval_duration + answer.eval_duration
        self.assertLessEqual(spent, answer.total_duration)

    def test_a_stream_equals_the_whole_answer_with_its_usage(self):
        whole = self.chat()
        parts = list(self.chat(stream=True))
        self.assertEqual("".join(part.message.content for part in parts), whole.message.content)
        self.assertEqual({part.done for part in parts[:-1]}, {False})
        last = parts[-1]
        self.assertTrue(last.done)
        self.assertEqual(last.done_reason, whole.done_reason)
        self.assertEqual((last.prompt_eval_count, last.eval_count), (whole.prompt_eval_count, whole.eval_count))
        self.assertGreater(last.eval_duration, 0)

    def test_every_name_of_a_tier_reaches_it(self):
        for name in ("auto", "fast", "fast:latest", MODEL, f"{MODEL}:latest"):
            answer = self.chat(model=name, options={"num_predict": 1})
            self.assertEqual(answer.model, name)

    def test_options_take_effect_except_those_of_a_load(self):
        answer = self.chat(options={"num_predict": 3, "num_ctx": 1_000_000, "num_gpu": 99, "num_thread": 1})
        self.assertEqual((answer.eval_count, answer.done_reason), (3, "length"))
        before, stop = self.chat().message.content.split(" ", 2)[:2]
        answer = self.chat(options={"stop": [stop]})
        self.assertEqual((answer.message.content.strip(), answer.done_reason), (before, "stop"))

        def say(seed):
            options = {"temperature": 1.5, "seed": seed, "num_predict": 32, "top_k": 40, "top_p": 0.9, "repeat_penalty": 1.1}
            return self.client.chat("fast", STORY, options=options).message.content

        first = say(7)
        self.assertEqual(say(7), first)
        self.assertNotEqual(say(8), first)

    def test_a_prompt_is_answered_and_a_raw_one_continued(self):
        options = {"temperature": 0, "num_predict": 24}
        answer = self.client.generate("fast", QUESTION[0]["content"], options=options)
        self.assertEqual(answer.response, self.chat().message.content)
        system = self.client.generate("fast", QUESTION[0]["content"], system="You count tokens.", options=options)
        self.assertGreater(system.prompt_eval_count, 0)
        self.assertNotEqual(system.prompt_eval_count, answer.prompt_eval_count)
        options = {"temperature": 0, "num_predict": 8}
        raw = self.client.generate("fast", COUNTING, raw=True, options=options)
        self.assertTrue(raw.response.startswith(" 10, 11,"), raw.response)
        parts = list(self.client.generate("fast", COUNTING, raw=True, options=options, stream=True))
        self.assertEqual("".join(part.response for part in parts), raw.response)

    def test_unsupported_fields_are_refused_not_ignored(self):
        self.assertIn("suffix", self.refused(400, lambda: self.client.generate("fast", "def f(", suffix="return x")))
        self.assertIn("template", self.refused(400, lambda: self.client.generate("fast", "Hi", template="{{ .Prompt }}")))
        image = [{"role": "user", "content": "What is this?", "images": [png()]}]
        self.assertIn("takes text, and the request has images", self.refused(400, lambda: self.chat(image)))
        image[0]["images"] = [base64.b64encode(b"no image at all").decode()]
        self.assertIn("image 1", self.refused(400, lambda: self.chat(image)))

    def test_thinking_can_be_requested(self):
        # This model does not think, so the field is absent.
        for think in (True, False, "low"):
            self.assertIsNone(self.chat(think=think).message.thinking)

    def test_a_model_is_loaded_listed_with_its_size_and_unloaded(self):
        loaded = self.client.chat("fast", [], keep_alive=-1)
        self.assertEqual((loaded.done, loaded.done_reason, loaded.message.content), (True, "load", ""))
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            (running,) = self.client.ps().models
            footprint = next(tier["footprint_bytes"] for tier in self.host.status()["tiers"] if tier["id"] == "fast")
            # Two readings of a process that does nothing, once those of its load are past.
            if running.size > 1 << 20 and abs(running.size - footprint) < 16 << 20:
                break
            self.assertLess(time.monotonic(), deadline, f"{running.size} and {footprint}")
            time.sleep(0.5)
        self.assertEqual((running.model, running.context_length), ("fast", 2048))
        for unloaded in (self.client.generate("fast", "", keep_alive=0), self.client.generate("fast", "", keep_alive=0)):
            self.assertEqual((unloaded.done_reason, unloaded.response), ("unload", ""))
            self.host.until_state("fast", "stopped")
        self.assertEqual(self.client.ps().models, [])

    def test_similar_texts_have_similar_vectors(self):
        texts = ["The cat sits outside.", "A cat is sitting outside.", "Share prices fell on Monday."]
        answer = self.client.embed("fast", texts)
        one, near, far = answer.embeddings
        self.assertEqual(len(one), 576)
        self.assertGreater(answer.prompt_eval_count, 10)
        self.assertGreater(cosine(one, near), cosine(one, far))
        alone = self.client.embed("fast", texts[0]).embeddings[0]
        older = self.client.embeddings("fast", texts[0]).embedding
        self.assertGreater(cosine(one, alone), 0.999)
        self.assertGreater(cosine(older, alone), 0.99999)
        # As Ollama does, unless it is told not to.
        self.assertEqual(len(self.client.embed("fast", "word " * 3000).embeddings[0]), 576)
        self.assertIn("context", self.refused(400, lambda: self.client.embed("fast", "word " * 3000, truncate=False)))

    def test_errors_have_a_status_and_a_message(self):
        unknown = self.refused(404, lambda: self.chat(model="gpt-5"))
        self.assertTrue(unknown.startswith('there is no model or tier "gpt-5"; use one of: auto, fast,'), unknown)
        self.refused(503, lambda: self.chat(model="heavy"))
        long = [{"role": "user", "content": "word " * 20_000}]
        for stream in (False, True):
            self.assertIn("context", self.refused(400, lambda stream=stream: list(self.chat(long, stream=stream))))
        self.assertIn("options.top_k", self.refused(400, lambda: self.chat(options={"top_k": "many"})))

    def test_a_stream_that_is_closed_frees_the_tier(self):
        parts = self.chat(STORY, options={"num_predict": 1900, "stop": []}, stream=True)
        next(part for part in parts if part.message.content)
        parts.close()
        self.host.until_state("fast", "ready")
        self.assertEqual(self.chat(options={"num_predict": 3}).eval_count, 3)

    def test_only_the_owner_pulls_and_deletes_models(self):
        self.refused(401, lambda: self.client.pull("no-such-model-anywhere"))
        self.assertEqual(self.client.pull(MODEL).status, "success")
        self.refused(401, lambda: self.client.delete(MODEL))
        self.assertEqual(self.owner.pull(MODEL).status, "success")
        self.assertEqual([part.status for part in self.owner.pull("fast", stream=True)], ["success"])
        self.refused(404, lambda: self.owner.pull("no-such-model-anywhere"))
        self.assertIn("is a tier, not a model", self.refused(400, lambda: self.owner.delete("fast")))
        self.refused(404, lambda: self.owner.delete("no-such-model-anywhere"))
        self.chat(options={"num_predict": 1})
        self.assertIn("loaded by fast", self.refused(409, lambda: self.owner.delete(MODEL)))

    def test_functions_of_ollamas_store_are_refused(self):
        self.assertIn("/api/copy", self.refused(400, lambda: self.client.copy("fast", "mine")))
        self.assertIn("/api/create", self.refused(400, lambda: self.client.create("mine", from_="fast")))
        self.assertIn("/api/push", self.refused(400, lambda: self.client.push("fast")))


class Pulls(unittest.TestCase):
    """From a hub of the tests' own, with the same files."""

    REFERENCE, BYTES = "hf.co/tierbar-tests/tiny-GGUF:Q4_1", 98_362_432

    def test_a_pull_reports_progress_and_installs_the_model(self):
        with contextlib.ExitStack() as held:
            # Slow enough to be seen.
            command = [pathlib.Path(program()).parent / "hub_stand_in", "--rate", "30000000"]
            hub = held.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            held.callback(hub.terminate)
            host = Host("", HF_ENDPOINT=json.loads(hub.stdout.readline())["url"])
            held.callback(host.stop)
            (host.home / "models" / f"{MODEL}.gguf").unlink()
            headers = {"Authorization": f"Bearer {host.token}"}
            owner = held.enter_context(ollama.Client(host=host.url, timeout=HANG_SECONDS, headers=headers))
            self.assertEqual([model.model for model in owner.list().models], ["auto"])
            progress = list(owner.pull(self.REFERENCE, stream=True))
            self.assertEqual((progress[0].status, progress[-1].status), ("pulling manifest", "success"))
            far = [part.completed for part in progress if part.total == self.BYTES]
            self.assertEqual(far, sorted(far))
            self.assertTrue(any(0 < completed < self.BYTES for completed in far if completed), far)
            # It is here, and listed once a tier has it.
            file = host.home / "models" / f"{MODEL}.gguf"
            self.assertTrue(file.exists())
            owner.delete(MODEL)
            self.assertFalse(file.exists())


class InItsPlace(unittest.TestCase):
    """On Ollama's own port, or not if it is taken."""

    def test_a_taken_ollama_port_is_reported_and_tolerated(self):
        with contextlib.ExitStack() as held:
            # Held by this test, or by another program.
            theirs = held.enter_context(socket.socket())
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                theirs.bind(("127.0.0.1", 11434))
                theirs.listen()
            host = Host("[server]\nact_as_ollama = true\n" + CONFIG)
            held.callback(host.stop)
            notice = self.notice_of(host)
            self.assertIn("does not act as Ollama: port 11434 on 127.0.0.1 is taken by", notice)
            client = held.enter_context(ollama.Client(host=host.url, timeout=HANG_SECONDS))
            self.assertEqual(client.list().models[0].model, "auto")

    def notice_of(self, host):
        """The host's notice about it, from its events: it tries the port once it serves."""
        headers = {"Authorization": f"Bearer {host.token}"}
        request = urllib.request.Request(f"{host.url}/tierbar/v1/events", headers=headers)
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as events:
            for line in events:
                if line.startswith(b"data:"):
                    notices = json.loads(line[5:]).get("notices", [])
                    if found := [notice for notice in notices if "Ollama" in notice]:
                        return found[0]
        raise AssertionError("it did not mention Ollama")


if __name__ == "__main__":
    unittest.main()
