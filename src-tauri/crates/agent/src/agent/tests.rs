use super::*;
use crate::{
    calls::{ExternalTool, Surroundings},
    consent::{Answer, Collections, General, InvalidReply, Question, Scope, read_only},
};
use serde_json::json;

mod injection;

/// A turn with what comes back of its own.
struct Turn {
    agent: Agent,
    now: u64,
    fresh: u32,
}

impl Turn {
    fn new(way: Way, general: General, bounds: Bounds) -> Self {
        let task = Task {
            question: "Mend the test; see https://known.example/help.".into(),
            chat: "chat".into(),
            way,
            surroundings: Surroundings {
                folder: Some("/work".into()),
                provider: Some("duckduckgo.com".into()),
                pages: true,
                documents: Some(Collections::All),
                programs: None,
                external: vec![ExternalTool {
                    server: "mail".into(),
                    name: "send".into(),
                    description: "Sends a mail".into(),
                    parameters: json!({ "type": "object" }),
                    definition: "1".into(),
                }],
            },
            general,
            grants: Grants::new(Vec::new(), "chat"),
            bounds,
        };
        Self {
            agent: Agent::new(task),
            now: 1_000,
            fresh: 0,
        }
    }

    fn calls() -> Self {
        Self::new(Way::Calls, General::default(), Bounds::default())
    }

    fn text(grammar: bool) -> Self {
        Self::new(Way::Text { grammar }, General::default(), Bounds::default())
    }

    fn try_step(&mut self, input: Input) -> Result<Output, MisplacedInput> {
        self.now += 1;
        self.fresh += 1;
        let moment = Moment {
            now: self.now,
            nonce: &format!("nonce-{}", self.fresh),
            id: &format!("fresh-{}", self.fresh),
        };
        self.agent.step(input, moment)
    }

    fn step(&mut self, input: Input) -> Output {
        self.try_step(input).unwrap()
    }

    fn reply(&mut self, text: &str) -> Output {
        self.step(Input::Reply(Reply {
            text: text.into(),
            calls: Vec::new(),
            tokens: 10,
            read: 100,
        }))
    }

    fn call(&mut self, name: &str, arguments: Value) -> Output {
        self.all(&[(name, arguments)])
    }

    fn all(&mut self, calls: &[(&str, Value)]) -> Output {
        let calls = calls.iter().enumerate();
        let calls = calls.map(|(at, (name, arguments))| Call {
            id: format!("call-{at}"),
            name: (*name).into(),
            arguments: arguments.to_string(),
        });
        self.step(Input::Reply(Reply {
            text: String::new(),
            calls: calls.collect(),
            tokens: 10,
            read: 100,
        }))
    }

    fn found(&mut self, text: &str) -> Output {
        self.step(Input::Done(Ok(ActResult::text(text.into()))))
    }

    fn answer(&mut self, id: &str, allow: Option<Scope>) -> Output {
        self.step(Input::Answer(Answer {
            id: id.into(),
            allow,
        }))
    }

    fn last(&self) -> &Message {
        self.agent.messages().last().unwrap()
    }
}

fn question(output: Output) -> Question {
    match output {
        Output::Consent(question) => question,
        other => panic!("{other:?}"),
    }
}

fn asked(output: Output) -> ModelRequest {
    match output {
        Output::Ask(ask) => ask,
        other => panic!("{other:?}"),
    }
}

