use super::*;
use crate::{AnswerFacts, text_parts};
use proptest::prelude::*;

fn message(id: u64, role: Role, text: &str) -> ChatMessage {
    ChatMessage {
        id,
        parent: id.checked_sub(1),
        role,
        parts: text_parts(text.to_owned()),
        answer: AnswerFacts::default(),
    }
}

/// A system message, so many questions with answers of 176 bytes (200 with what is around them), and a last question.
fn conversation(exchanges: u64) -> Vec<ChatMessage> {
    let mut messages = vec![message(1, Role::System, &"s".repeat(76))];
    for exchange in 1..=exchanges {
        let text = format!("{exchange}{}", "x".repeat(175));
        messages.push(message(exchange * 2, Role::User, &text));
        messages.push(message(exchange * 2 + 1, Role::Assistant, &text));
    }
    messages.push(message(exchanges * 2 + 2, Role::User, &"?".repeat(76)));
    messages
}

fn excerpt(exchanges: u64) -> Excerpt {
    Excerpt::new(conversation(exchanges), Vec::new())
}

fn firsts(excerpt: &Excerpt) -> String {
    let texts = excerpt.texts();
    texts.filter_map(|(_, text)| text.chars().next()).collect()
}

fn left(messages: u32, through: u64, summary: Option<&str>) -> ContextOmission {
    ContextOmission {
        messages,
        through,
        summary: summary.map(str::to_owned),
        fallback: false,
    }
}

#[test]
fn the_oldest_exchanges_leave_until_the_rest_fits() {
    let mut excerpt = excerpt(4);
    assert_eq!(excerpt.left_out(), None);
    assert_eq!(firsts(&excerpt), "s11223344?");
    // 1800 bytes and as many tokens: two exchanges of 400 have to leave.
    assert_eq!(excerpt.shrink(1800, 1000), Some(1000));
    assert_eq!(firsts(&excerpt), "s3344?");
    assert_eq!(excerpt.left_out(), Some(left(4, 5, None)));
    // Less than an exchange too much: one more leaves all the same.
    assert_eq!(excerpt.shrink(1001, 1000), Some(600));
    assert_eq!(firsts(&excerpt), "s44?");
}

#[test]
fn the_system_message_and_the_last_question_stay() {
    let mut excerpt = excerpt(2);
    assert_eq!(excerpt.shrink(100_000, 10), Some(20_000));
    assert_eq!(firsts(&excerpt), "s?");
    assert!(!excerpt.can_shrink());
    assert_eq!(excerpt.shrink(20_000, 10), None);
    let mut alone = Excerpt::new(vec![message(1, Role::User, "?")], Vec::new());
    assert_eq!(alone.shrink(100_000, 10), None);
    assert_eq!(Excerpt::default().left_out(), None);
}

#[test]
fn after_three_estimates_only_the_last_question_is_left() {
    let mut excerpt = excerpt(9);
    for rest in ["s223344556677889", "s3344556677889", "s44556677889"] {
        excerpt.shrink(1001, 1000);
        assert!(firsts(&excerpt).starts_with(rest), "{}", firsts(&excerpt));
    }
    excerpt.shrink(1001, 1000);
    assert_eq!(firsts(&excerpt), "s?");
}

#[test]
fn what_follows_a_question_leaves_with_it() {
    let mut messages = conversation(0);
    let last = messages.pop().unwrap();
    messages.extend([
        message(2, Role::Assistant, "a greeting"),
        message(3, Role::User, "unanswered"),
        message(4, Role::User, "old"),
        message(5, Role::Assistant, ""),
        message(6, Role::Assistant, "old too"),
        ChatMessage { id: 7, ..last },
    ]);
    let mut excerpt = Excerpt::new(messages, Vec::new());
    assert_eq!(firsts(&excerpt), "sauoo?");
    for (rest, gone) in [
        ("suoo?", left(1, 2, None)),
        ("soo?", left(2, 3, None)),
        ("s?", left(4, 6, None)),
    ] {
        excerpt.shrink(1000, 999);
        assert_eq!(firsts(&excerpt), rest);
        assert_eq!(excerpt.left_out(), Some(gone));
    }
}

