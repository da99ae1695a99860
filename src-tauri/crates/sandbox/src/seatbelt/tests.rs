//! The text of the profile, and what it allows.

mod needs;
mod sbpl;

use super::*;
use std::path::PathBuf;

fn rendered(policy: &Policy) -> Profile {
    with_proxy(policy, None)
}

fn with_proxy(policy: &Policy, proxy: Option<u16>) -> Profile {
    let xcode = Path::new("/Applications/Xcode-beta.app/Contents/Developer");
    profile(policy, Path::new("/private/tmp/home"), Some(xcode), proxy).unwrap()
}

#[test]
fn a_profile_allows_what_its_policy_does() {
    let policy = Policy {
        read: vec!["/Users/a/notes".into()],
        write: vec!["/Users/a/work".into()],
        protected: vec!["/Users/a/Library/Application Support/Tierbar".into()],
        ..Policy::default()
    };
    let Profile { text, parameters } = rendered(&policy);
    assert_eq!(
        parameters,
        [
            "READ_0=/Users/a/notes",
            "READ_1=/Applications/Xcode-beta.app",
            "WRITE_2=/Users/a/work",
            "WRITE_3=/private/tmp/home",
            "PROTECTED_4=/Users/a/Library/Application Support/Tierbar"
        ]
    );
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["(version 1)", "(deny default)"]);
    let run = "(allow file-read* file-map-executable process-exec*";
    for wanted in [
        format!("{run} (subpath \"/usr/bin\"))"),
        format!("{run} (subpath (param \"READ_0\")))"),
        format!("{run} file-write* (subpath (param \"WRITE_2\")))"),
        "(allow file-read* (subpath \"/private/etc/hosts\"))".into(),
    ] {
        assert!(lines.contains(&wanted.as_str()), "{wanted}\n{text}");
    }
    // After all that allows.
    let denied = "(deny file-read* file-test-existence file-write* process-exec* (subpath (param \"PROTECTED_4\")))";
    let denied = lines.iter().position(|line| *line == denied).unwrap();
    let last = lines.iter().rposition(|line| line.starts_with("(allow"));
    assert!(last.unwrap() < denied, "{text}");
    assert!(!text.contains("network"), "{text}");
}

#[test]
fn each_line_is_argued_in_the_documentation() {
    let argued = include_str!("../../../../../docs/agent.md");
    let policy = Policy {
        read: vec!["/a".into()],
        write: vec!["/b".into()],
        protected: vec!["/c".into()],
        ..Policy::default()
    };
    let is_argued = |line: &str| argued.contains(&format!("| `{line}` |"));
    // Each command has another port.
    let text = with_proxy(&policy, Some(4321))
        .text
        .replace(":4321", ":PORT");
    for line in text.lines() {
        // One row for all folders of a kind.
        let kind = line.split_once("(subpath ");
        let kind = kind.map(|(rule, _)| format!("{rule}(subpath …))"));
        assert!(
            is_argued(line) || kind.is_some_and(|kind| is_argued(&kind)),
            "{line}"
        );
    }
}

#[test]
fn data_among_programs_is_not_read_unless_it_is_granted() {
    let policy = Policy {
        read: vec!["/opt/homebrew/var/www".into()],
        ..Policy::default()
    };
    let text = rendered(&policy).text;
    let at = |wanted: &str| text.lines().position(|line| line.contains(wanted));
    let (programs, data) = (at("\"/opt/homebrew\""), at("\"/opt/homebrew/var\""));
    let granted = at("READ_0");
    assert!(
        programs.is_some() && programs < data && data < granted,
        "{text}"
    );
    let line = text.lines().nth(data.unwrap()).unwrap();
    assert!(line.starts_with("(deny file-read-data "), "{line}");
}

#[test]
fn nothing_is_written_but_what_was_granted() {
    let text = rendered(&Policy::default()).text;
    let writes = text.lines().filter(|line| line.contains("file-write*"));
    let writes: Vec<_> = writes.collect();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert!(writes[0].contains("WRITE_1"), "{writes:?}");
}

#[test]
fn of_the_chosen_developer_tools_an_xcode_is_granted() {
    for (developer, expected) in [
        (
            "/Applications/Xcode-26.1.app/Contents/Developer",
            Some("/Applications/Xcode-26.1.app"),
        ),
        (
            "/Users/a/Xcode.app/Contents/Developer",
            Some("/Users/a/Xcode.app"),
        ),
        // It is among the places that every command may read.
        ("/Library/Developer/CommandLineTools", None),
        // These hold more than tools.
        ("/", None),
        ("/Users/a", None),
        ("/Users/a/Contents/Developer", None),
        ("/Contents/Developer", None),
        ("/Applications/Xcode.app/Contents", None),
    ] {
        assert_eq!(
            xcode_of(Path::new(developer)),
            expected.map(Path::new),
            "{developer}"
        );
    }
}

#[test]
fn the_network_is_the_launchers_proxy() {
    let text = with_proxy(&Policy::default(), Some(4321)).text;
    let outbound = text.lines().filter(|line| line.contains("network"));
    assert_eq!(
        outbound.collect::<Vec<_>>(),
        ["(allow network-outbound (remote tcp \"localhost:4321\"))"]
    );
}

#[test]
fn a_folders_name_cannot_add_a_rule() {
    let evil = "/tmp/x\"))\n(allow default)\n(\"";
    let policy = Policy {
        write: vec![PathBuf::from(evil)],
        ..Policy::default()
    };
    let Profile { text, parameters } = rendered(&policy);
    assert!(!text.contains("allow default"), "{text}");
    assert_eq!(parameters[1], format!("WRITE_1={evil}"));
}

#[test]
fn parentheses_are_balanced() {
    let policy = Policy {
        read: vec!["/a".into()],
        protected: vec!["/b".into()],
        ..Policy::default()
    };
    for line in with_proxy(&policy, Some(4321)).text.lines() {
        let count = |letter| line.matches(letter).count();
        assert_eq!(count('('), count(')'), "{line}");
        assert_eq!(count('"') % 2, 0, "{line}");
    }
}
