"""Whether short texts keep the facts of texts.jsonl, and their length."""

from statistics import median

from host import lines, share, table

COMPRESSED, SUMMARIZED = 30, 60


def is_kept(fact, text):
    return any(form.casefold() in text.casefold() for form in fact)


def measure(host, most=None):
    """The table for the host's model; `most` texts."""
    texts = lines("texts.jsonl")[:most]
    rows = []
    for task, words, field in (("compress", COMPRESSED, "text"), ("summarize", SUMMARIZED, "summary")):
        asked = [host.post(f"/v1/{task}", {"text": text["text"], "words": words}) for text in texts]
        made = [(text, answer) for text, (answer, _) in zip(texts, asked) if field in answer]
        kept = sum(is_kept(fact, answer[field]) for text, answer in made for fact in text["facts"])
        lengths = [answer["words"] for _, answer in made]
        rows.append([
            f"{task}, {words} words", share(kept, sum(len(text["facts"]) for text in texts)),
            f"{median(lengths):.0f}" if lengths else "–", share(sum(length <= words for length in lengths), len(texts)),
            str(sum(answer["fallback"] for _, answer in made)), str(len(texts) - len(made)),
            f"{median(seconds for _, seconds in asked):.1f} s"])
    return table(["task", "facts kept", "median words", "within the length", "made by rule", "failed", "median time"], rows)