fn done(output: Output) -> Act {
    match output {
        Output::Do(permitted) => permitted.act().clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_test_is_mended_with_consent() {
    let mut turn = Turn::calls();
    let ask = asked(turn.step(Input::Begin));
    assert_eq!(ask.tools.len(), 9);
    assert!(ask.system.contains("never an instruction"));
    let run = question(turn.call("run_command", json!({ "command": "make test" })));
    assert_eq!(run.what, "make test");
    assert_eq!(run.scopes, [Scope::Once, Scope::Folder, Scope::Exact]);
    let act = done(turn.answer(&run.id, Some(Scope::Exact)));
    assert!(matches!(act, Act::Command { .. }));
    let ask = asked(turn.found("1 failed"));
    let Message::Observation { call, text } = ask.messages.last().unwrap() else {
        panic!();
    };
    assert_eq!(call.as_deref(), Some("call-0"));
    assert!(
        text.contains("BEGIN DATA") && text.contains("1 failed"),
        "{text}"
    );
    let edit = json!({ "path": "a.py", "old": "1", "new": "2" });
    let Output::Prepare(CallIntent::Edit { .. }) = turn.call("edit_file", edit) else {
        panic!();
    };
    let change = Change {
        path: "a.py".into(),
        before: Some([1; 32]),
        after: b"2\n".as_slice().into(),
        diff: "-1\n+2\n".into(),
    };
    let edit = question(turn.step(Input::Prepared(Ok(change.clone()))));
    assert_eq!(edit.diff.as_deref(), Some("-1\n+2\n"));
    let act = done(turn.answer(&edit.id, Some(Scope::Once)));
    assert!(matches!(act, Act::Write { change: done, .. } if done == change));
    asked(turn.found("written"));
    // It was allowed for always.
    done(turn.call("run_command", json!({ "command": "make test" })));
    asked(turn.found("all passed"));
    let end = turn.reply("It passes now.");
    assert_eq!(
        end,
        Output::Finish(Finish::Answered("It passes now.".into()))
    );
    assert_eq!(turn.agent.grants().list().len(), 1);
    assert_eq!(turn.try_step(Input::Begin), Err(MisplacedInput::NotOpen));
}

#[test]
fn a_text_command_is_chosen_by_a_grammar() {
    let mut turn = Turn::text(true);
    let ask = asked(turn.step(Input::Begin));
    assert_eq!(
        ask.grammar.as_deref(),
        Some(r#"root ::= "search" | "shell" | "files" | "documents" | "chat""#)
    );
    assert_eq!(ask.max_tokens, ROUTE_TOKENS);
    assert!(!ask.is_answer && ask.tools.is_empty());
    let ask = asked(turn.reply("shell"));
    assert_eq!(ask.grammar, None);
    let run = question(turn.reply("```sh\ndf -h\n```"));
    assert_eq!(run.what, "df -h");
    done(turn.answer(&run.id, Some(Scope::Once)));
    // The next step.
    let ask = asked(turn.found("80% used"));
    assert!(ask.grammar.is_some());
    let ask = asked(turn.reply("chat"));
    assert!(ask.is_answer && ask.grammar.is_none());
    let end = turn.reply("The disk is 80% full.");
    assert!(
        matches!(end, Output::Finish(Finish::Answered(_))),
        "{end:?}"
    );
}

#[test]
fn an_unreadable_route_is_asked_again_and_never_chat() {
    let mut turn = Turn::text(false);
    let first = asked(turn.step(Input::Begin));
    assert_eq!(first.grammar, None);
    let again = asked(turn.reply("Hmm, either search or shell"));
    assert_ne!(first.messages, again.messages);
    assert!(!again.is_answer);
    let line = asked(turn.reply("search."));
    assert!(!line.is_answer);
    // One that never says a route is asked for its answer at last, with the reason.
    let mut turn = Turn::text(false);
    asked(turn.step(Input::Begin));
    let mut ask = asked(turn.reply("?"));
    for _ in 0..Bounds::default().mistakes {
        assert!(!ask.is_answer);
        ask = asked(turn.reply("?"));
    }
    assert!(ask.is_answer);
    let Message::User(why) = ask.messages.last().unwrap() else {
        panic!();
    };
    assert!(why.contains("came to nothing"), "{why}");
}

#[test]
fn what_is_refused_without_a_question_is_shown_as_a_failed_step() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    asked(turn.all(&[
        ("read_file", json!({ "path": "../home/token" })),
        ("read_page", json!({ "url": "http://127.0.0.1/" })),
    ]));
    let failed = turn.agent.take_failed();
    let tools: Vec<_> = failed.iter().map(|step| step.tool.as_str()).collect();
    assert_eq!(tools, ["read_file", "read_page"]);
    assert_eq!(failed[0].arguments, json!({ "path": "../home/token" }));
    assert!(failed.iter().all(|step| !step.why.is_empty()));
    assert_eq!(turn.agent.take_failed(), []);
    // A line by text is shown as the call would be.
    let mut turn = Turn::text(true);
    asked(turn.step(Input::Begin));
    asked(turn.reply("files"));
    asked(turn.reply("read ../home/token"));
    let failed = turn.agent.take_failed();
    assert_eq!(failed[0].tool, "read_file");
    assert_eq!(failed[0].arguments, json!({ "path": "../home/token" }));
}

#[test]
fn calls_that_are_written_as_text_are_carried_out_as_calls() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    let calls = "I look.</think>```json\n{\"name\": \"run_command\", \"arguments\": {\"command\": \"make\"}}\n```\n\
                 {\"name\": \"list_files\", \"arguments\": {\"path\": \"\"}}";
    let run = question(turn.reply(calls));
    assert_eq!(run.what, "make");
    assert_eq!(turn.agent.open_step().0, "run_command");
    done(turn.answer(&run.id, Some(Scope::Once)));
    let list = question(turn.found("made"));
    assert_eq!(list.title, "Read this file?");
    assert_eq!(turn.agent.open_step().0, "list_files");
    done(turn.answer(&list.id, Some(Scope::Once)));
    let ask = asked(turn.found("a b"));
    let Some(Message::Assistant { text, calls }) = ask.messages.get(1) else {
        panic!("{:?}", ask.messages);
    };
    assert_eq!((text.as_str(), calls.len()), ("", 2));
    let ids: Vec<_> = ask.messages[2..]
        .iter()
        .map(|message| match message {
            Message::Observation { call, .. } => call.as_deref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [Some(&*calls[0].id), Some(&*calls[1].id)]);
    let text = "{\"name\": \"delete_file\", \"arguments\": {}}";
    assert_eq!(
        turn.reply(text),
        Output::Finish(Finish::Answered(text.into()))
    );
}

#[test]
fn marks_are_no_part_of_an_answer() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    let end = turn.reply("BEGIN DATA nonce-1 from read_file\nAnna Lind\nEND DATA nonce-1");
    assert_eq!(end, Output::Finish(Finish::Answered("Anna Lind".into())));
    let mut turn = Turn::text(true);
    asked(turn.step(Input::Begin));
    asked(turn.reply("shell"));
    // Nothing is asked.
    let ask = asked(turn.reply("END DATA nonce-1"));
    assert!(ask.grammar.is_some());
    assert_eq!(turn.agent.take_failed().len(), 1);
}

#[test]
fn a_written_call_with_wrong_arguments_fails() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    let call = "{\"name\": \"read_file\", \"arguments\": {\"file\": \"a\"}}";
    let ask = asked(turn.reply(call));
    let failed = turn.agent.take_failed();
    assert_eq!(failed[0].tool, "read_file");
    assert!(failed[0].why.ends_with("read_file needs \"path\""));
    let last = ask.messages.last();
    assert!(matches!(last, Some(Message::Observation { text, .. }) if text.contains("needs")));
}

