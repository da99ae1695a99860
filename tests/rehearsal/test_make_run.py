"""`make run` on Macs that differ: each run ends with the app open, or with one sentence that helps."""

import unittest

from mac import BASH, HAS_BASH, HAS_MAKE, MAKE, Mac, version


class Rehearsal(unittest.TestCase):
    def setUp(self):
        self.mac = Mac()
        self.addCleanup(self.mac.remove)

    def assert_opens(self, run):
        self.assertEqual(run.status, 0, run.text)
        self.assertIn("open ", run.calls[-1], run.text)
        for word in ("not found", "illegal option", "bad substitution", "unbound variable", "No such file"):
            self.assertNotIn(word, run.text)

    def assert_ends(self, run, sentence, but_not=("python", "npm", "cargo fetch")):
        """Says what to do and has fetched nothing."""
        self.assertNotEqual(run.status, 0, run.text)
        lines = [line for line in run.text.splitlines() if line and not line.startswith("make")]
        self.assertRegex(lines[-1], sentence)
        for program in but_not:
            self.assertEqual(run.first(program), -1, run.calls)


class Tools(Rehearsal):
    def test_the_shell_and_make_are_those_of_macos(self):
        if not (HAS_BASH and HAS_MAKE):
            self.skipTest(f"no bash 3.2 and make 3.81 in ~/.cache/tierbar/mac: this was {version(BASH)}, {version(MAKE)}")
        self.assertIn("3.2.", self.mac.run("bash", "-c", "echo $BASH_VERSION").text)

    def test_options_of_gnu_are_refused_and_its_tools_missing(self):
        for line in (
            "sed -i s/a/b/ Makefile", r"sed -n 's/a\+//p' Makefile", "stat -c %s Makefile", "date -d now", "date +%N", "mktemp -p .",
            "cp --reflink=auto Makefile x", "mv -T Makefile x", "ln -sfT Makefile x", "grep -oP a Makefile", "readlink -m x", "realpath -m x", "sort -V Makefile",
            "timeout 1 true", "flock x true", "sha256sum Makefile", "nproc", "apt-get update",
        ):  # fmt: skip
            self.assertNotEqual(self.mac.run("bash", "-c", line).status, 0, line)
        self.assertEqual(self.mac.run("bash", "-c", "sed -nE 's/^run:/&/p' Makefile | shasum -a 256 | cut -d' ' -f1").status, 0)


class MakeRun(Rehearsal):
    def test_a_bare_mac_needs_neither_homebrew_nor_node_nor_cmake(self):
        run = self.mac.make("run")
        print(f"\n--- make run on a bare Mac ({version(BASH)}, {version(MAKE)}) ---\n{run.text}---", flush=True)
        self.assert_opens(run)
        for tool in ("node", "cmake"):
            self.assertTrue(any("--require-hashes -r" in call and call.endswith(f"requirements-{tool}.txt") for call in run.calls), tool)
        self.assertTrue((self.mac.home / "Library/Application Support/Tierbar/models/SmolLM2-135M-Instruct.Q4_1.gguf").exists())

    def test_an_empty_homebrew_is_left_alone(self):
        self.mac.play("brew")
        run = self.mac.make("run")
        self.assert_opens(run)
        self.assertEqual(run.first("brew"), -1)

    def test_the_tools_of_homebrew_are_used(self):
        homebrew = self.mac.folder / "homebrew"
        self.mac.play("brew", "cmake", "node", "npm", "npx", "ccache", folder=homebrew)
        run = self.mac.make("run", path=homebrew)
        self.assert_opens(run)
        self.assertEqual(run.first("python -m pip install"), -1, run.calls)

    def test_a_second_run_fetches_nothing_and_ends_the_app_before_its_bundle_is_replaced(self):
        self.assert_opens(self.mac.make("run"))
        run = self.mac.make("run")
        self.assert_opens(run)
        for call in ("python3 -m venv", "python -m pip install", "npm ci", "npm install"):
            self.assertEqual(run.first(call), -1, call)
        self.assertLess(run.first("tauri build"), run.first("pkill"))
        self.assertLess(run.first("pkill"), run.first("tauri bundle"))
        self.assertIn("Ending the Tierbar that runs", run.text)

    def test_an_app_that_does_not_end_is_not_replaced(self):
        (self.mac.folder / "running").touch()
        run = self.mac.make("run", MAC_APP_HANGS=1)
        self.assert_ends(run, "quit it in its menu, then try again", but_not=["tauri bundle", "open"])

    def test_a_build_for_another_processor_leaves_the_bundle_of_the_running_app(self):
        self.assert_opens(self.mac.make("run"))
        built = self.mac.checkout / "target-bundle"
        (built / ".cpu").write_text("another")
        old, running = built / "release/old", built / "release/bundle/running"
        old.touch()
        running.touch()
        self.assert_opens(self.mac.make("run"))
        self.assertEqual((old.exists(), running.exists()), (False, True))

    def test_all_is_built_for_this_processor_and_by_ci_for_each(self):
        for variables, flags in (({}, "-C target-cpu=native"), ({"CI": "true"}, "")):
            run = self.mac.make("run", **variables)
            self.assert_opens(run)
            built = [call for call in run.calls if call.startswith("RUSTFLAGS")]
            self.assertEqual(built, [f"RUSTFLAGS of cargo: {flags}", f"RUSTFLAGS of tauri: {flags}"])

    def test_a_missing_toolchain_is_installed(self):
        (self.mac.folder / "toolchain").unlink()
        run = self.mac.make("run")
        self.assert_opens(run)
        self.assertRegex(run.calls[run.first("rustup toolchain install")], r"--component clippy .* \d+\.\d+\.\d+$")

    def test_another_data_folder_reaches_the_app(self):
        home = self.mac.folder / "my data"
        run = self.mac.make("run", TIERBAR_HOME=home)
        self.assert_opens(run)
        self.assertIn(f"open --env TIERBAR_HOME={home} ", run.calls[-1])
        self.assertTrue((home / "models/SmolLM2-135M-Instruct.Q4_1.gguf").exists())

    def test_a_locked_keychain_is_no_reason_to_end(self):
        self.assert_opens(self.mac.make("run", MAC_FAILS="security"))


