//! What turns read and write, and databases of earlier versions.

use crate::support::{Fixture, all_chats};
use tierbar_chats::{
    AnswerFacts, Attachment, Chat, Finish, Part, Role, TurnFailure, branch, text_parts,
};
use tierbar_core::{Code, Error, journal::Filter};
use tierbar_store::{ChatFields, NewAttachment, NewMessage, NewTurn, OpenedTurn, Parent, Store};

fn turn(id: &str, text: &str) -> NewTurn {
    NewTurn {
        id: id.to_owned(),
        text: Some(text.to_owned()),
        ..NewTurn::default()
    }
}

async fn chat(store: &Store) -> String {
    store.create_chat(ChatFields::default()).await.unwrap().id
}

/// A turn that is answered at once.
async fn answered(store: &Store, chat: &str, turn: NewTurn, answer: &str) -> OpenedTurn {
    let id = turn.id.clone();
    let opened = store.open_turn(chat, turn).await.unwrap();
    let facts = AnswerFacts {
        finish: Some(Finish::Stop),
        ..AnswerFacts::default()
    };
    let parts = text_parts(answer.to_owned());
    let written = store.write_answer(&id, parts, facts).await;
    assert_eq!(written.unwrap().unwrap().text(), answer);
    opened
}

fn shown(chat: &Chat) -> Vec<String> {
    let branch = branch(&chat.messages, chat.leaf.unwrap());
    branch.into_iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_turn_has_the_conversation_before_it() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    answered(&store, &id, turn("a", "One?"), "1").await;
    let opened = answered(&store, &id, turn("b", "Two?"), "2").await;
    let texts = opened.conversation.iter().map(|message| message.text());
    assert_eq!(texts.collect::<Vec<_>>(), ["One?", "1", "Two?"]);
    assert_eq!(opened.chat.title, "One?");
    assert_eq!(
        shown(&store.chat(&id).await.unwrap()),
        ["One?", "1", "Two?", "2"]
    );
}

#[tokio::test]
async fn a_regenerated_answer_and_an_edited_question_are_branches() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let first = answered(&store, &id, turn("a", "One?"), "1").await;
    let again = NewTurn {
        id: "b".into(),
        model: Some("heavy".into()),
        ..NewTurn::default()
    };
    let second = answered(&store, &id, again, "one").await;
    assert_eq!(
        (&*second.model, &*second.chat.model),
        ("heavy", "auto"),
        "another model answers this once"
    );
    assert_eq!(second.conversation, first.conversation);
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(shown(&kept), ["One?", "one"]);
    assert_eq!(kept.messages.len(), 3);

    let question = first.conversation[0].id;
    let follows = NewTurn {
        parent: Parent::Message(first.answer),
        ..turn("c", "Two?")
    };
    answered(&store, &id, follows, "2").await;
    assert_eq!(
        shown(&store.chat(&id).await.unwrap()),
        ["One?", "1", "Two?", "2"]
    );
    let leaf = ChatFields {
        leaf: Some(second.answer),
        ..ChatFields::default()
    };
    store.update_chat(&id, leaf).await.unwrap();
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["One?", "one"]);
    let from_question = NewTurn {
        id: "d".into(),
        parent: Parent::Message(question),
        ..NewTurn::default()
    };
    answered(&store, &id, from_question, "ONE").await;
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["One?", "ONE"]);
}