#[test]
fn refusals_end_the_asking() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    for number in 0..3 {
        let command = json!({ "command": format!("rm {number}") });
        let run = question(turn.call("run_command", command));
        let ask = asked(turn.answer(&run.id, None));
        let Message::Observation { text, .. } = ask
            .messages
            .iter()
            .rfind(|message| matches!(message, Message::Observation { .. }))
            .unwrap()
        else {
            panic!();
        };
        // Without marks: what is between them is not to be followed.
        assert!(text.starts_with("The user does not allow"), "{text}");
        assert_eq!(ask.tools.is_empty(), number == 2, "{number}");
    }
    // Without tools there are no calls either.
    let end = turn.call("run_command", json!({ "command": "rm 4" }));
    assert!(
        matches!(end, Output::Finish(Finish::Exhausted(_))),
        "{end:?}"
    );
}

#[test]
fn each_call_of_a_reply_has_its_answer() {
    let mut turn = Turn::calls();
    asked(turn.step(Input::Begin));
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let first = question(turn.all(&[read("a"), read("../b"), ("nothing", json!({})), read("c")]));
    done(turn.answer(&first.id, Some(Scope::Folder)));
    // The two wrong ones are answered, and the last one is covered by the grant.
    let act = done(turn.found("content of a"));
    assert!(matches!(act, Act::Read { path, .. } if path.ends_with("c")));
    let ask = asked(turn.found("content of c"));
    let calls: Vec<_> = ask
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Observation { call, .. } => call.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(calls, ["call-0", "call-1", "call-2", "call-3"]);
}

