"""The property lists of the bundle, which macOS reads before any of our code runs."""

import json
import plistlib
import unittest

from mac import ROOT

CONFIGURATION = ROOT / "bundle/tauri.macos.conf.json"
FOLDERS = ("DesktopFolder", "DocumentsFolder", "DownloadsFolder", "RemovableVolumes", "NetworkVolumes")


class PropertyLists(unittest.TestCase):
    def setUp(self):
        settings = json.loads(CONFIGURATION.read_text())["bundle"]["macOS"]
        # Tauri takes these paths from its own folder.
        named = [ROOT / "src-tauri" / settings[key] for key in ("infoPlist", "entitlements") if key in settings]
        self.lists = {path.name: plistlib.loads(path.read_bytes()) for path in named}
        self.info = self.lists["Info.plist"]

    def test_the_app_has_no_entitlements(self):
        self.assertEqual([*self.lists], ["Info.plist"])

    def test_any_user_reaches_the_local_network_without_a_dock_icon(self):
        self.assertIs(self.info["LSUIElement"], True)
        self.assertEqual(self.info["NSAppTransportSecurity"], {"NSAllowsLocalNetworking": True})
        # It would keep out a second user of the Mac; the data folder's lock is there for one user's second start.
        self.assertNotIn("LSMultipleInstancesProhibited", self.info)

    def test_each_prompt_has_its_sentence(self):
        # Without it, macOS denies the network or the folder, and asks nothing.
        for what in ("LocalNetwork", *FOLDERS):
            self.assertRegex(self.info[f"NS{what}UsageDescription"], r"^Tierbar .*\.$")