#[tokio::test]
async fn an_answer_that_ended_early_is_carried_on_in_its_message() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let first = store.open_turn(&id, turn("a", "Count.")).await.unwrap();
    let ended = async |turn: &str, text: &str, finish| {
        let facts = AnswerFacts {
            finish: Some(finish),
            ..AnswerFacts::default()
        };
        let parts = text_parts(text.to_owned());
        store.write_answer(turn, parts, facts).await.unwrap();
    };
    ended("a", "One, ", Finish::Length).await;
    let carry_on = |id: &str| NewTurn {
        id: id.to_owned(),
        parent: Parent::Message(first.answer),
        continues: true,
        ..NewTurn::default()
    };
    let begun = store.unfinished_answer(&id, Parent::Leaf).await.unwrap();
    assert_eq!(begun.id, first.answer);
    let second = store.open_turn(&id, carry_on("b")).await.unwrap();
    assert_eq!(second.answer, first.answer);
    let texts = second.conversation.iter().map(|message| message.text());
    assert_eq!(texts.collect::<Vec<_>>(), ["Count.", "One, "]);
    let pieces = text_parts("two".to_owned());
    let facts = AnswerFacts::default();
    store.append_answer("b", pieces, facts).await.unwrap();
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(shown(&kept), ["Count.", "One, two"]);
    assert_eq!(kept.messages[1].answer.finish, None);

    ended("b", "One, two", Finish::Stop).await;
    let complete = store.open_turn(&id, carry_on("c")).await.unwrap_err();
    assert_eq!(complete.code, Code::BadRequest);
    let question = Parent::Message(first.conversation[0].id);
    for parent in [question, Parent::Root, Parent::Message(99)] {
        let refused = store.unfinished_answer(&id, parent).await.unwrap_err();
        assert_eq!(refused.code, Code::BadRequest, "{parent:?}");
    }
}

#[tokio::test]
async fn files_of_a_question_are_kept_as_long_as_it() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let (id, other) = (chat(&store).await, chat(&store).await);
    let file = Attachment {
        sha256: "ab".into(),
        media_type: "text/plain".into(),
        name: "notes.txt".into(),
        bytes: 3,
    };
    let part = Part::File { file };
    let with_files = |id: &str, attachments| NewTurn {
        attachments,
        ..turn(id, "")
    };
    let new = NewAttachment::New {
        part: part.clone(),
        data: b"abc".to_vec(),
    };
    let opened = answered(&store, &id, with_files("a", vec![new]), "1").await;
    assert_eq!(opened.conversation[0].parts, std::slice::from_ref(&part));
    assert_eq!(opened.chat.title, "notes.txt");
    let kept = store.attachments(vec!["ab".into(), "cd".into()]);
    assert_eq!(kept.await.unwrap(), [("ab".into(), b"abc".to_vec())].into());
    assert_eq!(store.attachments_size(&id).await.unwrap(), 3);

    let stored = || vec![NewAttachment::Stored("ab".into())];
    let again = NewTurn {
        attachments: stored(),
        ..turn("b", "Why?")
    };
    let opened = answered(&store, &id, again, "2").await;
    assert_eq!(opened.conversation[2].parts[0], part);
    let refused = store.open_turn(&other, with_files("c", stored())).await;
    assert_eq!(refused.unwrap_err().code, Code::NotFound);

    let erase = |message: u64| {
        let database = rusqlite::Connection::open(fixture.path()).unwrap();
        database.pragma_update(None, "foreign_keys", true).unwrap();
        let erased = database.execute("DELETE FROM messages WHERE id = ?1", [message]);
        assert_eq!(erased.unwrap(), 1);
    };
    let data = async || store.attachments(vec!["ab".into()]).await.unwrap().len();
    erase(opened.conversation[0].id);
    assert_eq!(data().await, 1, "another message has it");
    erase(opened.conversation[2].id);
    assert_eq!(data().await, 0);
}

#[tokio::test]
async fn an_edited_first_question_is_a_root_of_its_own() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let first = answered(&store, &id, turn("a", "One?"), "1").await;
    let edited = NewTurn {
        parent: Parent::Root,
        ..turn("b", "Two?")
    };
    let second = answered(&store, &id, edited, "2").await;
    assert_eq!(second.conversation.len(), 1);
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(shown(&kept), ["Two?", "2"]);
    assert_eq!(kept.messages[2].parent, None);
    assert_eq!(kept.summary.title, "One?");
    let leaf = ChatFields {
        leaf: Some(first.answer),
        ..ChatFields::default()
    };
    store.update_chat(&id, leaf).await.unwrap();
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["One?", "1"]);
    let nothing = NewTurn {
        parent: Parent::Root,
        ..NewTurn::default()
    };
    let refused = store.open_turn(&id, nothing).await.unwrap_err();
    assert_eq!(refused.code, Code::BadRequest);
}

