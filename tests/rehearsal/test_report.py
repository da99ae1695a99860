"""`make mac-report`: what it writes, and that nothing private is in it."""

import getpass
import json
import re
import socket
import sys
import unittest

from mac import Mac

# What the tools of the played Mac print, with all that is private.
TOOLS = {
    "scutil": "echo Jane-Roes-MacBook",
    "ioreg": """echo '"IOPlatformSerialNumber" = "C02XL0THJHD5"'; echo '"IOPlatformUUID" = "ABCDEF01-0000-1111-2222-0123456789AB"'""",
    "vm_stat": "echo 'Pages free: 12345.'; echo 'en0 aa:bb:cc:dd:ee:ff 192.168.1.77 jane@example.com'",
    "codesign": "echo 'Executable=/Users/someone/x'; echo Identifier=app.tierbar; echo 'Authority=Apple Development: Jane Roe (ABCDE12345)'; "
    "echo 'CodeDirectory v=20500 size=1 flags=0x10002(adhoc,runtime) hashes=1'",
    "otool": """case $1 in -l) echo '    minos 13.0' ;; *) echo x:; printf '\\t/usr/lib/libSystem.B.dylib (current)\\n' ;; esac""",
    "tmutil": "echo '[Excluded]' \"$2\"",
    "footprint": "echo 'tierbar-app [99]: 64-bit    Footprint: 90 MB'",
    "pmset": "echo '  pid 1(Jane Secret App): x'; echo '  pid 2(tierbar): downloading a model'",
    "git": "echo git",
    "clang": "printf '#!/bin/sh\n' >a.out; chmod +x a.out",
    "node": "exit 0",
    "screencapture": 'echo picture >"$2"',
}
# What doctor says, where HOME and CHECKOUT are folders, and what is left of it.
DOCTOR = {
    "HOME/Documents/Clients/ACME is not there": "~/[path]",
    "HOME-old/x": "/Users/[path]",
    "the documents in HOME/Jane's Clients/ACME: not a folder": "the documents in ~/[path]: not a folder",
    "'HOME/Jane's Clients/ACME' and `/Volumes/ACME Disk/x` differ": "'~/[path]' and `/Volumes/[path]` differ",
    "/Volumes/ACME Disk/x\nis full": "/Volumes/[path]\nis full",
    "/home/ACME Disk/x": "/home/[path]",
    "HOME/Library/Application Support/Tierbar/models is fine": "~/Library/Application Support/Tierbar/models is fine",
    "HOME/Library/Application Support/Tierbar ACME/models": "~/[path]",
    "CHECKOUT/target/release/tierbar, CHECKOUT/target-bundle/x": "[checkout]/target/release/tierbar, [checkout]/target-bundle/x",
    "fe80::1c2d:3e4f%en0, 2001:db8:0:0:0:0:2:1 and ::ffff:10.1.2.3": "[address], [address] and [address]",
    "http://gpu.acme.example:8080/v1 and https://me:secret@acme.example/": "http://[host]:8080/v1 and https://[host]/",
    "http://[2001:db8::1]:80/, http://10.1.2.3/ and http://jane-nas.acme/": "http://[host]:80/, http://[host]/ and http://[host]/",
    "http://localhost:1/, http://127.0.0.1:2/, http://[::1]:3/, ::1": "http://localhost:1/, http://127.0.0.1:2/, http://[::1]:3/, ::1",
    "http://localhost.acme.example/": "http://[host]/",
    "std::fs at 12:30:45": "std::fs at 12:30:45",
}
TIERBAR = """case $1 in
chat) echo Paris. ;;
doctor) cat "$REHEARSAL/doctor" ;;
bench) echo '{"rows": [{"decode": 12.5}]}' ;;
tune) echo '{"rows": [{"settings": {"gpu_layers": 0}, "decode": 12.5}]}' ;;
config) cat "$REHEARSAL/gpu_layers" 2>/dev/null ;;
diagnose) echo '{"machine": {"processor": "Apple M1"}}' ;;
esac"""
# Lets a command write into its folder, use tools, and nothing else.
SANDBOX = """read -r line
case $line in *"> written"* | *git* | *clang* | *python3* | *node*) code=0 ;; *) code=1 ;; esac
echo '{"finished": {"end": {"how": "exited", "code": '$code'}, "stderr": {"text": "denied"}}}'"""


