//! The whole of it: the loop, a person, the sandbox and real files. The model is scripted, since what is tested is what surrounds it.

use crate::{
    launcher,
    place::{Place, skip_unsandboxed},
};
use serde_json::{Value, json};
use std::{fs, path::Path};
use tierbar_agent::{
    agent::{Agent, Bounds, Finish, Input, Message, Moment, Output, Reply, Task, Way},
    calls::{Call, Surroundings},
    consent::{Answer, General, Grants, Scope},
    tools::{Workplace, shell::Terms},
};
use tierbar_sandbox::Stop;

/// Runs a turn with a model that answers from a list, and a person who answers each question alike. Returns the end, what the person
/// was asked, and what the model has read.
fn run(
    place: &Place,
    script: &[(&str, Value)],
    allow: Option<Scope>,
) -> (Finish, Vec<String>, String) {
    let terms = Terms {
        limits: place.policy.limits,
        protected: vec![place.hidden.clone()],
    };
    let workplace = Workplace::open(&place.work, terms, launcher().to_owned()).unwrap();
    let mut agent = Agent::new(Task {
        question: "Mend the test".into(),
        chat: "chat".into(),
        way: Way::Calls,
        surroundings: Surroundings {
            folder: Some(workplace.folder.path().to_owned()),
            provider: None,
            pages: false,
            documents: None,
            external: Vec::new(),
            programs: workplace.programs.clone(),
        },
        general: General {
            reading: true,
            ..General::default()
        },
        grants: Grants::new(Vec::new(), "chat"),
        bounds: Bounds::default(),
    });
    let (mut script, mut asked, mut steps) = (script.iter(), Vec::new(), 0);
    let mut input = Input::Begin;
    loop {
        steps += 1;
        let moment = Moment {
            now: steps,
            nonce: &format!("nonce-{steps}"),
            id: &format!("question-{steps}"),
        };
        input = match agent.step(input, moment).unwrap() {
            Output::Ask(_) => Input::Reply(match script.next() {
                Some((name, arguments)) => Reply {
                    calls: vec![Call {
                        id: format!("call-{steps}"),
                        name: (*name).into(),
                        arguments: arguments.to_string(),
                    }],
                    ..Reply::default()
                },
                None => Reply {
                    text: "It passes.".into(),
                    ..Reply::default()
                },
            }),
            Output::Prepare(wanted) => {
                let prepared = workplace.prepare(wanted);
                Input::Prepared(prepared.map_err(|failure| failure.0))
            }
            Output::Consent(question) => {
                asked.push(question.what);
                Input::Answer(Answer {
                    id: question.id,
                    allow,
                })
            }
            Output::Do(permitted) => {
                let done = workplace.perform(&permitted, &Stop::default());
                Input::Done(done.map_err(|failure| failure.0))
            }
            Output::Finish(finish) => {
                let read = agent.messages().iter().filter_map(|message| match message {
                    Message::Observation { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                return (finish, asked, read.collect::<Vec<_>>().join("\n"));
            }
        };
    }
}

fn write_toy(work: &Path) {
    fs::write(work.join("add.sh"), "add() { echo $(($1 - $2)); }\n").unwrap();
    let test = ". ./add.sh\n[ \"$(add 2 3)\" = 5 ] && echo passed || { echo failed; exit 1; }\n";
    fs::write(work.join("test.sh"), test).unwrap();
}

fn script() -> Vec<(&'static str, Value)> {
    vec![
        ("list_files", json!({ "path": "" })),
        ("run_command", json!({ "command": "sh test.sh" })),
        ("run_command", json!({ "command": "cat add.sh" })),
        (
            "edit_file",
            json!({ "path": "add.sh", "old": "$1 - $2", "new": "$1 + $2" }),
        ),
        ("run_command", json!({ "command": "sh test.sh" })),
    ]
}

#[test]
fn a_failing_test_is_mended_with_three_answers() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    write_toy(&place.work);
    let (finish, asked, read) = run(&place, &script(), Some(Scope::Once));
    assert_eq!(finish, Finish::Answered("It passes.".into()));
    // Reading is not asked for.
    assert_eq!(asked, ["sh test.sh", "add.sh", "sh test.sh"]);
    for found in [
        "add.sh\ntest.sh",
        "failed\n[exit code 1]",
        "echo $(($1 - $2))",
        "passed",
    ] {
        assert!(read.contains(found), "{found}: {read}");
    }
}

#[test]
fn nothing_happens_if_everything_is_refused() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    write_toy(&place.work);
    let before = fs::read(place.work.join("add.sh")).unwrap();
    let mut script = script();
    script.push(("run_command", json!({ "command": "touch made" })));
    script.push(("write_file", json!({ "path": "made", "content": "x" })));
    let (_, asked, read) = run(&place, &script, None);
    // After the third refusal the agent stops asking.
    assert_eq!(asked.len(), 3);
    assert!(
        !read.contains("passed") && !read.contains("exit code"),
        "{read}"
    );
    assert_eq!(fs::read(place.work.join("add.sh")).unwrap(), before);
    assert_eq!(fs::read_dir(&place.work).unwrap().count(), 2);
}

#[test]
fn an_allowed_command_still_sees_nothing_outside() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let token = place.hidden.join("token");
    let script = [
        (
            "run_command",
            json!({ "command": format!("cat {}", token.display()) }),
        ),
        (
            "run_command",
            json!({ "command": format!("cp {} . && cat token", token.display()) }),
        ),
        ("read_file", json!({ "path": token })),
    ];
    let (_, _, read) = run(&place, &script, Some(Scope::Folder));
    assert!(!read.contains("the token"), "{read}");
    assert!(read.contains("is outside of"), "{read}");
}