#[tokio::test]
async fn an_answer_that_is_added_after_an_answer_stands_beside_it() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    for (role, content) in [
        (Role::User, "?"),
        (Role::Assistant, "one"),
        (Role::Assistant, "two"),
        (Role::User, "!"),
    ] {
        let message = NewMessage {
            role,
            content: content.to_owned(),
            parts: Vec::new(),
            answer: AnswerFacts::default(),
        };
        store.add_message(&id, message).await.unwrap();
    }
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["?", "two", "!"]);
}

#[tokio::test]
async fn a_turn_without_a_question_or_a_parent_that_exists_is_refused() {
    let store = Fixture::new().store();
    let (id, other) = (chat(&store).await, chat(&store).await);
    let elsewhere = answered(&store, &other, turn("o", "?"), "!").await.answer;
    let refused = async |turn| store.open_turn(&id, turn).await.unwrap_err().code;
    assert_eq!(refused(NewTurn::default()).await, Code::BadRequest);
    assert_eq!(refused(turn("a", " \n")).await, Code::BadRequest);
    for parent in [0, elsewhere, u64::MAX] {
        let turn = NewTurn {
            parent: Parent::Message(parent),
            ..turn("a", "?")
        };
        assert_eq!(refused(turn).await, Code::NotFound, "{parent}");
        let leaf = ChatFields {
            leaf: Some(parent),
            ..ChatFields::default()
        };
        let error = store.update_chat(&id, leaf).await.unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{parent}");
    }
    let error = store.open_turn("none", turn("a", "?")).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let chat = store.chat(&id).await.unwrap();
    assert_eq!(chat.messages, []);

    let turn = NewTurn {
        model: Some("heavy".into()),
        parent: Parent::Message(u64::MAX),
        ..turn("a", "?")
    };
    refused(turn).await;
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(kept, chat, "what is refused changes nothing");
}

#[tokio::test]
async fn what_was_added_behind_a_discarded_answer_stays_in_the_branch() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "?")).await.unwrap();
    let message = NewMessage {
        role: Role::User,
        content: "added".into(),
        parts: Vec::new(),
        answer: AnswerFacts::default(),
    };
    store.add_message(&id, message).await.unwrap();
    store.discard_answer("a", None).await.unwrap();
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["?", "added"]);
}

#[tokio::test]
async fn the_answer_of_a_turn_is_found_once_it_is_whole() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let (id, other) = (chat(&store).await, chat(&store).await);
    answered(&store, &id, turn("a", "One?"), "1").await;
    store.open_turn(&id, turn("b", "Two?")).await.unwrap();
    drop(store);
    let store = fixture.store();
    let found = async |chat: &str, turn| store.answer_of_turn(chat, turn).await.unwrap();
    assert_eq!(found(&id, "a").await.unwrap().text(), "1");
    assert_eq!(found(&id, "b").await, None);
    assert_eq!(found(&other, "a").await, None);
}

fn failure() -> TurnFailure {
    let error = Error::new(Code::OverBudget, "it does not fit").hint("choose a smaller one");
    TurnFailure::from(&error)
}

#[tokio::test]
async fn a_failed_answer_is_kept_as_such_with_its_tier() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "One?")).await.unwrap();
    let facts = AnswerFacts {
        tier: Some("fast".to_owned()),
        why: Some("it is short".to_owned()),
        finish: Some(Finish::Error),
        failure: Some(failure()),
        ..AnswerFacts::default()
    };
    let parts = text_parts("so far".to_owned());
    store.write_answer("a", parts, facts.clone()).await.unwrap();
    drop(store);
    let store = fixture.store();
    let found = store.answer_of_turn(&id, "a").await.unwrap().unwrap();
    assert_eq!((found.text().as_str(), &found.answer), ("so far", &facts));
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(kept.messages.last(), Some(&found));
    // It can be carried on.
    let unfinished = store.unfinished_answer(&id, Parent::Leaf).await.unwrap();
    assert_eq!(unfinished.id, found.id);
    let on = NewTurn {
        id: "b".into(),
        continues: true,
        ..NewTurn::default()
    };
    store.open_turn(&id, on).await.unwrap();
    let chat = store.chat(&id).await.unwrap();
    assert_eq!(chat.messages[1].answer.failure, None);
}

