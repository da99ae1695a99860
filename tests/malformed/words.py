"""What sound answers are made of."""

import json

TEXT = ["Grüße", " aus", " München", " 👩‍👩‍👧", " 会议", " 𠮷野家", "\n\n", "```json\n{\"a\": 1}\n```", " e\u0301", " data: x", " end."]
# The one tool that a model may call.
TOOL = "weather"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def texts(random):
    return [random.choice(TEXT) for _ in range(random.randint(1, 12))]


def arguments(random):
    """Those of a call, as the text of their JSON, in two pieces."""
    whole = json.dumps({"city": random.choice(TEXT)}, ensure_ascii=random.random() < 0.5)
    cut = random.randrange(len(whole))
    return whole[:cut], whole[cut:]


def parts(random):
    """Whether an answer has thoughts, and a call. Half of them have only text."""
    return random.choice([(False, False), (False, False), (False, False), (True, False), (False, True), (True, True)])
