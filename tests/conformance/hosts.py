"""The host that the clients are tried with."""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

import template
from host import Host, program, starter

EMBEDDER = "all-MiniLM-L6-v2.F32.gguf"
# Tiers of the same weights: with a template that knows tools, and with one that does not. Each answers a question always alike:
# by chance, a model this small would at times call again where a cell asks for words.
TOOLS, PLAIN = "fast", "primary"
# Of the tier that whole tasks are done with. Not always alike: a task is tried more than once.
CONTEXT = 8192
CAPABLE = """\
[tiers.fast]
model = "{model}"
context = {context}
sampling = {{ temperature = 0.3 }}
"""
CONFIG = """\
[tiers.fast]
model = "{tools}"
context = 2048
sampling = {{ temperature = 0.0 }}
[tiers.primary]
model = "{plain}"
context = 2048
sampling = {{ temperature = 0.0 }}
[tiers.embedder]
model = "{embedder}"
context = 512
"""


class Serving(Host):
    """Runs while the block does. With a model's file, that is the only tier's."""

    def __init__(self, model=None):
        self.models, self.model = tempfile.TemporaryDirectory(prefix="tierbar-models-"), model and model.stem
        if model:
            super().__init__(CAPABLE.format(model=model.resolve(), context=CONTEXT), TIERBAR_SECRETS="file")
            return
        tools = Path(self.models.name, "SmolLM2-with-tools.gguf")
        template.write(starter(), tools, Path(__file__).with_name("tools.jinja").read_text())
        paths = {"tools": tools, "plain": starter(), "embedder": starter().with_name(EMBEDDER)}
        super().__init__(CONFIG.format(**paths), TIERBAR_SECRETS="file")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.models.cleanup()

    @property
    def version(self):
        return subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


@contextlib.contextmanager
def tokenizer(python):
    """A folder with the model's tokenizer, written by this Python, which has the packages for it."""
    with tempfile.TemporaryDirectory(prefix="tierbar-tokenizer-") as folder:
        subprocess.run([python, str(Path(__file__).with_name("tokenizer.py")), str(starter()), folder], check=True)
        yield folder