#[tokio::test]
async fn a_question_keeps_why_it_has_no_answer_until_the_next_turn() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "One?")).await.unwrap();
    store.discard_answer("a", Some(failure())).await.unwrap();
    drop(store);
    let store = fixture.store();
    let kept = store.chat(&id).await.unwrap();
    assert_eq!(shown(&kept), ["One?"]);
    assert_eq!(kept.messages[0].answer.failure, Some(failure()));
    let again = NewTurn {
        id: "b".into(),
        ..NewTurn::default()
    };
    let opened = store.open_turn(&id, again).await.unwrap();
    assert_eq!(opened.conversation[0].answer.failure, None);
    store.discard_answer("b", None).await.unwrap();
    let chat = store.chat(&id).await.unwrap();
    assert_eq!(chat.messages[0].answer.failure, None, "it was stopped");
}

#[tokio::test]
async fn what_a_killed_host_was_writing_is_kept_as_broken_off() {
    let fixture = Fixture::new();
    let (kept, empty) = {
        let store = fixture.store();
        let (kept, empty) = (chat(&store).await, chat(&store).await);
        store.open_turn(&kept, turn("a", "Why?")).await.unwrap();
        let parts = text_parts("Beca".to_owned());
        let unfinished = AnswerFacts::default();
        let written = store.write_answer("a", parts, unfinished).await;
        assert_eq!(written.unwrap().unwrap().answer.finish, None);
        store.open_turn(&empty, turn("b", "How?")).await.unwrap();
        (kept, empty)
    };
    let store = fixture.store();
    let chat = store.chat(&kept).await.unwrap();
    assert_eq!(shown(&chat), ["Why?", "Beca"]);
    assert_eq!(chat.messages[1].answer.finish, Some(Finish::Error));
    let chat = store.chat(&empty).await.unwrap();
    assert_eq!(shown(&chat), ["How?"], "an answer of nothing is not kept");
}

#[tokio::test]
async fn the_pieces_of_an_answer_are_its_message_once_it_ends() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let (whole, killed, empty) = (chat(&store).await, chat(&store).await, chat(&store).await);
    let thought = |text: &str| Part::Reasoning { text: text.into() };
    for id in [&whole, &killed] {
        store.open_turn(id, turn(id, "Why?")).await.unwrap();
        for (reasoning, text) in [("H", ""), ("m", "Be"), ("", "cause")] {
            let mut pieces = text_parts(text.to_owned());
            pieces.extend((!reasoning.is_empty()).then(|| thought(reasoning)));
            let facts = AnswerFacts {
                tier: Some("fast".into()),
                ..AnswerFacts::default()
            };
            store.append_answer(id, pieces, facts).await.unwrap();
        }
    }
    store.open_turn(&empty, turn("e", "How?")).await.unwrap();
    let parts = [
        thought("Hm"),
        Part::Text {
            text: "Because".into(),
        },
    ];
    let read = async |store: &Store, id: &str| store.chat(id).await.unwrap().messages[1].clone();
    let running = read(&store, &whole).await;
    assert_eq!(
        (running.parts.as_slice(), running.answer.finish),
        (&parts[..], None)
    );
    assert_eq!(running.answer.tier.as_deref(), Some("fast"));

    let facts = AnswerFacts {
        finish: Some(Finish::Stop),
        ..AnswerFacts::default()
    };
    let written = text_parts("Because.".to_owned());
    store.write_answer(&whole, written, facts).await.unwrap();
    drop(store);
    let store = fixture.store();
    let message = read(&store, &whole).await;
    assert_eq!(message.text(), "Because.");
    let message = read(&store, &killed).await;
    assert_eq!(
        (message.parts.as_slice(), message.answer.finish),
        (&parts[..], Some(Finish::Error))
    );
    assert_eq!(message.answer.tier.as_deref(), Some("fast"));
    assert_eq!(shown(&store.chat(&empty).await.unwrap()), ["How?"]);

    store.delete_chat(&killed).await.unwrap();
    let late = text_parts("late".to_owned());
    let appended = store.append_answer(&killed, late, AnswerFacts::default());
    appended.await.unwrap();
}

