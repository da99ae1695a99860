"""Runs all tests of this folder: `python tests/clients/all.py`; one of them: `python -m unittest tests/clients/test_openai.py`."""

import atexit
import os
import sys
import unittest
from pathlib import Path

ran = unittest.main(None, argv=["all", "discover", "-s", str(Path(__file__).parent), "-v"], exit=False)
# A client's package may leave a thread that waits for ever, and Python would wait for it.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(0 if ran.result.wasSuccessful() else 1)