#[test]
fn a_prompt_begins_as_the_last_one_and_its_size_is_expected() {
    let mut messages = conversation(4);
    let last = &mut messages[8].answer;
    last.context = Some(ContextUse {
        prompt_tokens: 200,
        answer_tokens: 50,
        context_tokens: 512,
    });
    last.left_out = Some(left(2, 3, None));
    let mut excerpt = Excerpt::new(messages, Vec::new());
    // The prompt of the last answer had 1100 bytes.
    assert_eq!(excerpt.expected_tokens(), Some(200 * 1800 / 1100));
    excerpt.resume();
    assert_eq!(firsts(&excerpt), "s223344?");
    assert_eq!(excerpt.expected_tokens(), Some(200 * 1400 / 1100));
    assert_eq!(super::Excerpt::default().expected_tokens(), None);
}

#[test]
fn a_summary_takes_the_place_of_what_left_and_grows() {
    let mut excerpt = excerpt(3);
    assert_eq!(excerpt.text_to_summarize(), None);
    excerpt.shrink(1400, 1000);
    let text = excerpt.text_to_summarize().unwrap();
    assert!(text.starts_with("User: 1x") && text.contains("\n\nAssistant: 1x"));
    assert!(!text.contains('2') && !text.contains("sss"), "{text}");
    excerpt.set_summary("They spoke of 1.".into(), true);
    assert_eq!(excerpt.text_to_summarize(), None);
    let known = excerpt.left_out().unwrap();
    let by_rule = ContextOmission {
        fallback: true,
        ..left(2, 3, Some("They spoke of 1."))
    };
    assert_eq!(known, by_rule);
    let (_, question) = excerpt.texts().nth(1).unwrap();
    let begins = "Summary of our conversation so far:\n=====\nThey spoke of 1.\n=====\n\n2x";
    assert!(question.starts_with(begins), "{question}");

    let other_branch = left(9, 99, Some("Another chat."));
    let mut next = Excerpt::new(conversation(4), vec![known, other_branch]);
    next.shrink(1800, 1400);
    assert_eq!(next.text_to_summarize(), None, "it is known");
    assert_eq!(next.left_out(), excerpt.left_out());
    next.shrink(1400, 1000);
    let text = next.text_to_summarize().unwrap();
    let begins = "Summary of what came before:\nThey spoke of 1.\n\nUser: 2x";
    assert!(text.starts_with(begins) && !text.contains('3'), "{text}");
}

#[test]
fn what_was_left_out_is_a_sentence() {
    for (messages, summary, sentence) in [
        (1, None, "Answered without the oldest message."),
        (6, None, "Answered without the oldest 6 messages."),
        (1, Some(""), "The oldest message was summarized."),
        (6, Some(""), "The oldest 6 messages were summarized."),
    ] {
        assert_eq!(left(messages, 1, summary).sentence(), sentence);
    }
    let by_rule = ContextOmission {
        fallback: true,
        ..left(6, 1, Some(""))
    };
    let sentence = "The oldest 6 messages were summarized by rule.";
    assert_eq!(by_rule.sentence(), sentence);
}

#[test]
fn a_context_is_nearly_full_from_80_percent() {
    let used = |prompt_tokens, answer_tokens, context_tokens| ContextUse {
        prompt_tokens,
        answer_tokens,
        context_tokens,
    };
    assert_eq!(used(300, 100, 512).percent(), 78);
    assert!(!used(300, 109, 512).is_nearly_full());
    assert!(used(300, 110, 512).is_nearly_full());
    assert!(used(u64::MAX, u64::MAX, 0).is_nearly_full());
}

proptest! {
    #[test]
    fn every_try_is_smaller_and_the_last_has_the_question_alone(
        roles in prop::collection::vec(0u8..3, 0..12),
        tries in prop::collection::vec((0u64..5000, 0u64..5000), 20),
    ) {
        let mut messages: Vec<_> = roles.iter().enumerate().map(|(at, role)| {
            let role = [Role::System, Role::User, Role::Assistant][usize::from(*role)];
            message(at as u64 + 1, role, "text")
        }).collect();
        let system = messages.iter().filter(|message| message.role == Role::System).count();
        messages.push(message(100, Role::User, "last"));
        let mut excerpt = Excerpt::new(messages, Vec::new());
        let (mut count, mut shrunk) = (excerpt.sent().count(), 0);
        for (prompt, target) in tries {
            if excerpt.shrink(prompt, target).is_none() {
                break;
            }
            shrunk += 1;
            let now: Vec<_> = excerpt.texts().collect();
            prop_assert!(now.len() < count);
            prop_assert_eq!(&now.last().unwrap().1, "last");
            prop_assert!(now.len() > system);
            count = now.len();
        }
        prop_assert!(shrunk <= 4);
        prop_assert_eq!(count, system + 1);
    }
}
