//! Forks, and chats of a file.

use crate::support::{Fixture, all_chats};
use std::collections::{BTreeSet, HashMap};
use tierbar_chats::{
    AnswerFacts, Attachment, Chat, Finish, Part, branch,
    context::{ContextOmission, WhenFull},
    import::{self, Omissions},
    text_parts,
};
use tierbar_core::Code;
use tierbar_store::{ChatFields, ImportedFile, NewAttachment, NewTurn, Store};

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

fn shown(chat: &Chat) -> Vec<String> {
    let branch = branch(&chat.messages, chat.leaf.unwrap());
    branch.into_iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_fork_has_the_branch_up_to_a_message() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let fields = ChatFields {
        title: Some("Rivers".into()),
        model: Some("heavy".into()),
        when_full: Some(WhenFull::Drop),
        pinned: Some(true),
        ..ChatFields::default()
    };
    store.update_chat(&id, fields).await.unwrap();
    let mut answers = Vec::new();
    for (turn_id, question) in [("a", "One?"), ("b", "Two?"), ("c", "Three?")] {
        let opened = store.open_turn(&id, turn(turn_id, question)).await.unwrap();
        let facts = AnswerFacts {
            finish: Some(Finish::Stop),
            left_out: answers.first().map(|first| ContextOmission {
                messages: 2,
                through: *first,
                summary: Some("One.".into()),
                fallback: false,
            }),
            ..AnswerFacts::default()
        };
        let parts = text_parts(format!("{question}!"));
        store.write_answer(turn_id, parts, facts).await.unwrap();
        answers.push(opened.answer);
    }
    let fork = store.fork_chat(&id, answers[1]).await.unwrap();
    assert_eq!(
        (fork.title.as_str(), fork.model.as_str(), fork.when_full),
        ("Rivers", "heavy", WhenFull::Drop)
    );
    assert!(!fork.pinned);
    let copy = store.chat(&fork.id).await.unwrap();
    assert_eq!(shown(&copy), ["One?", "One?!", "Two?", "Two?!"]);
    assert_eq!(copy.leaf, copy.messages.last().map(|message| message.id));
    // A summary names the message of its own chat.
    let left_out = copy.messages[3].answer.left_out.as_ref().unwrap();
    assert_eq!(left_out.through, copy.messages[1].id);
    assert_eq!(store.chat(&id).await.unwrap().messages.len(), 6);

    let unknown = store.fork_chat(&id, 999).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    let unknown = store.fork_chat("nope", 1).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

#[tokio::test]
async fn a_fork_ends_an_answer_that_is_being_written() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let half = store.open_turn(&id, turn("a", "One?")).await.unwrap();
    let pieces = text_parts("Half".to_owned());
    let appended = store.append_answer("a", pieces, AnswerFacts::default());
    appended.await.unwrap();
    let none = store.open_turn(&id, turn("b", "Two?")).await.unwrap();
    for (answer, texts) in [
        (half.answer, ["One?", "Half"].as_slice()),
        (none.answer, ["One?", "Half", "Two?"].as_slice()),
    ] {
        let fork = store.fork_chat(&id, answer).await.unwrap();
        let copy = store.chat(&fork.id).await.unwrap();
        assert_eq!(shown(&copy), texts);
        assert_eq!(copy.messages.len(), texts.len());
        assert_eq!(copy.messages[1].answer.finish, Some(Finish::Stopped));
    }
    let original = store.chat(&id).await.unwrap();
    assert_eq!(original.messages[1].answer.finish, None);
}

#[tokio::test]
async fn an_imported_chat_is_added_once() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "Why?")).await.unwrap();
    let parts = text_parts("So.".to_owned());
    let facts = AnswerFacts {
        finish: Some(Finish::Stop),
        ..AnswerFacts::default()
    };
    store.write_answer("a", parts, facts).await.unwrap();
    let exported = store.chat(&id).await.unwrap();
    let imported = |source: &str| {
        let mut omissions = Omissions::default();
        let json = serde_json::to_vec(&exported).unwrap();
        let mut chat = import::read(&json, &BTreeSet::new(), &mut omissions).unwrap();
        if !source.is_empty() {
            chat.source = source.to_owned();
            chat.created_ms = Some(1_700_000_000_000);
            chat.chat.summary.title = String::new();
        }
        vec![chat]
    };
    let known = store
        .import_chats(imported(""), HashMap::new())
        .await
        .unwrap();
    assert_eq!((known.chats, known.known), (0, 1));
    let added = store
        .import_chats(imported("chatgpt:1"), HashMap::new())
        .await
        .unwrap();
    assert_eq!((added.chats, added.messages, added.known), (1, 2, 0));
    let again = store
        .import_chats(imported("chatgpt:1"), HashMap::new())
        .await
        .unwrap();
    assert_eq!((again.chats, again.known), (0, 1));

    let chats = all_chats(&store).await;
    assert_eq!(chats.len(), 2);
    let copy = chats.iter().find(|chat| chat.id != id).unwrap();
    assert_eq!(copy.title, "Why?");
    assert_eq!(copy.created_at, "2023-11-14T22:13:20.000000Z");
    assert_eq!(shown(&store.chat(&copy.id).await.unwrap()), ["Why?", "So."]);
    // A deleted one comes back with the next import.
    store.delete_chat(&copy.id).await.unwrap();
    let added = store
        .import_chats(imported("chatgpt:1"), HashMap::new())
        .await
        .unwrap();
    assert_eq!(added.chats, 1);
}

