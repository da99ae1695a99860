"""How the rules, the classifier and both together sort prompts.jsonl."""

from statistics import median

from host import ROOT, TIERS, lines, share, table

SETS = "abcdefgh"
HELD_OUT = "cfh"
LEVELS = {"simple": "fast", "medium": "primary", "hard": "heavy"}
TOO_SMALL, TOO_LARGE = {1: 2, 2: 4}, {1: 0.5, 2: 1}
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}}


def request_of(line):
    """The chat request that a line stands for."""
    messages = line.get("messages")
    if messages is None:
        text = line["prompt"]
        if "file" in line:
            text += "\n\n" + (ROOT / line["file"]).read_text()
        content = text
        if line.get("image"):
            content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": PIXEL}}]
        messages = [{"role": "user", "content": content}]
    return {"model": "auto", "messages": messages, **({"tools": [TOOL]} if line.get("tools") else {})}


def sorted_by(answers):
    """The tier that each method of sorting gives each prompt: {name: [tier, …]}."""
    rules = [answer["rules"] for answer in answers]
    ways = {"rules alone": [LEVELS[rule["level"]] for rule in rules]}
    if answers[0]["classifier"]:
        said = [answer["classifier"] for answer in answers]
        ways |= {
            "classifier alone": [LEVELS[one["level"]] for one in said],
            "as auto does": [LEVELS[answer["level"]] for answer in answers],
            "rules, then the classifier, believed or not": [
                LEVELS[(rule if rule["sure"] else one)["level"]] for rule, one in zip(rules, said)],
        }
    return ways


def steps(label, chosen):
    return TIERS.index(label) - TIERS.index(chosen)


def weight(label, chosen):
    return TOO_SMALL.get(steps(label, chosen), 0) or TOO_LARGE.get(-steps(label, chosen), 0)


def confusion(pairs):
    rows = [[f"**{label}**", *(str(pairs.count((label, one))) for one in TIERS)] for label in TIERS]
    return table(["label \\ chosen", *TIERS], rows)


def measure(host, most=None):
    """The tables for the host's model; `most` prompts of each set."""
    prompts = [prompt for which in SETS for prompt in [one for one in lines("prompts.jsonl") if one["set"] == which][:most]]
    classify = "always" if host.subject.file else "auto"
    path = f"/tierbar/v1/route?classify={classify}"
    host.post(path, request_of(prompts[0]))
    asked = [host.post(path, request_of(prompt)) for prompt in prompts]
    answers = [answer for answer, _ in asked]
    refused = next((answer for answer in answers if "error" in answer), None)
    if refused:
        raise SystemExit(f"the host refused: {refused['error']}")
    text = []
    if answers[0]["classifier"]:
        exam = answers[0]["classifier"]["exam"]
        verdict = "so auto asks it" if exam["passed"] else "so auto does not ask it and goes by its rules"
        seconds = median(seconds for _, seconds in asked)
        text += [f"{exam['right']} of the {exam['of']} probes right, {verdict}. The median time of a question is {seconds:.2f} s.", ""]
    guesses = sum(not answer["rules"]["sure"] for answer in answers)
    text += [f"The rules guess at {guesses} of the {len(prompts)} prompts, and say so.", ""]
    labels = [prompt["label"] for prompt in prompts]
    rows = []
    for name, chosen in sorted_by(answers).items():
        def row(which):
            pairs = [(label, one) for label, one, prompt in zip(labels, chosen, prompts) if prompt["set"] in which]
            right, near = (sum(abs(steps(*pair)) <= most for pair in pairs) for most in (0, 1))
            return [share(right, len(pairs)), share(near, len(pairs)), f"{sum(weight(*pair) for pair in pairs) / len(pairs):.2f}"]
        rows += [[name, f"set {which}" + (", held out" if which in HELD_OUT else ""), *row(which)] for which in SETS]
        rows += [[name, "held out: c, f, h", *row(HELD_OUT)], [name, "all", *row(SETS)]]
    text += [table(["sorted by", "set", "as labeled", "within one tier", "weighted error"], rows)]
    for name, chosen in sorted_by(answers).items():
        pairs = [(label, one) for label, one, prompt in zip(labels, chosen, prompts) if prompt["set"] in HELD_OUT]
        text += ["", f"**{name}**, held out, {len(pairs)} prompts", "", confusion(pairs)]
    return "\n".join(text)
