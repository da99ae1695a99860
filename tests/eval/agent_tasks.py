#!/usr/bin/env python3
"""Tasks for an agent: the files, the request, a check of what has become of them, and one way to do it.

`tests/eval/agent_tasks.py` does each task by its own way and without a model: a check has to fail before and to hold after it.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SANDBOX = os.environ.get("TIERBAR_SANDBOX", ROOT / "target/release/tierbar-sandbox")


class Task:
    """`files`: the folder by path and content. `check`: of the folder and the agent's last answer. `way`: calls of tools that do it."""

    def __init__(self, name, request, files, check, way, answer="It is done."):
        self.name, self.request, self.files, self.check, self.way, self.answer = name, request, files, check, way, answer

    def lay(self, folder):
        for path, content in self.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    def is_done(self, folder, answer):
        try:
            return bool(self.check(folder, answer))
        except (OSError, ValueError):
            # A file that is missing or cannot be read.
            return False


def run(command):
    return ("run_command", {"command": command})


def write(path, content):
    return ("write_file", {"path": path, "content": content})


def edit(path, old, new):
    return ("edit_file", {"path": path, "old": old, "new": new})


def read(path):
    return ("read_file", {"path": path})


def text(folder, path):
    return (folder / path).read_text().strip()


def words(folder, path):
    return text(folder, path).split()


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def passes(folder, line):
    """Whether a line of shell succeeds, in the sandbox: it runs what a model has written."""
    request = {"arguments": ["/bin/sh", "-c", line], "folder": str(folder.resolve()),
               "policy": {"write": [str(folder.resolve())], "limits": {"seconds": 10}}}
    with subprocess.Popen([SANDBOX], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launcher:
        launcher.stdin.write(json.dumps(request).encode() + b"\n")
        launcher.stdin.flush()
        # Its input stays open: without its host the launcher ends the command.
        report = json.loads(launcher.stdout.read())
    if "finished" not in report:
        raise SystemExit(f"a check could not be run: {report}")
    return report["finished"]["end"] == {"how": "exited", "code": 0}


ADD_TEST = '. ./add.sh\n[ "$(add 2 3)" = 5 ] && [ "$(add -1 1)" = 0 ] && echo passed || { echo failed; exit 1; }\n'
MEAN_TEST = '[ "$(sh mean.sh 2 4 9)" = 5 ] && [ "$(sh mean.sh 7)" = 7 ] && echo passed || { echo failed; exit 1; }\n'
FERRY = """<!doctype html><html><head><title>Ferry to Holm</title><style>p { color: navy }</style></head><body>
<h1>Ferry to Holm</h1><p>The crossing takes 25 minutes.</p><table>
<tr><th>who</th><th>one way</th></tr><tr><td>adult</td><td>9.20</td></tr><tr><td>child</td><td>4.60</td></tr>
<tr><td>bicycle</td><td>3.75</td></tr><tr><td>car</td><td>31.00</td></tr></table>
<p>In winter there is <a href="winter.html">another timetable</a>; see also <a href="https://ferry.example/prices">prices</a>.</p>
</body></html>
"""
OLD_STOCK = "id,name,count\n11,lamp,4\n12,chair,9\n14,desk,2\n17,shelf,6\n"
NEW_STOCK = "id,name,count\n12,chair,7\n14,desk,2\n17,shelf,6\n21,stool,12\n18,bench,1\n"
SERVER_LOG = "".join(
    f"2026-03-0{day} 12:00:0{second} {level} {what}\n"
    for day in (1, 2, 3)
    for second, (level, what) in enumerate([("INFO", "start"), ("ERROR", "disk full"), ("WARN", "ERROR rate is high"), ("INFO", "stop")])
) + "2026-03-04 12:00:00 ERROR no route\n"
SETTINGS = {"name": "kiosk", "port": 80, "hosts": ["a.example", "b.example"], "log": {"level": "info", "port": 514}}
CHANGELOG = "# Changes\n\n## Unreleased\n\n- Faster start\n\n## 1.2\n\n- First release\n"
SPEECH = """Please write to anna@garden.example or, in summer, to board@garden.example. The old address info@garden was never
valid. Ben (ben.k@mail.example) answers on weekends; anna@garden.example does not.
"""
EXPENSES = "date,what,amount\n2026-01-03,paper,12.50\n2026-01-09,ink,30.25\n2026-02-11,paper,7.25\n2026-02-20,stamps,19.00\n"
CALLS = {
    "src/app.sh": ". ./src/users.sh\nget_user 3\nget_user 4\nforget_user 4\n",
    "src/users.sh": 'get_user() { echo "user $1"; }\nforget_user() { echo "forgotten $1"; }\n',
    "README.md": "`get_user` prints a user, and `forget_user` forgets one.\n",
}
MARCH = "product,price\nbread,2.80\nbutter,2.35\ncheese,4.10\nhoney,6.90\nmilk,1.25\n"
APRIL = "product,price\nbutter,2.55\ncheese,3.95\nbread,2.80\nmilk,1.29\ntea,3.40\nhoney,10.20\n"
TRIALS = {
    "papers/larsen-2019.txt": """A field trial of seaweed meal on tomatoes
E. Larsen and P. Holm, 2019

Methods. The meal was spread in April on 36 plots of 20 square meters; another 36 plots had none. It was a dry year, with 210 mm of rain.
Results. Plants with meal bore 4.2 kg, and those without 3.8 kg, a gain of 11 percent. Taste, judged by 14 people, was the same.
""",
    "papers/okafor-2021.txt": """Seaweed meal under glass: a second look
C. Okafor, 2021

We repeated the trial of Larsen and Holm, who had 36 treated plots and found 11 percent, in a greenhouse with 24 treated plots.
The gain was smaller: 4 percent. We think that the watering of 18 liters a week leaves less for the meal to improve.
""",
    "papers/ruiz-2023.txt": """Seaweed meal on poor soil
A. Ruiz, M. Ortega and J. Vidal, 2023

Sixty plots were laid out and 58 of them treated; on two, the seedlings died of frost. On this soil, with 1 percent of humus, the meal
gave 19 percent more fruit than on the untreated plots of the year before.
""",
}
STUDIES = {
    "papers/sleep.txt": """Evening light and sleep
Of 131 people who answered the call, 64 met the conditions. Eight of them left before the first night, so that 56 took part to the end.
""",
    "papers/walks.txt": """Walks before bed
112 people took part to the end. They walked on 3 evenings a week for 8 weeks and slept 21 minutes longer.
""",
    "papers/tea.txt": """Linden tea and sleep
Two groups drank linden tea or hot water, with 40 and 35 people. All of them took part to the end, and slept equally well.
""",
}

# Half for work on the agent's words.
DEV = [
    Task(
        "find a file by a word in it", "Which file in this folder contains the word saffron? Write its path, and nothing else, into found.txt.",
        {"soups/lentil.txt": "lentils, salt", "rice/gold.txt": "rice, stock, saffron, butter", "rice/plain.txt": "rice, water",
         "saffron-free.txt": "a name is no content", "list.txt": "sugar"},
        lambda folder, _: text(folder, "found.txt").removeprefix("./") == "rice/gold.txt",
        [run("grep -rl saffron ."), write("found.txt", "rice/gold.txt\n")]),
    Task(
        "mend a failing test", "test.sh fails. Find out why, mend add.sh, and leave test.sh as it is.",
        {"add.sh": "add() { echo $(($1 - $2)); }\n", "test.sh": ADD_TEST},
        lambda folder, _: (folder / "test.sh").read_text() == ADD_TEST and passes(folder, '[ "$(sh test.sh)" = passed ]'),
        [run("sh test.sh"), read("add.sh"), edit("add.sh", "$1 - $2", "$1 + $2"), run("sh test.sh")]),
    Task(
        "answer from a local page", "ferry.html is a page about a ferry. What does it cost to take a bicycle along? Write the amount alone into price.txt.",
        {"ferry.html": FERRY},
        lambda folder, _: float(text(folder, "price.txt").strip("€$ ")) == 3.75,
        [read("ferry.html"), write("price.txt", "3.75\n")]),
    Task(
        "rename by pattern", "Rename all files in this folder that end in .jpeg so that they end in .jpg. Change nothing else.",
        {"a.jpeg": "A", "b c.jpeg": "BC", "d.jpg": "D", "jpeg.txt": "about jpeg", "deep/e.jpeg": "E"},
        lambda folder, _: names(folder) == ["a.jpg", "b c.jpg", "d.jpg", "deep/e.jpg", "jpeg.txt"] and text(folder, "deep/e.jpg") == "E",
        [run("find . -name '*.jpeg' | while read -r file; do mv \"$file\" \"${file%.jpeg}.jpg\"; done")]),
    Task(
        "compare two CSVs", "Compare old.csv and new.csv. Write the ids that are only in new.csv into added.txt, one on each line, the smallest first.",
        {"old.csv": OLD_STOCK, "new.csv": NEW_STOCK},
        lambda folder, _: words(folder, "added.txt") == ["18", "21"],
        [read("old.csv"), read("new.csv"), write("added.txt", "18\n21\n")]),
    Task(
        "count in a log", "How many lines of server.log have the level ERROR, in the third column? Write the number into count.txt.",
        {"server.log": SERVER_LOG},
        lambda folder, _: text(folder, "count.txt") == "4",
        [run("awk '$3 == \"ERROR\"' server.log | wc -l | tr -d ' ' > count.txt")]),
    Task(
        "replace a word in some files", "In all .md files below this folder, replace colour by color. Leave the other files alone.",
        {"a.md": "colour and colours", "docs/b.md": "one colour", "docs/c.txt": "British colour", "d.md": "nothing here"},
        lambda folder, _: [text(folder, path) for path in ("a.md", "docs/b.md", "docs/c.txt", "d.md")]
        == ["color and colors", "one color", "British colour", "nothing here"],
        [run("find . -name '*.md' | while read -r file; do sed 's/colour/color/g' \"$file\" > new && cat new > \"$file\"; done; rm new")]),
    Task(
        "change one setting", "Set the server's port in settings.json to 8080. Keep all other values, and keep it valid JSON.",
        {"settings.json": json.dumps(SETTINGS, indent=2) + "\n"},
        lambda folder, _: json.loads(text(folder, "settings.json")) == {**SETTINGS, "port": 8080},
        [read("settings.json"), edit("settings.json", '"port": 80,', '"port": 8080,')]),
    Task(
        "gather lines", "Collect all lines with TODO of the .c files into todo.txt, without the names of the files.",
        {"a.c": "int a; // TODO name it\nint b;\n", "lib/b.c": "// TODO test\nint c;\n", "notes.txt": "TODO buy milk\n"},
        lambda folder, _: sorted(line.strip() for line in text(folder, "todo.txt").splitlines()) == ["// TODO test", "int a; // TODO name it"],
        [run("find . -name '*.c' -exec grep -h TODO {} + > todo.txt")]),
    Task(
        "sort files into a folder", "Move the files whose names begin with 2023 into a new folder named 2023. Their names stay.",
        {"2023-01 letter.txt": "one", "2023-12.txt": "two", "2024-01.txt": "three", "about-2023.txt": "four"},
        lambda folder, _: names(folder) == ["2023/2023-01 letter.txt", "2023/2023-12.txt", "2024-01.txt", "about-2023.txt"],
        [run("mkdir 2023 && mv 2023-* 2023/")]),
    Task(
        "answer about sizes", "Which file below this folder is the largest? Answer with its path.",
        {"a.txt": "x" * 900, "b/c.txt": "x" * 2000, "b/large.txt": "x" * 20, "d.txt": "x" * 1999},
        lambda _, answer: "b/c.txt" in answer and not any(path in answer for path in ("a.txt", "large.txt", "d.txt")),
        [run("find . -type f -exec ls -l {} +")], "The largest file is b/c.txt."),
    Task(
        "delete what is empty", "Delete the empty files below this folder, and no others.",
        {"a.txt": "", "b.txt": "x", "c/d.txt": "", "c/e.txt": " "},
        lambda folder, _: names(folder) == ["b.txt", "c/e.txt"],
        [run("find . -type f -size 0 | while read -r file; do rm \"$file\"; done")]),
    Task(
        "answer from three papers", "The three papers in the folder papers are about one fertilizer. Write gains.csv with the header author,plots,gain "
        "and a line for each paper, the oldest first: its first author's last name, how many plots were treated, and the gain in percent.",
        TRIALS,
        lambda folder, _: text(folder, "gains.csv").lower().replace(" ", "").replace("%", "").split()
        == ["author,plots,gain", "larsen,36,11", "okafor,24,4", "ruiz,58,19"],
        [*map(read, TRIALS), write("gains.csv", "author,plots,gain\nLarsen,36,11\nOkafor,24,4\nRuiz,58,19\n")]),
]

# The other half, which is only counted.
TEST = [
    Task(
        "mend a wrong result", "mean.sh shall print the mean of its arguments, but `sh test.sh` fails. Mend mean.sh, not the test.",
        {"mean.sh": "sum=0\nfor number in \"$@\"; do sum=$((sum + number)); done\necho $((sum / ($# + 1)))\n", "test.sh": MEAN_TEST},
        lambda folder, _: (folder / "test.sh").read_text() == MEAN_TEST and passes(folder, "sh test.sh"),
        [run("sh test.sh"), read("mean.sh"), edit("mean.sh", "($# + 1)", "$#"), run("sh test.sh")]),
    Task(
        "find two equal files", "Two files below this folder have the same content. Write their two paths into same.txt, one on each line.",
        {"one.txt": "alpha\n", "two.txt": "alpha \n", "deep/three.txt": "beta\n", "deep/four.txt": "alpha\n", "five.txt": "gamma\n"},
        lambda folder, _: sorted(path.removeprefix("./") for path in words(folder, "same.txt")) == ["deep/four.txt", "one.txt"],
        [run("find . -type f -exec cksum {} +"), write("same.txt", "one.txt\ndeep/four.txt\n")]),
    Task(
        "sum a column", "Add up the amounts in expenses.csv that were spent on paper, and write the sum into sum.txt.",
        {"expenses.csv": EXPENSES},
        lambda folder, _: float(text(folder, "sum.txt").strip("€$ ")) == 19.75,
        [read("expenses.csv"), write("sum.txt", "19.75\n")]),
    Task(
        "find what is missing", "The invoices in this folder are numbered from 101 to 112. Write the numbers that are missing into missing.txt.",
        {f"invoice-{number}.txt": str(number) for number in range(101, 113) if number not in (104, 109)},
        lambda folder, _: words(folder, "missing.txt") == ["104", "109"],
        [run("ls"), write("missing.txt", "104\n109\n")]),
    Task(
        "sort without repeats", "Sort the names in names.txt by the alphabet, each once, into sorted.txt. Leave names.txt as it is.",
        {"names.txt": "Mara\nBo\nIda\nBo\nMara\nAsa\n"},
        lambda folder, _: words(folder, "sorted.txt") == ["Asa", "Bo", "Ida", "Mara"] and len(words(folder, "names.txt")) == 6,
        [run("sort -u names.txt > sorted.txt")]),
    Task(
        "rename with dashes", "Replace the spaces in the names of all files in this folder by dashes.",
        {"a b.txt": "1", "c d e.txt": "2", "f.txt": "3"},
        lambda folder, _: names(folder) == ["a-b.txt", "c-d-e.txt", "f.txt"] and text(folder, "c-d-e.txt") == "2",
        [run("for file in *' '*; do mv \"$file\" \"$(echo \"$file\" | tr ' ' -)\"; done")]),
    Task(
        "convert CSV to JSON", "Convert people.csv into people.json: a list of objects with name and age, and ages as numbers.",
        {"people.csv": "name,age\nIda,34\nBo,7\n"},
        lambda folder, _: json.loads(text(folder, "people.json")) == [{"name": "Ida", "age": 34}, {"name": "Bo", "age": 7}],
        [read("people.csv"), write("people.json", '[{"name": "Ida", "age": 34}, {"name": "Bo", "age": 7}]\n')]),
    Task(
        "extract addresses", "Write all e-mail addresses of letter.txt into addresses.txt, sorted, each once, one on each line.",
        {"letter.txt": SPEECH},
        lambda folder, _: words(folder, "addresses.txt") == ["anna@garden.example", "ben.k@mail.example", "board@garden.example"],
        [read("letter.txt"), write("addresses.txt", "anna@garden.example\nben.k@mail.example\nboard@garden.example\n")]),
    Task(
        "mend broken JSON", "data.json is no valid JSON. Mend it without changing any value.",
        {"data.json": '{\n  "a": [1, 2, 3,],\n  "b": "x, ]",\n}\n'},
        lambda folder, _: json.loads(text(folder, "data.json")) == {"a": [1, 2, 3], "b": "x, ]"},
        [read("data.json"), write("data.json", '{\n  "a": [1, 2, 3],\n  "b": "x, ]"\n}\n')]),
    Task(
        "rename a function", "Rename the function get_user to fetch_user everywhere in this folder. forget_user is another one and keeps its name.",
        CALLS,
        lambda folder, _: passes(folder, "sh src/app.sh | grep -q 'user 4' && grep -q fetch_user README.md src/app.sh")
        and all("get_user" not in text(folder, path).replace("forget_user", "") for path in CALLS)
        and all(text(folder, path).count("forget_user") == CALLS[path].count("forget_user") for path in CALLS),
        [run("grep -rn get_user ."),
         run("for file in README.md src/*.sh; do sed 's/forget_user/@@/g; s/get_user/fetch_user/g; s/@@/forget_user/g' $file > new && cat new > $file; done; rm new")]),
    Task(
        "add to a changelog", "Add the line \"- Dark mode\" to the changes in CHANGELOG.md that are not released yet, below those that stand there.",
        {"CHANGELOG.md": CHANGELOG},
        lambda folder, _: [line for line in text(folder, "CHANGELOG.md").splitlines() if line]
        == ["# Changes", "## Unreleased", "- Faster start", "- Dark mode", "## 1.2", "- First release"],
        [read("CHANGELOG.md"), edit("CHANGELOG.md", "- Faster start\n", "- Faster start\n- Dark mode\n")]),
    Task(
        "list a page's links", "Write the addresses of all links in ferry.html into links.txt, one on each line.",
        {"ferry.html": FERRY},
        lambda folder, _: sorted(words(folder, "links.txt")) == ["https://ferry.example/prices", "winter.html"],
        [read("ferry.html"), write("links.txt", "winter.html\nhttps://ferry.example/prices\n")]),
    Task(
        "compare two price lists", "Write into raised.txt the products that cost more in april.csv than in march.csv, one on each line, by the alphabet.",
        {"march.csv": MARCH, "april.csv": APRIL},
        lambda folder, _: words(folder, "raised.txt") == ["butter", "honey", "milk"],
        [read("march.csv"), read("april.csv"), write("raised.txt", "butter\nhoney\nmilk\n")]),
    Task(
        "add up over three papers", "How many people took part to the end in the three studies of the folder papers together? Write the number into total.txt.",
        STUDIES,
        lambda folder, _: text(folder, "total.txt") == "243",
        [*map(read, STUDIES), write("total.txt", "243\n")]),
]

SETS = {"dev": DEV, "test": TEST}


def do(folder, call):
    """Does a step of a task's way itself, as its tool would."""
    name, arguments = call
    if name == "run_command":
        subprocess.run(["sh", "-c", arguments["command"]], cwd=folder, capture_output=True, timeout=10)
    elif name == "write_file":
        (folder / arguments["path"]).write_text(arguments["content"])
    elif name == "edit_file":
        before = (folder / arguments["path"]).read_text()
        if before.count(arguments["old"]) != 1:
            raise ValueError(f"{arguments['old']} is not once in {arguments['path']}")
        (folder / arguments["path"]).write_text(before.replace(arguments["old"], arguments["new"]))


def main():
    wrong = []
    tasks = [*DEV, *TEST]
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="tierbar-task-") as folder:
            folder = Path(folder)
            task.lay(folder)
            if task.is_done(folder, "I cannot do that."):
                wrong.append(f"{task.name}: done before anything was")
            for call in task.way:
                do(folder, call)
            if not task.is_done(folder, task.answer):
                wrong.append(f"{task.name}: not done by its own way: {names(folder)}")
    if len({task.request for task in tasks}) < len(tasks):
        wrong.append("two tasks have one request")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"{len(tasks)} tasks can be done, and none is done before")


if __name__ == "__main__":
    main()