#[tokio::test]
async fn an_imported_chat_has_its_files() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    let file = |hash: &str| {
        let file = Attachment {
            sha256: hash.to_owned(),
            media_type: "text/plain".into(),
            name: format!("{hash}.txt"),
            bytes: 3,
        };
        NewAttachment::New {
            part: Part::File { file },
            data: hash.as_bytes().to_vec(),
        }
    };
    let question = NewTurn {
        attachments: vec![file("abc"), file("def")],
        ..turn("a", "Why?")
    };
    store.open_turn(&id, question).await.unwrap();
    let exported = serde_json::to_vec(&store.chat(&id).await.unwrap()).unwrap();
    let both = BTreeSet::from(["abc".to_owned(), "def".to_owned()]);
    let chat = import::read(&exported, &both, &mut Omissions::default()).unwrap();
    // One of them is not in the file after all.
    let abc: ImportedFile = Box::new(|| b"abc".to_vec());
    let files = HashMap::from([("abc".to_owned(), abc)]);
    let elsewhere = Fixture::new().store();
    let added = elsewhere.import_chats(vec![chat], files).await.unwrap();
    assert_eq!(added.chats, 1);
    let copy = all_chats(&elsewhere).await.remove(0);
    let message = elsewhere.chat(&copy.id).await.unwrap().messages.remove(0);
    let names = message.parts.iter().filter_map(Part::file);
    let names: Vec<_> = names.map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["abc.txt"]);
    let hashes = vec!["abc".to_owned(), "def".to_owned()];
    let stored = elsewhere.attachments(hashes).await.unwrap();
    assert_eq!(stored, HashMap::from([("abc".to_owned(), b"abc".to_vec())]));
}

#[tokio::test]
async fn no_imported_chat_is_of_the_future() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "Why?")).await.unwrap();
    let mut exported = store.chat(&id).await.unwrap();
    let before = exported.summary.updated_at.clone();
    exported.summary.updated_at = "9999-01-01T00:00:00.000000Z".into();
    let json = serde_json::to_vec(&exported).unwrap();
    let mut chat = import::read(&json, &BTreeSet::new(), &mut Omissions::default()).unwrap();
    chat.source = String::new();
    chat.created_ms = Some(99_000_000_000_000);
    store
        .import_chats(vec![chat], HashMap::new())
        .await
        .unwrap();
    let chats = all_chats(&store).await;
    let copy = chats.iter().find(|chat| chat.id != id).unwrap();
    for time in [&copy.created_at, &copy.updated_at] {
        assert!(*time >= before && time.as_str() < "9", "{time}");
    }
}

#[tokio::test]
async fn a_chat_larger_than_one_can_be_is_not_imported() {
    let store = Fixture::new().store();
    let id = chat(&store).await;
    store.open_turn(&id, turn("a", "Why?")).await.unwrap();
    let mut exported = store.chat(&id).await.unwrap();
    exported.messages[0].parts = text_parts("x".repeat((16 << 20) + 1));
    let json = serde_json::to_vec(&exported).unwrap();
    let mut chat = import::read(&json, &BTreeSet::new(), &mut Omissions::default()).unwrap();
    chat.source = String::new();
    let added = store
        .import_chats(vec![chat], HashMap::new())
        .await
        .unwrap();
    assert_eq!((added.chats, added.too_large), (0, 1));
}

#[tokio::test]
async fn a_chat_that_went_on_gets_its_new_messages() {
    let store = Fixture::new().store();
    let imported = |texts: &[&str]| {
        let nodes = texts.iter().enumerate().map(|(at, text)| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            let parent = at.checked_sub(1).map(|before| texts[before]);
            let message =
                serde_json::json!({"author": {"role": role}, "content": {"parts": [text]}});
            let node = serde_json::json!({"parent": parent, "message": message});
            ((*text).to_owned(), node)
        });
        let nodes: serde_json::Map<_, _> = nodes.collect();
        let file = serde_json::json!({"title": "T", "conversation_id": "1", "mapping": nodes, "current_node": texts.last()});
        let json = serde_json::to_vec(&file).unwrap();
        vec![import::read(&json, &BTreeSet::new(), &mut Omissions::default()).unwrap()]
    };
    let import =
        |texts: &'static [&'static str]| store.import_chats(imported(texts), HashMap::new());
    let added = import(&["a", "b"]).await.unwrap();
    assert_eq!((added.chats, added.messages), (1, 2));
    for messages in [2, 0] {
        let added = import(&["a", "b", "c", "d"]).await.unwrap();
        assert_eq!((added.chats, added.known, added.messages), (0, 1, messages));
    }
    let id = all_chats(&store).await.remove(0).id;
    assert_eq!(shown(&store.chat(&id).await.unwrap()), ["a", "b", "c", "d"]);
    // What was asked here stays shown.
    store.open_turn(&id, turn("t", "Here?")).await.unwrap();
    assert_eq!(
        import(&["a", "b", "c", "d", "e"]).await.unwrap().messages,
        1
    );
    let chat = store.chat(&id).await.unwrap();
    assert_eq!(shown(&chat)[..5], ["a", "b", "c", "d", "Here?"]);
    assert_eq!(chat.messages.len(), 7);
    // Read in another way than the one that is here.
    assert_eq!(import(&["[image]", "b"]).await.unwrap().messages, 0);
}
