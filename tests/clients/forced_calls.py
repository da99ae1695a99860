"""Counts the valid ones of forced tool calls, per dialect and form: `tests/clients/forced_calls.py [--calls 200]`.

Prints the rows of a table, and each wrong answer. Ends with 1 if there is one. `test_forced_calls` is its short form, and
`chosen_calls` counts those that nothing forces.
"""

import argparse
import collections
import itertools
import pathlib
import sys

from calls import DIALECTS, FORMS, Models, ask

ANSWERS = {False: "whole", True: "stream"}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", type=int, default=200, help="calls of each dialect and form, streamed and whole")
    options.add_argument("--form", choices=FORMS, action="append", help="only this form")
    options.add_argument("--dialect", choices=DIALECTS, action="append", help="only this dialect")
    options.add_argument("--strict", action="store_true", help="functions are strict")
    options.add_argument("--model", help="a .gguf file; default: the starter model")
    options = options.parse_args()
    forms, dialects = options.form or FORMS, options.dialect or DIALECTS
    faults = []
    models = Models(options.model and pathlib.Path(options.model).resolve())
    try:
        # A form at a time: each has its model.
        for form in forms:
            made, valid = collections.Counter(), collections.Counter()
            try:
                for number, dialect, stream in itertools.product(range(options.calls), dialects, ANSWERS):
                    fault = ask(models.url, dialect, form, stream, number, options.strict)
                    made[dialect, stream] += 1
                    valid[dialect, stream] += not fault
                    if fault:
                        faults.append(fault)
                        print(f"{form} {dialect} {ANSWERS[stream]} {number}: {fault}", file=sys.stderr, flush=True)
            finally:
                # Those made so far, if it is interrupted.
                for (dialect, stream), count in made.items():
                    right = valid[dialect, stream]
                    print(f"| {form} | {dialect} | {ANSWERS[stream]} | {right} of {count} |", flush=True)
    finally:
        models.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
