//! What of the macOS bundle can be checked anywhere: its configuration, and that its code, which only a Mac runs, keeps to it. Its
//! property list is checked in `tests/rehearsal`.

const CONFIGURATION: &str = include_str!("../../bundle/tauri.macos.conf.json");
const STARTUP: &str = include_str!("startup.rs");
const MENU: &str = include_str!("platform/macos/menu.rs");
const NOTIFICATIONS: &str = include_str!("platform/macos/notifications.rs");
const PLATFORM: &str = include_str!("platform/macos.rs");

/// Without a delegate that says so, macOS shows no banner while one of the app's windows is in front.
#[test]
fn banners_show_while_a_window_is_in_front() {
    assert!(PLATFORM.contains("notifications::show_in_front()"));
    assert!(NOTIFICATIONS.contains(".setDelegate(Some("));
    assert!(NOTIFICATIONS.contains("UNNotificationPresentationOptions::Banner"));
}

#[test]
fn the_bundle_contains_every_program_that_the_app_starts() {
    let configuration: serde_json::Value = serde_json::from_str(CONFIGURATION).unwrap();
    let bundle = &configuration["bundle"];
    let mut programs: Vec<_> = bundle["externalBin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    programs.sort_unstable();
    assert_eq!(
        programs,
        [
            "tierbar",
            "tierbar-extract",
            "tierbar-guard",
            "tierbar-sandbox",
            "tierbar-worker"
        ]
    );
    let build = include_str!("../../bundle/macos-app");
    assert!(build.contains(
        "for program in tierbar tierbar-worker tierbar-guard tierbar-extract tierbar-sandbox"
    ));
    // Everything is signed once, with the hardened runtime.
    assert_eq!(bundle["macOS"]["hardenedRuntime"], true);
    assert!(!build.contains("codesign --force"));
}

#[test]
fn no_menu_item_ends_the_server() {
    assert!(PLATFORM.contains("enable_macos_default_menu(false)"));
    assert!(!MENU.contains("::quit("));
    assert!(MENU.contains("Cmd+Q"));
}

#[test]
fn the_app_stays_out_of_the_dock_before_it_runs() {
    let leaves = STARTUP.find("platform::leave_dock(").unwrap();
    let runs = STARTUP.find(".run_return(").unwrap();
    assert!(leaves < runs);
    assert!(PLATFORM.contains("activate_ignoring_other_apps(false)"));
}

#[test]
fn opening_the_app_again_opens_the_chat() {
    assert!(PLATFORM.contains("RunEvent::Reopen"));
    let handled = STARTUP.lines().find(|line| line.contains("is_reopen"));
    assert!(handled.unwrap().contains("Page::Chat"));
}

#[test]
fn the_cask_links_the_command_line_and_checks_the_archive() {
    // It stands in for an archive: its text and so its checksum stay.
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../LICENSE");
    let sum = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30";
    let made = std::process::Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../bundle/cask"))
        .args([archive, "https://example.com/v#{version}/Tierbar.zip"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let cask = String::from_utf8(made.stdout).unwrap();
    for line in [
        format!("  version \"{}\"", env!("CARGO_PKG_VERSION")),
        format!("  sha256 \"{sum}\""),
        "  url \"https://example.com/v#{version}/Tierbar.zip\"".to_owned(),
        "  app \"Tierbar.app\"".to_owned(),
        "  binary \"#{appdir}/Tierbar.app/Contents/MacOS/tierbar\"".to_owned(),
    ] {
        assert!(cask.lines().any(|found| found == line), "{line}\n{cask}");
    }
}
