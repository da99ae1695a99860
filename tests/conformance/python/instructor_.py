"""instructor, by the name of the package beneath: openai or anthropic."""

import instructor
from cells import *

DIALECT = sys.argv[1]
FIELDS = {"max_tokens": 64, "max_retries": 0, "response_model": Parcel}
if DIALECT == "openai":
    import openai

    package, OBJECTS, FORCES = openai.OpenAI(base_url=V1, api_key=KEY, max_retries=0, timeout=SECONDS), "JSON_SCHEMA", "TOOLS"
    wrap = instructor.from_openai
else:
    import anthropic

    package, OBJECTS, FORCES = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=SECONDS), "ANTHROPIC_JSON", "ANTHROPIC_TOOLS"
    wrap = instructor.from_anthropic


def ask(tier, mode, text=ASK_PARCEL):
    return wrap(package, mode=instructor.Mode[mode]).chat.completions.create(model=tier, messages=user(text), **FIELDS)


def forced(tier):
    """Its default mode: a tool that must be called."""
    return NAME, ask(tier, FORCES)


if DIALECT == "openai":

    def structured(tier):
        return ask(tier, OBJECTS)


def overflow(tier):
    return raised(lambda: ask(tier, "JSON" if DIALECT == "openai" else OBJECTS, STORY), Exception)


def unknown(tier):
    return raised(lambda: ask(tier, "JSON" if DIALECT == "openai" else OBJECTS), Exception)


run("instructor")
