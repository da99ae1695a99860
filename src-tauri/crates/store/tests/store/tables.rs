//! The store through its public face, on real files.

use crate::support::{Fixture, all_chats};
use std::fs;
use tierbar_chats::{
    AnswerDeviation, AnswerFacts, AnswerTimes, Attachment, ExpertReads, Finish, Part, Role,
    Speculation,
    context::{ContextOmission, ContextUse, WhenFull},
};
use tierbar_core::{
    Code,
    history::{Point, Spread},
    status::Pressure,
};
use tierbar_store::{ChatFields, ChatPage, NewMessage, Store};

fn message(role: Role, content: impl Into<String>) -> NewMessage {
    NewMessage {
        role,
        content: content.into(),
        parts: Vec::new(),
        answer: AnswerFacts::default(),
    }
}

fn user(content: impl Into<String>) -> NewMessage {
    message(Role::User, content)
}

fn titled(title: &str) -> ChatFields {
    ChatFields {
        title: Some(title.to_owned()),
        ..ChatFields::default()
    }
}

#[tokio::test]
async fn a_chat_reads_back_whole_after_reopening() {
    let fixture = Fixture::new();
    let answer = NewMessage {
        answer: AnswerFacts {
            tier: Some("fast".into()),
            model: Some("SmolLM2-135M-Instruct.Q4_1".into()),
            why: Some("it is short".into()),
            instead_of: Some("cloud".into()),
            finish: Some(Finish::Length),
            decode_tokens_per_second: Some(41.25),
            time_to_first_token_ms: Some(180.5),
            times: Some(AnswerTimes {
                load_ms: Some(100.0),
                prefill_ms: Some(80.5),
                decode_ms: Some(970.0),
                thinking_ms: None,
                speculation: Some(Speculation {
                    drafted: 8,
                    accepted: 6,
                    by_model: 0,
                    saved_ms: 40.5,
                    rested: true,
                }),
            }),
            experts: Some(ExpertReads {
                hit_rate: 0.75,
                read_bytes: 4096,
                wait_ms: Some(1.5),
                tokens: 8,
                layers: false,
                approximated: Some(AnswerDeviation {
                    changed: 0.25,
                    lost_weight: None,
                }),
            }),
            context: Some(ContextUse {
                prompt_tokens: 400,
                answer_tokens: 40,
                context_tokens: 512,
            }),
            left_out: Some(ContextOmission {
                messages: 6,
                through: 6,
                summary: Some("They spoke of Paris.".into()),
                fallback: true,
            }),
            grade: None,
            failure: None,
        },
        ..message(Role::Assistant, "Paris.")
    };
    let id = {
        let store = fixture.store();
        let fields = ChatFields {
            when_full: Some(WhenFull::Drop),
            ..ChatFields::default()
        };
        let chat = store.create_chat(fields).await.unwrap();
        assert_eq!((chat.title.as_str(), chat.model.as_str()), ("", "auto"));
        assert_eq!(chat.created_at, chat.updated_at);
        store
            .add_message(&chat.id, message(Role::System, "Be brief."))
            .await
            .unwrap();
        store
            .add_message(&chat.id, user("What is the capital of France?"))
            .await
            .unwrap();
        store.add_message(&chat.id, answer.clone()).await.unwrap();
        chat.id
    };
    let chat = fixture.store().chat(&id).await.unwrap();
    assert_eq!(chat.summary.title, "What is the capital of France?");
    assert_eq!(chat.summary.when_full, WhenFull::Drop);
    let read: Vec<_> = chat
        .messages
        .iter()
        .map(|message| NewMessage {
            role: message.role,
            content: message.text(),
            parts: Vec::new(),
            answer: message.answer.clone(),
        })
        .collect();
    let written = [
        message(Role::System, "Be brief."),
        user("What is the capital of France?"),
        answer,
    ];
    assert_eq!(read, written);
    let ids: Vec<_> = chat.messages.iter().map(|message| message.id).collect();
    let parents: Vec<_> = chat.messages.iter().map(|message| message.parent).collect();
    assert_eq!(parents, [None, Some(ids[0]), Some(ids[1])]);
    assert_eq!(chat.leaf, Some(ids[2]));
    assert!(
        chat.summary.updated_at > chat.summary.created_at,
        "{:?}",
        chat.summary
    );
}

