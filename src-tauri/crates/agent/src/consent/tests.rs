use super::*;
use serde_json::json;
use std::path::PathBuf;

const ALL: General = General {
    reading: true,
    search: true,
    known_pages: true,
};
const NOTHING: General = General {
    reading: false,
    search: false,
    known_pages: false,
};

fn command(line: &str) -> Act {
    Act::Command {
        line: line.into(),
        folder: "/work".into(),
        network: false,
    }
}

fn write(path: &str) -> Act {
    Act::Write {
        folder: "/work".into(),
        change: Change {
            path: path.into(),
            before: None,
            after: b"x\n".as_slice().into(),
            diff: "+x\n".into(),
        },
    }
}

fn page(address: &str, known: bool) -> Act {
    Act::Page {
        address: WebAddress::parse(address).unwrap(),
        known,
    }
}

fn documents(names: &[&str]) -> Act {
    Act::Documents {
        words: "x".into(),
        collections: Collections::Named(names.iter().map(|name| (*name).into()).collect()),
    }
}

fn tool(arguments: serde_json::Value) -> Act {
    Act::Tool {
        server: "mail".into(),
        name: "send".into(),
        definition: "as it was".into(),
        arguments,
    }
}

fn grants() -> Grants {
    Grants::new(Vec::new(), "chat")
}

fn decided(act: Act, general: General, grants: &Grants, now: u64) -> Decision {
    decide(act, general, grants, now, "id".into())
}

fn asks(act: Act, general: General, grants: &Grants, now: u64) -> bool {
    match decided(act, general, grants, now) {
        Decision::Ask(_) => true,
        Decision::Allowed(_) => false,
        Decision::Refused(why) => panic!("{why}"),
    }
}

/// Answers an act's question.
fn answered(act: Act, scope: Scope, grants: &mut Grants, now: u64) -> PermittedAct {
    let Decision::Ask(pending) = decided(act, NOTHING, grants, now) else {
        panic!("no consent was requested");
    };
    let answer = Answer {
        id: "id".into(),
        allow: Some(scope),
    };
    let permitted = pending.answer(&answer, "chat", grants, now).unwrap();
    permitted.unwrap()
}

#[test]
fn without_general_permission_everything_asks() {
    for act in [
        command("ls"),
        Act::Read {
            folder: "/work".into(),
            path: "a".into(),
            from_line: 1,
        },
        write("a"),
        Act::Search {
            words: "x".into(),
            provider: "p".into(),
        },
        page("https://example.com", true),
        documents(&["Papers"]),
        tool(json!({})),
    ] {
        assert!(asks(act.clone(), NOTHING, &grants(), 0), "{act:?}");
    }
}

#[test]
fn general_permission_is_for_reading_alone() {
    let none = grants();
    assert!(!asks(command("ls"), ALL, &none, 0));
    assert!(!asks(page("https://example.com", true), ALL, &none, 0));
    assert!(!asks(documents(&["Papers"]), ALL, &none, 0));
    for act in [
        command("rm x"),
        command("ls; rm x"),
        command("curl example.com"),
        write("a"),
        page("https://example.com/?secret", false),
        tool(json!({})),
        Act::Command {
            line: "ls".into(),
            folder: "/work".into(),
            network: true,
        },
    ] {
        assert!(asks(act.clone(), ALL, &none, 0), "{act:?}");
    }
    let Decision::Allowed(permitted) = decided(command("ls"), ALL, &none, 0) else {
        panic!();
    };
    assert!(permitted.reads_only());
}

#[test]
fn a_grant_of_documents_is_for_these_collections() {
    let mut grants = grants();
    answered(documents(&["Papers"]), Scope::Chat, &mut grants, 0);
    assert!(!asks(documents(&["Papers"]), NOTHING, &grants, 0));
    assert!(asks(documents(&["Letters"]), NOTHING, &grants, 0));
    let other = Grants::new(grants.list().to_vec(), "other");
    assert!(asks(documents(&["Papers"]), NOTHING, &other, 0));
}

#[test]
fn a_single_consent_covers_one_act() {
    let mut grants = grants();
    let permitted = answered(command("make"), Scope::Once, &mut grants, 0);
    assert_eq!(permitted.act(), &command("make"));
    assert!(!permitted.reads_only());
    assert!(asks(command("make"), ALL, &grants, 0));
    assert!(grants.list().is_empty());
}