#[test]
fn limits_end_a_turn_with_an_answer() {
    let bounds = Bounds {
        acts: 2,
        ..Bounds::default()
    };
    let general = General {
        reading: true,
        ..General::default()
    };
    let mut turn = Turn::new(Way::Calls, general, bounds);
    asked(turn.step(Input::Begin));
    let list = |number: u32| json!({ "command": format!("ls {number}") });
    for number in 0..2 {
        done(turn.call("run_command", list(number)));
        let ask = asked(turn.found("x"));
        assert_eq!(ask.tools.is_empty(), number == 1);
    }
    let end = turn.reply("What I have.");
    assert!(matches!(end, Output::Finish(Finish::Answered(_))));

    let written = Bounds {
        tokens: 15,
        ..Bounds::default()
    };
    let read = Bounds {
        read: 150,
        ..Bounds::default()
    };
    for bounds in [written, read] {
        let mut turn = Turn::new(Way::Calls, general, bounds);
        asked(turn.step(Input::Begin));
        done(turn.call("run_command", list(0)));
        assert!(!asked(turn.found("x")).tools.is_empty());
        // What the last call wants is not done any more.
        let ask = asked(turn.call("run_command", list(1)));
        assert!(ask.tools.is_empty());
    }

    let bounds = Bounds {
        seconds: 100,
        ..Bounds::default()
    };
    let mut turn = Turn::new(Way::Calls, General::default(), bounds);
    asked(turn.step(Input::Begin));
    let run = question(turn.call("run_command", json!({ "command": "make" })));
    // The person's time does not count.
    turn.now += 10_000;
    done(turn.answer(&run.id, Some(Scope::Once)));
    assert!(!asked(turn.found("x")).tools.is_empty());
    let run = question(turn.call("run_command", json!({ "command": "make x" })));
    done(turn.answer(&run.id, Some(Scope::Once)));
    turn.now += 100;
    assert!(asked(turn.found("x")).tools.is_empty());
}

#[test]
fn a_repeated_act_is_refused() {
    let general = General {
        reading: true,
        ..General::default()
    };
    let mut turn = Turn::new(Way::Calls, general, Bounds::default());
    asked(turn.step(Input::Begin));
    for _ in 0..2 {
        done(turn.call("run_command", json!({ "command": "ls" })));
        asked(turn.found("x"));
    }
    asked(turn.call("run_command", json!({ "command": "ls" })));
    let Message::Observation { text, .. } = turn.last() else {
        panic!();
    };
    assert!(text.contains("2 times already"), "{text}");
    // A model that asks for nothing else has no tools in the end, so that it does not ask for ever.
    let again = asked(turn.call("run_command", json!({ "command": "ls" })));
    assert!(!again.tools.is_empty());
    let last = asked(turn.call("run_command", json!({ "command": "ls" })));
    assert!(last.tools.is_empty());
}

#[test]
fn a_stop_ends_a_turn_anywhere() {
    let mut turns = [Turn::calls(), Turn::calls(), Turn::calls()];
    turns[1].step(Input::Begin);
    turns[2].step(Input::Begin);
    turns[2].call("run_command", json!({ "command": "make" }));
    for turn in &mut turns {
        assert_eq!(turn.step(Input::Stop), Output::Finish(Finish::Stopped));
        assert_eq!(turn.try_step(Input::Stop), Err(MisplacedInput::NotOpen));
    }
}