class Environment(Rehearsal):
    """What `bundle/env` keeps of an earlier build."""

    def test_another_compiler_builds_llama_cpp_anew(self):
        built = self.mac.checkout / "target/release/build/llama-cpp-sys-2-1"

        def is_kept(**variables):
            built.mkdir(parents=True, exist_ok=True)
            run = self.mac.run("bundle/env", "bash", "-c", ":", **variables)
            self.assertEqual((run.status, run.text), (0, ""))
            return built.exists()

        # First without a compiler.
        self.assertFalse(is_kept())
        self.assertTrue(is_kept())
        for name in ("cc", "c++"):
            for number in (14, 15):
                self.mac.write(self.mac.path / name, f"#!/bin/sh\necho {name} {number}\n")
                self.assertFalse(is_kept(), (name, number))
                self.assertTrue(is_kept(), (name, number))
        self.mac.write(self.mac.path / "other", "#!/bin/sh\necho other\n")
        for name, value in (("CC", "other"), ("CXX", "other"), ("CFLAGS", "-O1"), ("CXXFLAGS", "-O1")):
            self.assertFalse(is_kept(**{name: value}), (name, value))
            self.assertTrue(is_kept(**{name: value}), (name, value))


class Sentences(Rehearsal):
    def test_without_rust(self):
        for name in ("cargo", "rustc", "rustup"):
            (self.mac.home / ".cargo/bin" / name).unlink()
        self.assert_ends(self.mac.make("run"), r"^Rust is missing\. Install it with rustup \(https://rustup\.rs\), then try again\.$")

    def test_without_the_command_line_tools(self):
        self.assert_ends(self.mac.make("run", MAC_FAILS="xcode-select"), r"xcode-select --install")

    def test_under_rosetta(self):
        self.assert_ends(self.mac.make("run", MAC_ROSETTA=1, MAC_PROCESSOR="x86_64"), r"Rosetta.*arch -arm64 zsh")

    def test_on_an_intel_mac(self):
        self.assert_ends(self.mac.make("run", MAC_PROCESSOR="x86_64"), r"Apple silicon.*Intel")

    def test_on_macos_12(self):
        self.assert_ends(self.mac.make("run", MAC_VERSION="12.7.6"), r"macOS 13 or later.*12\.7\.6")

    def test_in_icloud_drive(self):
        folder = self.mac.home / "Library/Mobile Documents/com~apple~CloudDocs/tierbar"
        folder.parent.mkdir(parents=True)
        link, self.mac.checkout = self.mac.checkout, self.mac.checkout.rename(folder)
        self.assert_ends(self.mac.make("run"), r"iCloud Drive.*Move the folder out of it, then try again\.$")
        link.symlink_to(folder)
        self.mac.checkout = link
        self.assert_ends(self.mac.make("run"), r"iCloud Drive")

    def test_on_a_disk_without_links(self):
        self.mac.write(self.mac.path / "ln", '#!/bin/sh\necho "ln: $3: Operation not supported" >&2\nexit 1\n')
        self.assert_ends(self.mac.make("run"), r"no symbolic links, as with exFAT.*then try again\.$")

    def test_on_a_full_disk(self):
        self.assert_ends(self.mac.make("run", MAC_FREE_KIB=3000000), r"needs 6 GB.*3 GB are free.*try again")

    def test_the_tests_go_on_with_a_full_disk(self):
        self.mac.play("python3.12")
        run = self.mac.run("bundle/setup", "test", MAC_PYTHON="python3.12", MAC_FREE_KIB=3000000)
        self.assertEqual(run.status, 0, run.text)
        self.assertRegex(run.text, r"needs 6 GB.*3 GB are free\.\n")

    def test_the_disk_is_that_of_another_build_folder(self):
        build = self.mac.folder / "elsewhere/build"
        run = self.mac.make("run", MAC_FREE_KIB=3000000, CARGO_TARGET_DIR=build)
        self.assert_ends(run, r"3 GB are free")
        self.assertIn(f"df -Pk {self.mac.folder}", run.calls)
        (build / "release").mkdir(parents=True)
        self.assert_opens(self.mac.make("run", MAC_FREE_KIB=3000000, CARGO_TARGET_DIR=build))

    def test_the_tests_without_a_python_that_they_run_on(self):
        self.mac.play("brew")
        run = self.mac.run("bundle/setup", "test")
        self.assert_ends(run, r"Python 3\.11 or later is missing.*brew install python.*try again", but_not=["brew", "npm", "python3 -m venv"])


