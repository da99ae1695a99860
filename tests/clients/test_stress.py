"""What the stress test takes for the cause of a refusal: only what was going on at its time."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "stress"))

from load import Act, Outcome, Request, unexplained  # noqa: E402


def refusal(code, began, ended):
    return Outcome(Request(0, "fast", "/", {}), began, ended, "refused", code, "why")


class Causes(unittest.TestCase):
    def explained(self, acts, *refusals):
        found = unexplained(refusals, acts)
        return [refusal not in found for refusal in refusals]

    def test_a_hog_explains_refusals_until_the_alarm_falls(self):
        hog = Act("hog", 100.0, 115.0)
        for code in ("tier_stopped", "overloaded"):
            with self.subTest(code):
                # Ten seconds without a sign end the alarm, and memory is read once a second.
                moments = [(98, 99), (98, 101), (110, 111), (126, 140), (128, 129), (500, 501)]
                refusals = [refusal(code, *moment) for moment in moments]
                self.assertEqual(self.explained([hog], *refusals), [False, True, True, True, False, False])
        self.assertEqual(self.explained([hog], refusal("worker_crashed", 110, 111)), [False])
        self.assertEqual(self.explained([], refusal("overloaded", 0, 1)), [False])

    def test_an_alarm_that_returns_soon_lasts_twice_as_long(self):
        late = refusal("overloaded", 237, 238)
        again = Act("hog", 200.0, 220.0)
        self.assertEqual(self.explained([Act("hog", 100.0, 115.0), again], late), [True])
        self.assertEqual(self.explained([again], late), [False])
        # Two at once are one alarm.
        self.assertEqual(self.explained([Act("hog", 195.0, 215.0), again], late), [False])

    def test_a_kill_explains_what_ran_then(self):
        kill = Act("kill", 50.0, 50.1)
        refusals = [refusal("worker_crashed", 49, 51), refusal("worker_crashed", 51, 52), refusal("tier_failed", 105, 106), refusal("tier_failed", 120, 121)]
        self.assertEqual(self.explained([kill], *refusals), [True, False, True, False])


if __name__ == "__main__":
    unittest.main()