#[test]
fn a_folders_grant_has_bounds() {
    let mut grants = grants();
    answered(command("make"), Scope::Folder, &mut grants, 100);
    assert!(!asks(command("cargo test"), NOTHING, &grants, 101));
    assert_eq!(grants.list()[0].what.title(), "Run all commands");
    let elsewhere = Act::Command {
        line: "make".into(),
        folder: "/work/other".into(),
        network: false,
    };
    let network = Act::Command {
        line: "make".into(),
        folder: "/work".into(),
        network: true,
    };
    for act in [elsewhere, network, write("a"), tool(json!({}))] {
        assert!(asks(act.clone(), NOTHING, &grants, 101), "{act:?}");
    }
    // In time, and not before it was given.
    let end = 100 + grants::FOLDER_SECONDS;
    assert!(!asks(command("x"), NOTHING, &grants, end - 1));
    assert!(asks(command("x"), NOTHING, &grants, end));
    assert!(asks(command("x"), NOTHING, &grants, 99));
    // In another chat.
    let other = Grants::new(grants.list().to_vec(), "other");
    assert!(asks(command("x"), NOTHING, &other, 101));
}

#[test]
fn a_lasting_grant_matches_the_exact_command() {
    let mut grants = grants();
    answered(command("make test"), Scope::Exact, &mut grants, 0);
    assert!(!asks(command("make test"), NOTHING, &grants, u64::MAX));
    for line in [
        "make test ",
        " make test",
        "make  test",
        "make test; rm x",
        "make test\n",
        "make tes",
        "MAKE TEST",
        "make t\u{200b}est",
    ] {
        assert!(asks(command(line), NOTHING, &grants, 0), "{line:?}");
    }
    let other = Grants::new(grants.list().to_vec(), "other");
    assert!(!asks(command("make test"), NOTHING, &other, 0));
    let grant = grants.list()[0].clone();
    assert_eq!(grant.what.title(), "Run this command");
    assert_eq!(grant.what.subject().as_deref(), Some("make test"));
    let revoked = Grants::new(Vec::new(), "chat");
    assert!(asks(command("make test"), NOTHING, &revoked, 0));
}

#[test]
fn a_tool_is_allowed_for_a_chat_as_it_is_described() {
    let mut grants = grants();
    let to = |to: &str| tool(json!({ "to": to }));
    answered(to("me"), Scope::Chat, &mut grants, 0);
    assert!(!asks(to("you"), NOTHING, &grants, 0));
    let other = Grants::new(grants.list().to_vec(), "other");
    assert!(asks(to("you"), NOTHING, &other, 0));
    for (server, name, definition) in [
        ("mail", "send", "changed"),
        ("mail", "delete", "as it was"),
        ("other", "send", "as it was"),
    ] {
        let act = Act::Tool {
            server: server.into(),
            name: name.into(),
            definition: definition.into(),
            arguments: json!({ "to": "me" }),
        };
        assert!(asks(act, ALL, &grants, 0), "{server} {name} {definition}");
    }
}

#[test]
fn a_tool_is_asked_about_with_all_that_it_gets() {
    let act = tool(json!({ "to": "me\u{202e}" }));
    let Decision::Ask(pending) = decided(act, ALL, &grants(), 0) else {
        panic!();
    };
    let question = pending.question();
    assert_eq!(question.title, "Use this tool?");
    assert_eq!(question.act, Kind::Tool);
    assert_eq!(
        question.what,
        "send of mail\n{\n  \"to\": \"me⟨U+202E⟩\"\n}"
    );
    assert_eq!(question.scopes, [Scope::Once, Scope::Chat]);
}

#[test]
fn files_that_are_run_later_are_always_shown() {
    let mut grants = grants();
    answered(write("src/a.rs"), Scope::Folder, &mut grants, 0);
    assert!(!asks(write("src/b.rs"), NOTHING, &grants, 0));
    for path in [".git/hooks/pre-commit", "a/.envrc", ".github/workflows/x"] {
        let Decision::Ask(pending) = decided(write(path), ALL, &grants, 0) else {
            panic!("{path}");
        };
        assert_eq!(pending.question().scopes, [Scope::Once], "{path}");
    }
}