#[tokio::test]
async fn the_answer_of_a_deleted_chat_is_not_written() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = chat(&store).await;
    let opened = store.open_turn(&id, turn("a", "?")).await.unwrap();
    store.delete_chat(&id).await.unwrap();
    // Opening the file erases what was deleted long ago.
    fixture.set_deleted_at("2000-01-01T00:00:00.000000Z");
    let _other = fixture.store();
    // Another turn's answer gets its number.
    let other = chat(&store).await;
    let begun = store.open_turn(&other, turn("b", "?")).await.unwrap();
    assert_eq!(begun.answer, opened.answer);
    let parts = text_parts("late".to_owned());
    let written = store.write_answer("a", parts, AnswerFacts::default()).await;
    assert_eq!(written.unwrap(), None);
    store.discard_answer("a", None).await.unwrap();
    let chat = store.chat(&other).await.unwrap();
    assert_eq!(chat.messages.len(), 2);
    assert_eq!(chat.messages[1].text(), "");
}

/// The database of the version before messages had parts: `tests/fixtures/data-2026-11`.
#[tokio::test]
async fn a_database_of_november_2026_opens_unchanged() {
    let fixture = Fixture::of_november_2026();
    let store = fixture.store();
    let chats = all_chats(&store).await;
    let titles: Vec<_> = chats.iter().map(|chat| chat.title.as_str()).collect();
    assert_eq!(
        titles,
        ["", "A title of my own", "What is the capital of France?"]
    );

    let empty = store.chat(&chats[0].id).await.unwrap();
    assert_eq!((empty.leaf, empty.messages.len()), (None, 0));

    let titled = store.chat(&chats[1].id).await.unwrap();
    assert_eq!(titled.summary.model, "heavy");
    assert_eq!(
        shown(&titled),
        ["Answer in one word.", "Name a colour.", "Bl"]
    );
    let roles: Vec<_> = titled.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant]);
    assert_eq!(titled.messages[2].answer.finish, Some(Finish::Error));

    let chat = store.chat(&chats[2].id).await.unwrap();
    let italy = "And of Italy?\nÜber \"Rom\": 永遠の都 🏛";
    let shown = shown(&chat);
    assert_eq!(
        shown,
        [
            "What is the capital of France?",
            "The capital of France is Paris.",
            italy,
            "Rome"
        ]
    );
    let [question, first, second, ..] = &chat.messages[..] else {
        panic!("{chat:?}");
    };
    assert_eq!(
        (first.parent, second.parent),
        (Some(question.id), Some(question.id))
    );
    assert_eq!(
        first.parts,
        [Part::Text {
            text: "Paris is the capital of France.".into()
        }]
    );
    let facts = &first.answer;
    assert_eq!(facts.tier.as_deref(), Some("fast"));
    assert_eq!(facts.model.as_deref(), Some("SmolLM2-135M-Instruct.Q4_1"));
    assert_eq!(facts.finish, Some(Finish::Stop));
    assert_eq!(facts.decode_tokens_per_second, Some(61.5));
    assert_eq!(facts.time_to_first_token_ms, Some(412.0));
    assert_eq!(second.answer.finish, Some(Finish::Length));
    assert_eq!(chat.messages[4].answer.finish, Some(Finish::Stopped));

    let keys = store.keys().await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(
        store
            .entries(None, Filter::default(), 10)
            .await
            .unwrap()
            .len(),
        3
    );
}