#[tokio::test]
async fn a_message_keeps_its_calls_of_tools() {
    let store = Fixture::new().store();
    let id = store.create_chat(ChatFields::default()).await.unwrap().id;
    let parts = vec![
        Part::ToolCall {
            id: "1".into(),
            name: "search".into(),
            arguments: "{}".into(),
        },
        Part::ToolResult {
            id: "1".into(),
            text: "no network".into(),
            failed: true,
        },
    ];
    let answer = NewMessage {
        parts: parts.clone(),
        ..message(Role::Assistant, "I do not know.")
    };
    store.add_message(&id, answer).await.unwrap();
    let read = store.chat(&id).await.unwrap().messages.remove(0);
    assert_eq!(read.parts[..2], parts);
    assert_eq!(read.text(), "I do not know.");

    let file = Attachment {
        sha256: "ab".into(),
        media_type: "text/plain".into(),
        name: "a.txt".into(),
        bytes: 1,
    };
    let with_file = NewMessage {
        parts: vec![Part::File { file }],
        ..user("?")
    };
    let error = store.add_message(&id, with_file).await.unwrap_err();
    assert_eq!(error.code, Code::BadRequest);
    assert_eq!(store.chat(&id).await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn times_are_rfc_3339_in_utc_and_ids_are_random_uuids() {
    let chat = Fixture::new()
        .store()
        .create_chat(ChatFields::default())
        .await
        .unwrap();
    let made: jiff::Timestamp = chat.created_at.parse().unwrap();
    assert!(chat.created_at.ends_with('Z'), "{}", chat.created_at);
    assert!(jiff::Timestamp::now().duration_since(made).as_secs() < 600);
    assert_eq!(
        uuid::Uuid::parse_str(&chat.id).unwrap().get_version_num(),
        4
    );
}

#[tokio::test]
async fn the_last_changed_chat_is_listed_first() {
    let store = Fixture::new().store();
    let mut ids = Vec::new();
    for title in ["first", "second", "third"] {
        ids.push(store.create_chat(titled(title)).await.unwrap().id);
    }
    let titles = async || -> Vec<String> {
        all_chats(&store)
            .await
            .into_iter()
            .map(|chat| chat.title)
            .collect()
    };
    assert_eq!(titles().await, ["third", "second", "first"]);
    store.add_message(&ids[0], user("again")).await.unwrap();
    assert_eq!(titles().await, ["first", "third", "second"]);
}

#[tokio::test]
async fn only_an_untitled_chat_is_titled_and_only_once() {
    let store = Fixture::new().store();
    let named = store.create_chat(titled("Mine")).await.unwrap();
    assert_eq!(
        store
            .add_message(&named.id, user("Something else"))
            .await
            .unwrap()
            .title,
        "Mine"
    );

    let untitled = store.create_chat(ChatFields::default()).await.unwrap();
    assert_eq!(
        store
            .add_message(&untitled.id, user("  \n "))
            .await
            .unwrap()
            .title,
        ""
    );
    assert_eq!(
        store
            .add_message(&untitled.id, message(Role::Assistant, "Hello"))
            .await
            .unwrap()
            .title,
        ""
    );
    assert_eq!(
        store
            .add_message(&untitled.id, user("One\ntwo"))
            .await
            .unwrap()
            .title,
        "One"
    );
    assert_eq!(
        store
            .add_message(&untitled.id, user("Three"))
            .await
            .unwrap()
            .title,
        "One"
    );
}

#[tokio::test]
async fn an_update_sets_only_what_is_given() {
    let store = Fixture::new().store();
    let id = store.create_chat(titled("Old")).await.unwrap().id;
    let chat = store.update_chat(&id, titled("  New \n")).await.unwrap();
    assert_eq!((chat.title.as_str(), chat.model.as_str()), ("New", "auto"));
    let model = ChatFields {
        model: Some("heavy".into()),
        ..ChatFields::default()
    };
    let chat = store.update_chat(&id, model).await.unwrap();
    assert_eq!((chat.title.as_str(), chat.model.as_str()), ("New", "heavy"));
    assert_eq!(store.chat(&id).await.unwrap().summary, chat);
}

#[tokio::test]
async fn fields_out_of_bounds_are_refused_and_change_nothing() {
    let store = Fixture::new().store();
    let id = store.create_chat(titled("Kept")).await.unwrap().id;
    for wrong in [
        titled(&"a".repeat(501)),
        ChatFields {
            model: Some(" ".into()),
            ..ChatFields::default()
        },
        ChatFields {
            model: Some("m".repeat(501)),
            ..ChatFields::default()
        },
    ] {
        assert_eq!(
            store
                .update_chat(&id, wrong.clone())
                .await
                .unwrap_err()
                .code,
            Code::BadRequest
        );
        assert_eq!(
            store.create_chat(wrong).await.unwrap_err().code,
            Code::BadRequest
        );
    }
    let chats = all_chats(&store).await;
    assert_eq!(chats.len(), 1);
    assert_eq!(chats[0].title, "Kept");
}

#[tokio::test]
async fn a_chat_that_does_not_exist_is_not_found() {
    let store = Fixture::new().store();
    for id in [
        "",
        "nope",
        "' OR 1=1 --",
        "00000000-0000-4000-8000-000000000000",
    ] {
        assert_eq!(store.chat(id).await.unwrap_err().code, Code::NotFound);
        assert_eq!(
            store.update_chat(id, titled("x")).await.unwrap_err().code,
            Code::NotFound
        );
        assert_eq!(
            store.delete_chat(id).await.unwrap_err().code,
            Code::NotFound
        );
        assert_eq!(
            store.add_message(id, user("x")).await.unwrap_err().code,
            Code::NotFound
        );
    }
    assert_eq!(all_chats(&store).await, []);
}

#[tokio::test]
async fn a_deleted_chats_text_is_gone_from_the_file() {
    let fixture = Fixture::new();
    let secret = "the treasure is under the third oak";
    let id = {
        let store = fixture.store();
        let kept = store.create_chat(titled("kept")).await.unwrap().id;
        store
            .add_message(&kept, user("plain talk of acorns"))
            .await
            .unwrap();
        let id = store.create_chat(ChatFields::default()).await.unwrap().id;
        store.add_message(&id, user(secret)).await.unwrap();
        store.delete_chat(&id).await.unwrap();
        assert_eq!(store.chat(&id).await.unwrap_err().code, Code::NotFound);
        id
    };
    // A start after the ten minutes erases what was deleted.
    fixture.set_deleted_at("2000-01-01T00:00:00.000000Z");
    let restored = fixture.store().restore_chat(&id).await;
    assert_eq!(restored.unwrap_err().code, Code::NotFound);
    let file = fs::read(fixture.path()).unwrap();
    let contains = |text: &str| {
        file.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(contains("plain talk of acorns"));
    assert!(!contains(secret));
    // Nor do the words stay in the index of the search.
    assert!(!contains("treasure"));
}

#[tokio::test]
async fn a_deleted_chat_can_be_restored_after_a_restart() {
    let fixture = Fixture::new();
    let delete = async || {
        let store = fixture.store();
        let id = store.create_chat(titled("Oak")).await.unwrap().id;
        store.delete_chat(&id).await.unwrap();
        id
    };
    let id = delete().await;
    let restored = fixture.store().restore_chat(&id).await.unwrap();
    assert_eq!(restored.id, id);
    // Deleted before the clock was set back.
    let id = delete().await;
    fixture.set_deleted_at("2999-01-01T00:00:00.000000Z");
    let restored = fixture.store().restore_chat(&id).await;
    assert_eq!(restored.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_deleted_chat_is_hidden_until_it_is_restored() {
    let store = Fixture::new().store();
    let id = store.create_chat(titled("Oak")).await.unwrap().id;
    store.add_message(&id, user("acorns")).await.unwrap();
    let before = store.chat(&id).await.unwrap();
    store.delete_chat(&id).await.unwrap();
    assert_eq!(all_chats(&store).await, []);
    assert_eq!(store.search_chats("oak").await.unwrap(), []);
    assert_eq!(
        store.delete_chat(&id).await.unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(
        store.add_message(&id, user("x")).await.unwrap_err().code,
        Code::NotFound
    );
    // It can still be restored.
    store.erase_deleted_chats().await.unwrap();
    assert_eq!(store.restore_chat(&id).await.unwrap(), before.summary);
    assert_eq!(store.chat(&id).await.unwrap(), before);
    assert_eq!(store.search_chats("oak").await.unwrap().len(), 1);
    let error = store.restore_chat("nope").await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.hint.unwrap().contains("10 minutes"));
}

#[tokio::test]
async fn pinned_chats_are_listed_first() {
    let store = Fixture::new().store();
    let mut ids = Vec::new();
    for title in ["first", "second", "third"] {
        ids.push(store.create_chat(titled(title)).await.unwrap().id);
    }
    let pin = |pinned| ChatFields {
        pinned: Some(pinned),
        ..ChatFields::default()
    };
    let titles = async || -> Vec<String> {
        let chats = all_chats(&store).await.into_iter();
        chats.map(|chat| chat.title).collect()
    };
    let before = store.chat(&ids[0]).await.unwrap().summary;
    let pinned = store.update_chat(&ids[0], pin(true)).await.unwrap();
    assert!(pinned.pinned);
    assert_eq!(pinned.updated_at, before.updated_at);
    assert_eq!(titles().await, ["first", "third", "second"]);
    store.update_chat(&ids[0], pin(false)).await.unwrap();
    assert_eq!(titles().await, ["third", "second", "first"]);
}

#[tokio::test]
async fn a_search_finds_words_in_titles_and_messages() {
    let store = Fixture::new().store();
    let first = store.create_chat(titled("Rivers")).await.unwrap().id;
    let text = "A long answer about other things. ".repeat(9);
    for content in [
        format!("{text}The Rhône flows through Genève. {text}"),
        "It\u{0}ends.".to_owned(),
    ] {
        let answer = message(Role::Assistant, content);
        store.add_message(&first, answer).await.unwrap();
    }
    let second = store.create_chat(titled("Geneva")).await.unwrap().id;
    store.add_message(&second, user("???")).await.unwrap();
    let found = async |words: &str| -> Vec<String> {
        let found = store.search_chats(words).await.unwrap().into_iter();
        found.map(|chat| chat.title).collect()
    };
    assert_eq!(found("genev").await, ["Geneva", "Rivers"]);
    assert_eq!(found("RHONE geneve").await, ["Rivers"]);
    assert_eq!(found("\"rhone\" OR").await, [""; 0]);
    assert_eq!(found("rhon geneve").await, [""; 0]);
    assert_eq!(found(" ?? ").await, [""; 0]);

    let hit = store.search_chats("rhone").await.unwrap().remove(0);
    let hit = hit.found.unwrap();
    assert!(hit.excerpt.contains("The Rhône flows"), "{}", hit.excerpt);
    assert!(hit.excerpt.chars().count() < 200, "{}", hit.excerpt);
    let messages = store.chat(&first).await.unwrap().messages;
    assert_eq!(hit.message, Some(messages[0].id));

    store.update_chat(&first, titled("Streams")).await.unwrap();
    assert_eq!(found("rivers").await, [""; 0]);
    assert_eq!(found("streams").await, ["Streams"]);
}

#[tokio::test]
async fn a_search_finds_chinese_japanese_and_korean() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let japanese = store.create_chat(titled("Tokyo")).await.unwrap().id;
    let long = "これは長い文章です。".repeat(20);
    let text = format!("{long}東京towerは高いです。{long}");
    let answer = store.add_message(&japanese, message(Role::Assistant, text));
    answer.await.unwrap();
    for (title, text) in [("Seoul", "한국어를 배우고 있습니다"), ("河流", "Rivers")] {
        let chat = store.create_chat(titled(title)).await.unwrap().id;
        store.add_message(&chat, user(text)).await.unwrap();
    }
    let found = async |store: &Store, words: &str| -> Vec<String> {
        let found = store.search_chats(words).await.unwrap().into_iter();
        found.map(|chat| chat.title).collect()
    };
    for (words, title) in [
        ("高", "Tokyo"),
        ("東京", "Tokyo"),
        ("高い 文章", "Tokyo"),
        ("京tow", "Tokyo"),
        ("TOWER", "Tokyo"),
        ("한국", "Seoul"),
        ("배우고", "Seoul"),
        ("流", "河流"),
    ] {
        assert_eq!(found(&store, words).await, [title], "{words}");
    }
    for none in ["京東", "東京 大阪", "국한", "%", "_"] {
        assert_eq!(found(&store, none).await, [""; 0], "{none}");
    }
    let hit = store.search_chats("東京").await.unwrap().remove(0);
    let excerpt = hit.found.unwrap().excerpt;
    assert!(excerpt.contains("東京towerは高い"), "{excerpt}");
    assert!(excerpt.chars().count() < 200, "{excerpt}");

    // The index of a database that has none yet.
    drop(store);
    rusqlite::Connection::open(fixture.path())
        .unwrap()
        .execute_batch(
            "DROP TABLE agent_files; DROP TABLE agent_grants; DROP TABLE ledger; DROP TABLE grades;
             DROP TABLE passages_to_index; DROP TABLE passage_characters; DROP TRIGGER passage_characters_removed;
             DROP TRIGGER passage_added; DROP TRIGGER passage_removed; DROP TABLE passage_words; DROP TABLE document_vectors;
             DROP TABLE document_sketches; DROP TABLE files_to_sketch; DROP TABLE document_passages; DROP TABLE document_files;
             DROP TABLE document_sources; DROP TABLE removed_passages;
             DROP TABLE messages_to_index; DROP TABLE message_characters; DROP TRIGGER message_characters_rewritten;
             DROP TRIGGER message_characters_removed; DROP INDEX chats_listed; ALTER TABLE messages DROP COLUMN times;
             ALTER TABLE messages DROP COLUMN failure;
             PRAGMA user_version = 15;",
        )
        .unwrap();
    let store = fixture.store();
    assert_eq!(found(&store, "東京").await, ["Tokyo"]);
    store.delete_chat(&japanese).await.unwrap();
    drop(store);
    fixture.set_deleted_at("2000-01-01T00:00:00.000000Z");
    assert_eq!(found(&fixture.store(), "東京").await, [""; 0]);
}

#[tokio::test]
async fn chats_are_listed_in_pages() {
    let store = Fixture::new().store();
    let mut ids = Vec::new();
    for count in 0..5 {
        ids.push(
            store
                .create_chat(titled(&count.to_string()))
                .await
                .unwrap()
                .id,
        );
    }
    let pin = ChatFields {
        pinned: Some(true),
        ..ChatFields::default()
    };
    store.update_chat(&ids[1], pin).await.unwrap();
    let page = async |before: Option<&str>, limit| -> String {
        let page = ChatPage {
            before: before.map(str::to_owned),
            limit: Some(limit),
        };
        let (chats, total) = store.list_page(page).await.unwrap();
        assert_eq!(total, 5);
        chats.into_iter().map(|chat| chat.title).collect()
    };
    assert_eq!(page(None, 2).await, "14");
    assert_eq!(page(Some(ids[4].as_str()), 2).await, "32");
    assert_eq!(page(Some(ids[2].as_str()), 9).await, "0");
    assert_eq!(page(Some(ids[0].as_str()), 9).await, "");
    // A page may begin after a chat that was deleted meanwhile.
    store.delete_chat(&ids[4]).await.unwrap();
    let after = ChatPage {
        before: Some(ids[4].clone()),
        limit: None,
    };
    let (rest, total) = store.list_page(after).await.unwrap();
    assert_eq!((rest.len(), total), (3, 4));
    let unknown = ChatPage {
        before: Some("nope".into()),
        limit: None,
    };
    let error = store.list_page(unknown).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[tokio::test]
async fn chats_of_an_older_version_are_searched_too() {
    let store = Fixture::of_november_2026().store();
    let found = store.search_chats("capital").await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].found.as_ref().unwrap().message.is_some());
    assert_eq!(store.search_chats("my own").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_adds_lose_nothing_and_keep_each_writers_order() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let id = store.create_chat(ChatFields::default()).await.unwrap().id;
    // Two handles on one file, as when a second program opens it.
    let handles = [store.clone(), fixture.store()];
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, id) = (handles[writer % 2].clone(), id.clone());
            tokio::spawn(async move {
                for count in 0..20 {
                    let text = format!("{writer} {count}");
                    // On a slow disk the other handle may have the file for longer than is waited for: then nothing was added.
                    while let Err(error) = store.add_message(&id, user(text.clone())).await {
                        assert!(error.message.contains("locked"), "{error}");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let messages = store.chat(&id).await.unwrap().messages;
    assert_eq!(messages.len(), 160);
    for writer in 0..8 {
        let prefix = format!("{writer} ");
        let counts: Vec<usize> = messages
            .iter()
            .filter_map(|message| message.text().strip_prefix(&prefix)?.parse().ok())
            .collect();
        assert_eq!(counts, (0..20).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn large_and_unusual_texts_read_back_unchanged() {
    let store = Fixture::new().store();
    let id = store.create_chat(ChatFields::default()).await.unwrap().id;
    let texts = [
        "x".repeat(10 << 20),
        "line\r\nline\u{2028}\u{0}after nul".to_owned(),
        "👩‍👩‍👧‍👦 e\u{301} \u{202e}rtl العربية 日本語 \u{10ffff}".to_owned(),
        String::new(),
    ];
    for text in &texts {
        store.add_message(&id, user(text)).await.unwrap();
    }
    let chat = store.chat(&id).await.unwrap();
    let read: Vec<_> = chat.messages.iter().map(|message| message.text()).collect();
    assert!(read == texts);
    assert_eq!(chat.summary.title, "x".repeat(60));
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_kept() {
    let fixture = Fixture::new();
    let text = "Dear diary, this is not a database. ".repeat(100);
    fs::write(fixture.path(), &text).unwrap();
    let error = Store::open(&fixture.path()).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(
        error.message.contains(fixture.path().to_str().unwrap()),
        "{error}"
    );
    assert!(error.message.contains("damaged"), "{error}");
    assert!(error.hint.is_some());
    assert_eq!(fs::read_to_string(fixture.path()).unwrap(), text);
}

#[tokio::test]
async fn a_damaged_page_is_an_error_when_read() {
    let fixture = Fixture::new();
    let id = {
        let store = fixture.store();
        let id = store.create_chat(ChatFields::default()).await.unwrap().id;
        for _ in 0..150 {
            store
                .add_message(&id, user("word ".repeat(500)))
                .await
                .unwrap();
        }
        id
    };
    // The later half, far behind the pages of the header and the schema, has the messages.
    let mut file = fs::read(fixture.path()).unwrap();
    let half = file.len() / 2 / 4096 * 4096;
    file[half..].fill(0x5a);
    fs::write(fixture.path(), file).unwrap();
    let error = fixture.store().chat(&id).await.unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(error.message.contains("damaged"), "{error}");
}

#[test]
fn a_newer_schema_is_refused_and_unchanged() {
    let fixture = Fixture::new();
    let newer = rusqlite::Connection::open(fixture.path()).unwrap();
    newer
        .execute_batch("CREATE TABLE plans (id TEXT); PRAGMA user_version = 99;")
        .unwrap();
    newer.close().unwrap();
    let before = fs::read(fixture.path()).unwrap();
    let error = Store::open(&fixture.path()).unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(
        error
            .message
            .contains("newer Tierbar (schema 99; this one knows 29)"),
        "{error}"
    );
    assert_eq!(fs::read(fixture.path()).unwrap(), before);
}

#[test]
fn an_unusable_path_is_an_error() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path();
    fs::write(folder.join("file"), "").unwrap();
    for place in [
        folder.to_owned(),
        folder.join("missing/tierbar.db"),
        folder.join("file/tierbar.db"),
    ] {
        let error = Store::open(&place).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains(place.to_str().unwrap()), "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn only_the_user_may_read_the_chats() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let _store = fixture.store();
    for file in fs::read_dir(fixture.folder.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{:?}",
            file.path()
        );
    }
}

fn minute(at: u64, samples: u32, swap: f64) -> Point {
    Point {
        at,
        samples,
        swap_used_bytes: Some(Spread {
            mean: swap,
            max: swap,
        }),
        ..Point::default()
    }
}

fn ats(points: &[Point]) -> Vec<u64> {
    points.iter().map(|point| point.at).collect()
}

#[tokio::test]
async fn a_minute_reads_back_whole_after_reopening() {
    let fixture = Fixture::new();
    let spread = |mean| {
        Some(Spread {
            mean,
            max: mean + 0.5,
        })
    };
    let whole = Point {
        at: 1_800_000_000,
        samples: 60,
        pressure: Some(Pressure::Warning),
        ram_total_bytes: Some(16 << 30),
        ram_used_bytes: spread(1.25),
        swap_used_bytes: spread(2.25),
        disk_read_bytes_per_second: spread(6.25),
        models_bytes: spread(8.25),
        decode_tokens_per_second: spread(9.25),
    };
    let unknown = Point {
        at: whole.at + 60,
        samples: 1,
        ..Point::default()
    };
    for minute in [&unknown, &whole] {
        fixture.store().add_minute(minute.clone()).await.unwrap();
    }
    let read = fixture.store().minutes(whole.at, u64::MAX).await.unwrap();
    assert_eq!(read, [whole.clone(), unknown]);
    // From the first on, up to the last without it.
    let store = fixture.store();
    assert_eq!(
        store.minutes(whole.at, whole.at + 60).await.unwrap().len(),
        1
    );
    assert_eq!(
        store.minutes(whole.at + 1, whole.at + 60).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn a_minute_added_twice_is_merged() {
    let store = Fixture::new().store();
    store.add_minute(minute(600, 30, 10.0)).await.unwrap();
    store.add_minute(minute(600, 10, 50.0)).await.unwrap();
    let read = store.minutes(0, u64::MAX).await.unwrap();
    assert_eq!((read.len(), read[0].samples), (1, 40));
    let swap = read[0].swap_used_bytes.unwrap();
    assert_eq!((swap.mean, swap.max), (20.0, 50.0));
}

#[tokio::test]
async fn minutes_are_kept_for_thirty_days() {
    const DAY: u64 = 24 * 3600;
    let store = Fixture::new().store();
    let first = 60 * 1_000_000;
    store.add_minute(minute(first, 1, 1.0)).await.unwrap();
    store.add_minute(minute(first + 60, 1, 1.0)).await.unwrap();
    store
        .add_minute(minute(first + 30 * DAY, 1, 1.0))
        .await
        .unwrap();
    assert_eq!(store.minutes(0, u64::MAX).await.unwrap().len(), 3);
    store
        .add_minute(minute(first + 30 * DAY + 60, 1, 1.0))
        .await
        .unwrap();
    let left = ats(&store.minutes(0, u64::MAX).await.unwrap());
    assert_eq!(left, [first + 60, first + 30 * DAY, first + 30 * DAY + 60]);
}

#[tokio::test]
async fn a_clock_briefly_ahead_deletes_no_minutes() {
    let store = Fixture::new().store();
    for count in 0..100 {
        store.add_minute(minute(count * 60, 1, 1.0)).await.unwrap();
    }
    let year = 365 * 24 * 3600;
    store.add_minute(minute(year, 1, 1.0)).await.unwrap();
    let left = ats(&store.minutes(0, year).await.unwrap());
    assert_eq!((left.len(), left[0]), (40, 60 * 60));
}

#[tokio::test]
async fn a_database_without_minutes_keeps_its_chats() {
    let fixture = Fixture::of_november_2026();
    let before = rusqlite::Connection::open(fixture.path()).unwrap();
    before
        .execute_batch(
            "DROP TABLE log; DROP TABLE jobs; DROP TABLE keys; DROP TABLE savings; DROP TABLE schedules; DROP TABLE minutes; PRAGMA user_version = 1;",
        )
        .unwrap();
    before.close().unwrap();
    let store = fixture.store();
    let chats = all_chats(&store).await;
    assert!(chats.iter().any(|chat| chat.title == "A title of my own"));
    store.add_minute(minute(60, 1, 1.0)).await.unwrap();
    assert_eq!(store.minutes(0, 120).await.unwrap().len(), 1);
}
