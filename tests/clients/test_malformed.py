"""Requests that no client should send, and servers behind the gateway that do what none should: nothing panics, hangs or blames the wrong side.

`make malformed` sends many more, and has schemathesis read our OpenAPI document."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "malformed"))

import corpus  # noqa: E402
import verdict  # noqa: E402
import wire  # noqa: E402
from serving import STARTER, Host, behind  # noqa: E402
from stub import BAD, Stub  # noqa: E402

COUNT, OF_EACH_BAD, REAL = 2000, 40, 300
# Kinds of requests of which some must be refused by the gateway itself.
CERTAIN = {"broken_json", "deep", "headers", "methods", "not_an_object", "numbers", "two_lengths", "wrong_length", "wrong_text"}


class Malformed(unittest.TestCase):
    def hold(self, host, requests, allowed=()):
        outcomes, faults = verdict.run(host.address, requests, allowed)
        self.assertEqual(faults, [], verdict.summary(outcomes))
        self.assertTrue(host.is_well())
        self.assertEqual(host.panics(), [])
        return outcomes

    def test_no_request_causes_a_server_error(self):
        with Stub() as stub, Host(behind(stub.url)) as host:
            outcomes = self.hold(host, corpus.requests("ci", COUNT))
            self.assertGreater(outcomes["400"], COUNT // 10, outcomes)
            # Requests whose clients have gone hold nothing.
            self.assertEqual(host.left_running(), 0)

    def test_a_gateway_that_answers_everything_alike_is_noticed(self):
        with Stub() as stub:
            _, faults = verdict.run(stub.server.server_address, corpus.requests("ci", COUNT))
        kinds = {fault.split()[1].rstrip(":") for fault in faults if "in place of a refusal" in fault}
        self.assertLessEqual(CERTAIN, kinds)
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
            outcomes = self.hold(host, corpus.requests("real", REAL))
            self.assertGreater(outcomes["400"], 0, outcomes)
            self.assertEqual(host.left_running(), 0)