class Report(unittest.TestCase):
    def setUp(self):
        self.mac = Mac()
        self.addCleanup(self.mac.remove)
        for name, script in TOOLS.items():
            (self.mac.path / name).unlink(missing_ok=True)
            self.mac.write(self.mac.path / name, f"#!/bin/sh\n{script}\n")
        self.programs = self.mac.checkout / "target/release"
        self.programs.mkdir(parents=True)
        self.mac.write(self.programs / "tierbar", f"#!/bin/sh\n{TIERBAR}\n")
        self.mac.write(self.programs / "tierbar-sandbox", f"#!/bin/sh\n{SANDBOX}\n")
        folders = {"HOME-old": "/Users/jane-old", "HOME": str(self.mac.home), "CHECKOUT": str(self.mac.checkout.resolve())}
        said = [re.sub("|".join(folders), lambda found: folders[found[0]], what) for what in DOCTOR]
        (self.mac.folder / "doctor").write_text(json.dumps({"findings": [{"what": what} for what in said]}))

    def report(self, *arguments, typed=""):
        run = self.mac.run(sys.executable, "bundle/mac-report", *arguments, typed=typed, LOGNAME="jane")
        text = (self.mac.checkout / "target/mac-report.md").read_text()
        (found,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        return run, text, json.loads(found)

    def test_nothing_private_is_in_it(self):
        _, text, found = self.report(typed="y\n" + "n\nJane sees 192.168.1.77 and her /Users/jane/Secret folder\n" * 12)
        private = ["jane", "roe", "C02XL0THJHD5", "ABCDEF01-0000", "aa:bb:cc", "192.168.1.77", "Secret", "someone", "ABCDE12345"]
        private += [str(self.mac.home), str(self.mac.folder), f"\\b{re.escape(getpass.getuser())}\\b", f"\\b{re.escape(socket.gethostname())}\\b"]
        answers = found.pop("answers")
        remarks = [row["remark"] for row in answers if row["remark"]]
        self.assertEqual(set(remarks), {"[user] sees [address] and her /Users/[path]"})
        for name in private:
            self.assertNotRegex(json.dumps(found) + " ".join(remarks), f"(?i){name}")
        # The questions are those of the page; all else of the Markdown is in the JSON.
        self.assertNotRegex(text, r"(?i)jane|roe\b|C02XL0THJHD5|someone")
        self.assertEqual([finding["what"] for finding in found["checks"]["doctor"]["figures"]["findings"]], list(DOCTOR.values()))

    def test_what_was_answered_is_kept_when_the_input_ends(self):
        run, text, found = self.report(typed="y\ny\n12 GB wired | fine\nn\nit flashes\ns\n")
        self.assertEqual(run.status, 0, run.text)
        results = [(row["result"], row["remark"]) for row in found["answers"]]
        self.assertEqual(results[:3], [("as expected", "12 GB wired | fine"), ("differs", "it flashes"), ("skipped", "")])
        self.assertEqual({result for result, _ in results[3:]}, {"skipped"})
        self.assertIn(r"| as expected | 12 GB wired \| fine |", text)

    def test_every_row_of_the_page_is_asked(self):
        page = (self.mac.checkout / "docs/mac-checklist.md").read_text()
        rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| do |")]
        _, _, found = self.report()
        self.assertEqual(len(found["answers"]), len(rows))
        self.assertIn("--samplers tasks | grep tierbar`", " ".join(row["do"] for row in found["answers"]))

    def test_a_picture_is_taken_by_consent_alone(self):
        picture = self.mac.checkout / "target/mac-report.png"
        self.report(typed="n\nn\nn\nn\n")
        self.assertFalse(picture.exists())
        self.report(typed="n\nn\nn\ny\n")
        self.assertTrue(picture.exists())

    def test_unattended_it_asks_nothing_and_ends_with_what_differs(self):
        run, _, found = self.report("--unattended")
        self.assertEqual((run.status, found["answers"]), (0, []), run.text)
        checks = {name: check["result"] for name, check in found["checks"].items()}
        self.assertEqual(checks.pop("machine"), "as expected" if sys.platform == "darwin" else "skipped")
        self.assertEqual(set(checks.values()), {"as expected"}, checks)
        self.assertEqual(found["checks"]["diagnosis"]["figures"], {"machine": {"processor": "Apple M1"}})
        self.assertNotIn("App", found["checks"]["footprint"]["text"])
        for name, tool, script in (
            ("signature", "codesign", "echo 'CodeDirectory flags=0x2(adhoc) hashes=1'"),
            ("libraries", "otool", "echo '    minos 15.0'"),
            ("backup", "tmutil", "echo '[Included]'"),
        ):
            self.mac.write(self.mac.path / tool, f"#!/bin/sh\n{script}\n")
            run, _, found = self.report("--unattended")
            self.assertEqual((run.status, found["checks"][name]["result"]), (1, "differs"), name)
        self.mac.write(self.programs / "tierbar-sandbox", f"#!/bin/sh\n{SANDBOX.replace('code=1', 'code=0')}\n")
        self.assertEqual(self.report("--unattended")[2]["checks"]["sandbox"]["result"], "differs")

    def test_tools_run_in_the_sandbox_if_they_run_without(self):
        (self.mac.path / "clang").unlink()
        self.mac.write(self.mac.path / "git", "#!/bin/sh\nexit 1\n")
        (self.mac.path / "python3").unlink()
        self.mac.write(self.mac.home / "python3", "#!/bin/sh\n")
        (self.mac.path / "python3").symlink_to(self.mac.home / "python3")
        check = self.report("--unattended")[2]["checks"]["sandbox"]
        self.assertEqual(check["result"], "as expected", check)
        self.assertEqual([what for what in check["figures"] if what.startswith("runs ")], ["runs node"])
        for line in ("runs clang: the program is missing", "runs git: the program fails without a sandbox", "runs python3: the program is in the home"):
            self.assertIn(line, check["text"])
        self.mac.write(self.programs / "tierbar-sandbox", f"#!/bin/sh\n{SANDBOX.replace(' | *node*', '')}\n")
        check = self.report("--unattended")[2]["checks"]["sandbox"]
        self.assertEqual(check["result"], "differs")
        self.assertIn("runs node: False (denied)", check["text"])

    def test_layers_are_not_compared_where_their_number_is_set(self):
        (self.mac.folder / "gpu_layers").write_text("0\n")
        self.assertEqual(self.report("--unattended")[2]["checks"]["layers"]["result"], "skipped")