class Python(Rehearsal):
    def test_the_tests_take_another_python_than_apples(self):
        self.mac.play("python3.12")
        self.mac.make("run")
        run = self.mac.run("bundle/setup", "test", MAC_PYTHON="python3.12")
        self.assertEqual(run.status, 0, run.text)
        link = self.mac.home / ".cache/tierbar/bin/python3"
        self.assertEqual(link.readlink(), self.mac.path / "python3.12")
        # That of `make run` had Apple's.
        self.assertNotEqual(run.first("python3 -m venv --clear"), -1)


    def test_homebrew_is_offered_for_python(self):
        self.mac.play("brew")
        question = "Python 3.11 or later is missing. Install it now with Homebrew? [Y/n]"
        for typed, elsewhere, end in (
            ("n\n", "", r"brew install python.*try again\.$"),
            ("y\n", "1", r"not in PATH\. Open a new terminal, then try again\.$"),
        ):
            run = self.mac.run("bundle/setup", "test", typed=typed, terminal=True, MAC_BREW_ELSEWHERE=elsewhere)
            self.assertIn(question, run.text)
            self.assert_ends(run, end, but_not=["python3 -m venv"])
        run = self.mac.run("bundle/setup", "test", typed="\n", terminal=True, MAC_PYTHON="python3.14")
        self.assertEqual(run.status, 0, run.text)
        self.assertNotEqual(run.first("brew install python"), -1)


class Again(Rehearsal):
    """What breaks in the middle ends with a sentence, and leaves the next try nothing to trip over."""

    def breaks(self, program, call, sentence, **variables):
        run = self.mac.make("run", MAC_FAILS=program, **variables)
        self.assert_ends(run, sentence, but_not=["open"])
        self.assertNotEqual(run.first("sleep 30"), -1, "it was not tried again")
        run = self.mac.make("run")
        self.assert_opens(run)
        self.assertNotEqual(run.first(call), -1, run.calls)

    def test_the_network_fails_pip(self):
        self.breaks("pip", "python -m pip install", r"^The setup failed at: .*(page|cmake).*try again\.$")

    def test_the_network_fails_npm(self):
        self.breaks("npm", "npm ci", r"^The setup failed at: page.*try again\.$")

    def test_the_disk_fills_up(self):
        self.breaks("pip", "python -m pip install", r"^The setup failed at: .*cmake.*try again\.$", MAC_ERROR="[Errno 28] No space left on device")

    def test_npm_leaves_out_the_program_of_tauri(self):
        self.assertNotEqual(self.mac.make("run", MAC_FAILS="tauri").status, 0)
        run = self.mac.make("run")
        self.assert_opens(run)
        self.assertNotEqual(run.first("tauri bundle"), -1)


