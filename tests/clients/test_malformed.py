"""Requests that no client should send, servers that do what none should, and files that no program should have made: nothing panics, hangs,
blames the wrong side, or ends as complete with something missing.

`make malformed` sends many more, and has schemathesis read our OpenAPI document."""

import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "malformed"))

import answers  # noqa: E402
import contexts  # noqa: E402
import corpus  # noqa: E402
import documents  # noqa: E402
import exports  # noqa: E402
import messages  # noqa: E402
import streams  # noqa: E402
import verdict  # noqa: E402
import wire  # noqa: E402
from serving import STARTER, Host, behind  # noqa: E402
from stub import BAD, Stub  # noqa: E402

COUNT, OF_EACH_BAD, REAL, BROKEN = 2000, 40, 300, 100
# Kinds of requests of which some must be refused by the gateway itself.
CERTAIN = {"broken_json", "deep", "headers", "methods", "not_an_object", "numbers", "two_lengths", "wrong_field", "wrong_inside",
           "wrong_length", "wrong_text"}


class Malformed(unittest.TestCase):
    def hold(self, host, requests, allowed=()):
        outcomes, faults = verdict.run(host.address, requests, allowed)
        self.assertEqual(faults, [], verdict.summary(outcomes))
        self.assertTrue(host.is_well())
        self.assertEqual(host.panics(), [])
        return outcomes

    def test_no_request_causes_a_server_error(self):
        with Stub() as stub, Host(behind(stub.url)) as host:
            outcomes = self.hold(host, corpus.requests("ci", COUNT, token=host.token))
            self.assertGreater(outcomes["400"], COUNT // 10, outcomes)
            # Requests whose clients have gone hold nothing.
            self.assertEqual(host.left_running(), 0)

    def test_a_gateway_that_answers_everything_alike_is_noticed(self):
        with Stub() as stub:
            _, faults = verdict.run(stub.server.server_address, corpus.requests("ci", COUNT))
        kinds = {fault.split()[1].rstrip(":") for fault in faults if "in place of a refusal" in fault}
        self.assertLessEqual(CERTAIN, kinds)
        for body in ({"messages": 5}, {"messages": [], "max_tokens": "x"}, {"messages": [], "temperature": True}):
            sent = corpus.sent("/v1/chat/completions", corpus.written(body))
            self.assertEqual(sent.expected, corpus.REFUSED_BY_ENGINE, body)
        refusal = wire.Answer(400, {}, b"")
        self.assertIsNotNone(verdict.fault_of(refusal, (), corpus.ANSWERED))
        self.assertIsNone(verdict.fault_of(refusal, (), corpus.REFUSED))

    def test_a_misbehaving_upstream_is_reported_as_at_fault(self):
        with Stub() as stub, Host(behind(stub.url)) as host:
            for behaviour in BAD:
                stub.behave(behaviour)
                with self.subTest(behaviour):
                    for chain in (False, True):
                        self.hold(host, corpus.requests(behaviour, OF_EACH_BAD, chain), verdict.HONEST)

    def test_a_dead_endpoint_is_reported_as_unreachable(self):
        with Host(behind("http://127.0.0.1:9")) as host:
            outcomes = self.hold(host, corpus.requests("refused", OF_EACH_BAD * 4), ["unreachable"])
            self.assertGreater(outcomes["502"], 0, outcomes)

    def test_our_own_engine_refuses_unsupported_requests(self):
        with Host(f'[tiers.fast]\nmodel = "{STARTER}"\ncontext = 256\n') as host:
            outcomes = self.hold(host, corpus.requests("real", REAL, token=host.token, engine=True))
            self.assertGreater(outcomes["400"], 0, outcomes)
            self.assertEqual(host.left_running(), 0)

    def test_no_broken_stream_ends_as_complete_with_text_missing(self):
        with Stub() as stub, Host(streams.config(stub.url)) as host:
            self.assertEqual(streams.run(host, stub, "ci", 8 * BROKEN), [])
            self.assertEqual(host.panics(), [])
            self.assertEqual(host.left_running(), 0)

    def test_a_reader_that_loses_a_piece_is_noticed(self):
        sent = b"".join(b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % piece for piece in (b"a", b"b"))
        sent += b"data: [DONE]\n\n"
        answer = wire.Answer(200, {}, sent.replace(b'"b"', b'""'))
        self.assertIn("in place of ('ab', ", streams.fault_of("/v1/chat/completions", sent, answer))
        self.assertIsNone(streams.fault_of("/v1/chat/completions", sent, wire.Answer(200, {}, sent)))

    def test_a_reader_of_either_form_that_loses_letters_is_noticed(self):
        for form, path in ((streams.chunks, "/v1/chat/completions"), (streams.blocks, "/v1/messages")):
            for seed in range(BROKEN):
                sent = streams.made(random.Random(seed), 0, form)
                self.assertIsNone(streams.fault_of(path, sent, wire.Answer(200, {}, sent), True, form), seed)
                lost = sent.replace(b"Gr", b"")
                fault = streams.fault_of(path, sent, wire.Answer(200, {}, lost), True, form)
                self.assertEqual(fault is None, lost == sent, seed)

    def test_no_broken_answer_is_complete_with_something_missing(self):
        with Stub() as stub, Host(streams.config(stub.url)) as host:
            count = BROKEN * len(streams.DIALECTS) * len(answers.FORMS)
            self.assertEqual(answers.run(host, stub, "ci", count), [])
            self.assertEqual(host.panics(), [])

    def test_a_reader_that_loses_a_call_is_noticed(self):
        call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
        message = {"role": "assistant", "content": "Look.", "tool_calls": [call]}
        sent = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
        path = "/v1/chat/completions"
        self.assertIsNone(answers.fault_of(path, sent, wire.Answer(200, {}, sent), False, True))
        lost = wire.Answer(200, {}, sent.replace(b"Paris", b""))
        self.assertIn("in place of ('Look.', ", answers.fault_of(path, sent, lost, False))
        call = {"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Paris"}}
        message = {"type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use"}
        sent, form = json.dumps(message).encode(), answers.FORMS["cloud"]
        self.assertIsNone(answers.fault_of(form.passes, sent, wire.Answer(200, {}, sent), False, True, form))
        lost = wire.Answer(200, {}, sent.replace(b"Paris", b""))
        self.assertIn("in place of ", answers.fault_of(form.passes, sent, lost, False, False, form))

    def test_broken_messages_of_an_mcp_server_cost_only_its_tools(self):
        with Stub() as stub, Host(behind(stub.url)) as host:
            faults, well = messages.run(host, stub, "ci", BROKEN)
            self.assertEqual(faults, [])
            self.assertGreater(well, BROKEN // 2)
            self.assertEqual(host.panics(), [])

    def test_broken_documents_are_read_or_refused(self):
        self.assertEqual(documents.run("ci", 3 * BROKEN), [])

    def test_broken_exports_are_read_or_refused(self):
        with Host("") as host:
            self.assertEqual(exports.run(host, "ci", 4 * BROKEN), [])
            self.assertEqual(host.panics(), [])

    def test_broken_contexts_cost_no_worker(self):
        with Host(f'[tiers.fast]\nmodel = "{STARTER}"\ncontext = 256\n') as host:
            self.assertEqual(contexts.run(host, "ci", BROKEN), [])
            self.assertEqual(host.panics(), [])
