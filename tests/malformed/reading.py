"""What a client has of an answer, and how server-sent events are read by their rules."""

import json
import re

import words


class Read:
    """An answer's text, thoughts and calls, and whether the client was told that this is all; `sure` if there is no doubt about these, and
    None if something of them is lost."""

    def __init__(self, complete=False, sure=True):
        self.text, self.thoughts, self.complete, self.sure = "", "", complete, sure
        # By number: the name, and the arguments as text.
        self.calls = {}
        # The last piece, and its field or the number of its call.
        self.last = ("text", "")
        # The fields that end with half a letter, and were not continued at once.
        self.parted = set()

    def doubt(self):
        """Notes that what arrived may be mended or refused."""
        if self.sure:
            self.sure = False

    def follow(self, field, piece):
        """Notes a piece. If half a letter comes before what is for another field, and the other half behind that, they may meet or not."""
        before, end = self.last
        if before != field and "\ud800" <= end[-1:] <= "\udbff":
            self.parted.add(before)
        if piece and field in self.parted:
            self.parted.remove(field)
            if "\udc00" <= piece[0] <= "\udfff":
                self.doubt()
        self.last = (field, piece)

    def add(self, field, piece):
        """Adds a piece of the text or the thoughts."""
        if isinstance(piece, str) and piece:
            self.follow(field, piece)
            setattr(self, field, getattr(self, field) + piece)
        elif piece not in (None, ""):
            self.doubt()

    def add_call(self, number, name, arguments):
        self.follow(number, arguments)
        self.calls[number] = tuple(old + new for old, new in zip(self.calls.get(number, ("", "")), (name, arguments), strict=True))

    def has_odd_call(self):
        """Whether a call is not one of the tool with an object as its arguments."""
        return any(name != words.TOOL or object_of(arguments) is None for name, arguments in self.calls.values())

    def all(self):
        """Whatever arrived: each call with its arguments as an object, or None in their place."""
        calls = [(name, object_of(arguments)) for name, arguments in self.calls.values()]
        return joined(self.text), joined(self.thoughts), calls


def joined(text):
    """With surrogates made whole letters, and lone ones replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def refuse(constant):
    raise ValueError(constant)


def object_of(text):
    """The object that a call's arguments are, with its letters made whole, or None."""
    try:
        value = json.loads(joined(text) or "{}", parse_constant=refuse)
    except ValueError:
        return None
    return json.loads(joined(json.dumps(value, ensure_ascii=False))) if isinstance(value, dict) else None


def events_of(data):
    """The data of each event, by the rules of server-sent events; an unfinished one is none."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    found, lines = [], []
    for line in re.split(r"\r\n|\r|\n", text):
        if line == "":
            if lines:
                found.append("\n".join(lines))
            lines = []
        elif line == "data" or line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
    return found


def values_of(event):
    """The objects of an event's data, which are several where the empty line between two events was damaged; None if one cannot be read."""
    found, begun = [], ""
    for line in event.split("\n"):
        begun += line + "\n"
        try:
            found.append(json.loads(begun))
        except ValueError:
            if "{" in begun:
                continue  # it may go on in the next line
        begun = ""
    return None if begun else [value for value in found if isinstance(value, dict)]


def is_split(value):
    """Whether an object has half a letter and bytes that are none. If its other half is in a field whose name was damaged, a reader of
    bytes joins them, and one of fields does not."""
    text = json.dumps(value, ensure_ascii=False)
    return "\ufffd" in text and joined(text) != text