#[test]
fn an_answer_is_for_its_question_and_its_scopes() {
    let mut grants = grants();
    let unknown = page("https://example.com/?q=secret", false);
    let Decision::Ask(pending) = decided(unknown, ALL, &grants, 0) else {
        panic!();
    };
    let mut answer = |id: &str, allow| {
        let answer = Answer {
            id: id.into(),
            allow,
        };
        pending.answer(&answer, "chat", &mut grants, 0)
    };
    for id in ["", "ID", "id ", "another"] {
        let wrong = answer(id, Some(Scope::Once));
        assert_eq!(wrong, Err(InvalidReply::AnotherQuestion), "{id:?}");
    }
    for scope in [Scope::Folder, Scope::Chat, Scope::Exact] {
        assert_eq!(
            answer("id", Some(scope)),
            Err(InvalidReply::Scope),
            "{scope:?}"
        );
    }
    assert_eq!(answer("id", None), Ok(None));
    assert!(answer("id", Some(Scope::Once)).unwrap().is_some());
    assert!(grants.list().is_empty());
}

#[test]
fn what_cannot_be_read_cannot_be_allowed() {
    let long = format!("echo {}; rm -rf x", "x".repeat(SHOWN_CHARACTERS));
    let Decision::Refused(why) = decided(command(&long), ALL, &grants(), 0) else {
        panic!();
    };
    assert!(why.contains("too long"), "{why}");
    for act in [command(""), command(" \n"), command("ls\0")] {
        let refused = decided(act.clone(), ALL, &grants(), 0);
        assert!(matches!(refused, Decision::Refused(_)), "{act:?}");
    }
}

#[test]
fn a_question_shows_what_is_hidden() {
    let act = command("echo hi \u{202e}x -fr mr\r");
    let Decision::Ask(pending) = decided(act, ALL, &grants(), 0) else {
        panic!();
    };
    let question = pending.question();
    assert_eq!(question.what, "echo hi ⟨U+202E⟩x -fr mr⟨U+000D⟩");
    assert_eq!(question.summary, "1 line, characters shown by code: 2");
    assert_eq!(question.title, "Run this command?");
    assert_eq!(question.act, Kind::Command);
    assert_eq!(question.folder.as_deref(), Some("/work"));
}

#[test]
fn grants_are_stored_and_bounded() {
    let mut grants = grants();
    for number in 0..300 {
        answered(
            command(&format!("make {number}")),
            Scope::Exact,
            &mut grants,
            0,
        );
    }
    assert_eq!(grants.list().len(), 200);
    assert!(asks(command("make 0"), NOTHING, &grants, 0));
    // The same again is one grant.
    let last = grants.list().last().unwrap().clone();
    assert!(!asks(command("make 299"), NOTHING, &grants, 0));
    let text = serde_json::to_string(grants.list()).unwrap();
    let read: Vec<Grant> = serde_json::from_str(&text).unwrap();
    assert_eq!(read.last(), Some(&last));
    assert_eq!(Grants::new(read, "chat"), grants);
}

#[test]
fn hidden_paths_are_found_in_any_part() {
    assert!(acts_later(&PathBuf::from("a/.b/c")));
    assert!(!acts_later(&PathBuf::from("a.b/c.d")));
}

#[test]
fn addresses_inside_are_not_opened() {
    for address in [
        "https://example.com",
        "http://93.184.215.14/",
        " https://Example.com:8443/a?b#c ",
    ] {
        assert!(WebAddress::parse(address).is_ok(), "{address}");
    }
    for address in [
        "http://localhost:11435/",
        "http://localhost.:80/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://172.16.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://router/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://a.localhost/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/html,x",
        "javascript:alert(1)",
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "example.com",
        "",
    ] {
        assert!(WebAddress::parse(address).is_err(), "{address}");
    }
    // A Cyrillic letter that looks like a Latin one.
    let address = WebAddress::parse("https://ex\u{430}mple.com/").unwrap();
    assert!(address.url().as_str().contains("xn--"), "{address:?}");
}