#[test]
fn an_input_in_the_wrong_place_changes_nothing() {
    let mut turn = Turn::calls();
    let answer = |id: &str| {
        Input::Answer(Answer {
            id: id.into(),
            allow: Some(Scope::Once),
        })
    };
    assert_eq!(turn.try_step(answer("x")), Err(MisplacedInput::NotOpen));
    turn.step(Input::Begin);
    assert_eq!(
        turn.try_step(answer("fresh-1")),
        Err(MisplacedInput::NotOpen)
    );
    assert_eq!(turn.try_step(Input::Begin), Err(MisplacedInput::NotOpen));
    let run = question(turn.call("run_command", json!({ "command": "make" })));
    for wrong in [
        Input::Begin,
        Input::Reply(Reply {
            text: format!("I allow it: {}", run.id),
            ..Reply::default()
        }),
        Input::Done(Ok(ActResult::default())),
        Input::Prepared(Err(String::new())),
    ] {
        assert_eq!(turn.try_step(wrong), Err(MisplacedInput::NotOpen));
    }
    for id in ["", "x", "fresh-1"] {
        let wrong = turn.try_step(answer(id));
        assert_eq!(
            wrong,
            Err(MisplacedInput::Answer(InvalidReply::AnotherQuestion))
        );
    }
    let scope = Input::Answer(Answer {
        id: run.id.clone(),
        allow: Some(Scope::Chat),
    });
    assert_eq!(
        turn.try_step(scope),
        Err(MisplacedInput::Answer(InvalidReply::Scope))
    );
    done(turn.answer(&run.id, Some(Scope::Once)));
    // Twice.
    assert_eq!(turn.try_step(answer(&run.id)), Err(MisplacedInput::NotOpen));
}

#[test]
fn only_hits_of_a_search_become_known_addresses() {
    let general = General {
        search: true,
        known_pages: true,
        reading: true,
    };
    let address = |text: &str| WebAddress::parse(text).unwrap();
    let mut turn = Turn::new(Way::Calls, general, Bounds::default());
    asked(turn.step(Input::Begin));
    let open = |url: &str| json!({ "url": url });
    // The person's own.
    done(turn.call("read_page", open("https://known.example/help")));
    // A page brings none, even if the host says so.
    turn.step(Input::Done(Ok(ActResult {
        text: "See https://evil.example/?q=".into(),
        addresses: vec![address("https://evil.example/")],
        failed: false,
    })));
    let ask = question(turn.call("read_page", open("https://evil.example/")));
    assert_eq!(ask.scopes, [Scope::Once]);
    turn.answer(&ask.id, None);
    done(turn.call("search_web", json!({ "query": "x" })));
    turn.step(Input::Done(Ok(ActResult {
        text: "1. https://hit.example/".into(),
        addresses: vec![address("https://hit.example/")],
        failed: false,
    })));
    done(turn.call("read_page", open("https://hit.example/")));
    turn.found("x");
    let other = turn.call("read_page", open("https://hit.example/?secret"));
    question(other);
}

#[test]
fn without_tools_the_model_answers() {
    let task = Task {
        question: "Hello".into(),
        chat: "chat".into(),
        way: Way::Text { grammar: true },
        surroundings: Surroundings {
            folder: None,
            provider: None,
            pages: false,
            documents: None,
            external: Vec::new(),
            programs: None,
        },
        general: General::default(),
        grants: Grants::default(),
        bounds: Bounds::default(),
    };
    let mut agent = Agent::new(task);
    let moment = Moment {
        now: 0,
        nonce: "x",
        id: "y",
    };
    let ask = asked(agent.step(Input::Begin, moment).unwrap());
    assert!(ask.is_answer && ask.grammar.is_none());
}

/// Whether an act changes nothing and reveals nothing, so that it needs no consent.
fn is_harmless(act: &Act) -> bool {
    match act {
        Act::Command { line, network, .. } => !network && read_only(line).is_some(),
        Act::Read { .. } | Act::Documents { .. } => true,
        Act::Search { .. } => true,
        Act::Page { known, .. } => *known,
        Act::Write { .. } | Act::Tool { .. } => false,
    }
}
