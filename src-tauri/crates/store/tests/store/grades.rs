//! Grades of answers.

use crate::support::Fixture;
use tierbar_chats::{AnswerFacts, Finish, text_parts};
use tierbar_core::Code;
use tierbar_routing::{
    Level,
    grade::{Grade, GradeCounts, GradeVerdict},
};
use tierbar_store::{ChatFields, NewTurn, Parent, Store};

fn grade(verdict: GradeVerdict, why: Option<&str>) -> Grade {
    Grade {
        verdict,
        why: why.map(str::to_owned),
    }
}

fn quant(model: &str) -> Option<String> {
    (model == "small-Q4_K_M").then(|| "Q4_K_M".to_owned())
}

/// Has a turn answered at once. Returns the answer's id.
async fn answered(store: &Store, chat: &str, turn: NewTurn, text: &str) -> u64 {
    let id = turn.id.clone();
    let opened = store.open_turn(chat, turn).await.unwrap();
    let facts = AnswerFacts {
        tier: Some("fast".to_owned()),
        model: Some("small-Q4_K_M".to_owned()),
        finish: Some(Finish::Length),
        ..AnswerFacts::default()
    };
    let written = store.write_answer(&id, text_parts(text.to_owned()), facts);
    assert!(written.await.unwrap().is_some());
    opened.answer
}

fn question(id: &str) -> NewTurn {
    NewTurn {
        id: id.to_owned(),
        text: Some("Hello!".to_owned()),
        ..NewTurn::default()
    }
}

fn again(id: &str, answer: u64) -> NewTurn {
    NewTurn {
        id: id.to_owned(),
        parent: Parent::Message(answer),
        ..NewTurn::default()
    }
}

#[tokio::test]
async fn a_grade_belongs_to_its_answer_and_can_be_undone() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let chat = store.create_chat(ChatFields::default()).await.unwrap().id;
    let first = answered(&store, &chat, question("a"), "Hi.").await;
    let second = answered(&store, &chat, again("b", first), "Yes?").await;
    let bad = grade(GradeVerdict::Bad, Some(" Too short. "));
    store.grade(&chat, first, bad, quant).await.unwrap();
    let good = grade(GradeVerdict::Good, None);
    store
        .grade(&chat, second, good.clone(), quant)
        .await
        .unwrap();
    // Also after it has been opened again.
    drop(store);
    let store = fixture.store();
    let grades = |chat: tierbar_chats::Chat| -> Vec<_> {
        let messages = chat.messages.into_iter();
        messages.map(|message| message.answer.grade).collect()
    };
    let trimmed = grade(GradeVerdict::Bad, Some("Too short."));
    assert_eq!(
        grades(store.chat(&chat).await.unwrap()),
        [None, Some(trimmed), Some(good)]
    );
    let groups = store.grade_groups().await.unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].counts, GradeCounts { good: 1, bad: 1 });
    assert_eq!(groups[0].learned, groups[0].counts);
    assert_eq!(groups[0].level, Level::Simple);
    assert_eq!(groups[0].quant.as_deref(), Some("Q4_K_M"));

    store.reset_learned().await.unwrap();
    let groups = store.grade_groups().await.unwrap();
    assert_eq!(groups[0].counts.total(), 2);
    assert_eq!(groups[0].learned, GradeCounts::default());

    store.remove_grade(&chat, first).await.unwrap();
    let left = store.graded_answers().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].message, left[0].text.as_str()), (second, "Yes?"));
    assert_eq!(left[0].prompt, [("user", "Hello!".to_owned())]);

    store.delete_chat(&chat).await.unwrap();
    assert!(store.graded_answers().await.unwrap().is_empty());
    assert!(store.grade_groups().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_carried_on_loses_its_grade() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let chat = store.create_chat(ChatFields::default()).await.unwrap().id;
    let answer = answered(&store, &chat, question("a"), "Once upon").await;
    let bad = grade(GradeVerdict::Bad, None);
    store.grade(&chat, answer, bad, quant).await.unwrap();
    let on = NewTurn {
        continues: true,
        ..again("b", answer)
    };
    store.open_turn(&chat, on).await.unwrap();
    assert!(store.graded_answers().await.unwrap().is_empty());
    let being_written = store.grade(&chat, answer, grade(GradeVerdict::Good, None), quant);
    assert_eq!(being_written.await.unwrap_err().code, Code::BadRequest);
}

#[tokio::test]
async fn only_answers_of_the_chat_can_be_graded() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let chat = store.create_chat(ChatFields::default()).await.unwrap().id;
    let answer = answered(&store, &chat, question("a"), "Hi.").await;
    let other = store.create_chat(ChatFields::default()).await.unwrap().id;
    let good = || grade(GradeVerdict::Good, None);
    for (chat, message, code) in [
        (&chat, answer - 1, Code::BadRequest),
        (&other, answer, Code::NotFound),
        (&chat, u64::MAX, Code::NotFound),
        (&"none".to_owned(), answer, Code::NotFound),
    ] {
        let refused = store.grade(chat, message, good(), quant).await.unwrap_err();
        assert_eq!(refused.code, code, "{message}");
    }
    let refused = store.remove_grade(&other, answer).await.unwrap_err();
    assert_eq!(refused.code, Code::NotFound);
}
