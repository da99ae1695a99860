use crate::{Level, Traits, judge};
use serde_json::{Value, json};

fn traits(text: &str) -> Traits {
    Traits::of(&json!({"messages": [{"role": "user", "content": text}]}))
}

#[test]
fn the_users_last_message_is_the_question() {
    let traits = Traits::of(&json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Prove it."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": [{"type": "text", "text": "thank"}, {"type": "text", "text": "you"}]},
        {"role": "tool", "content": "42"},
    ]}));
    assert_eq!(traits.text, "thank\nyou");
    assert_eq!(traits.earlier, ["Prove it."]);
    assert!(traits.prompt_tokens > 5 * 8);
}

#[test]
fn images_and_enabled_tools_count() {
    let image = json!({"messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]}]});
    let traits = Traits::of(&image);
    assert!(traits.images && !traits.sound && traits.prompt_tokens > 1000);

    let mut tools = json!({"tools": [{"type": "function", "function": {"name": "f"}}]});
    assert!(Traits::of(&tools).tools);
    tools["tool_choice"] = json!("none");
    assert!(!Traits::of(&tools).tools);
    let mut functions = json!({"functions": [{"name": "f"}]});
    let read = Traits::of(&functions);
    assert!(read.tools && read.prompt_tokens > 0, "{read:?}");
    functions["function_call"] = json!("none");
    assert!(!Traits::of(&functions).tools);
}

#[test]
fn a_request_for_thinking_is_recognized_in_all_forms() {
    for thinks in [
        json!({"think": true}),
        json!({"think": "high"}),
        json!({"reasoning_effort": "medium"}),
        json!({"chat_template_kwargs": {"enable_thinking": true}}),
    ] {
        assert!(Traits::of(&thinks).thinks, "{thinks}");
        assert_eq!(judge(&Traits::of(&thinks)).level, Level::Hard);
    }
    for does_not in [
        json!({"think": false}),
        json!({"reasoning_effort": "none"}),
        json!({"reasoning_effort": 3}),
    ] {
        assert!(!Traits::of(&does_not).thinks, "{does_not}");
    }
}

#[test]
fn a_plausible_token_limit_sets_the_expected_length() {
    let answer = |request: Value| Traits::of(&request).answer_tokens;
    assert_eq!(answer(json!({})), 512);
    assert_eq!(answer(json!({"max_tokens": 20})), 20);
    assert_eq!(answer(json!({"max_completion_tokens": 64000})), 2048);
    assert_eq!(answer(json!({"max_tokens": "many"})), 512);
}

#[test]
fn no_content_of_a_request_prevents_reading_it() {
    for odd in [
        json!(null),
        json!([]),
        json!({"messages": "hi"}),
        json!({"messages": [1, null, {"role": 3, "content": {"a": 1}}, {"content": [1, {"text": 2}]}]}),
        json!({"prompt": [[1, 2], "a", null]}),
        json!({"tools": {"a": 1}}),
    ] {
        assert!(judge(&Traits::of(&odd)).level <= Level::Medium, "{odd}");
    }
    assert_eq!(
        Traits::of(&json!({"prompt": ["Hello", " world"]})).text,
        "Hello world"
    );
}

#[test]
fn tokens_are_estimated_by_letters_and_script() {
    let tokens = |text: &str| traits(text).prompt_tokens - 8;
    assert_eq!(tokens("The quick brown fox."), 6);
    assert_eq!(tokens("你好，世界"), 5);
    assert_eq!(tokens("привет"), 4);
}

#[test]
fn keywords_count_only_as_words_near_the_ends() {
    assert_ne!(
        judge(&traits("How could I improve my posture at the desk?")).level,
        Level::Hard
    );
    let filler = "The weather was fine and nothing happened. ".repeat(30);
    let buried = format!("{filler} He tried to prove it. {filler}");
    assert_ne!(judge(&traits(&buried)).level, Level::Hard);
    let at_the_end = format!("{filler}\nProve that he was wrong.");
    assert_eq!(judge(&traits(&at_the_end)).level, Level::Hard);
}

#[test]
fn a_short_reply_has_the_previous_level() {
    let after = |first: &str, then: &[&str]| {
        let mut messages = vec![json!({"role": "user", "content": first})];
        for text in then {
            messages.push(json!({"role": "assistant", "content": "Well."}));
            messages.push(json!({"role": "user", "content": text}));
        }
        judge(&Traits::of(&json!({"messages": messages}))).level
    };
    let proof = "Prove that there are infinitely many primes.";
    assert_eq!(after(proof, &["And of the form 4n + 3?"]), Level::Hard);
    assert_eq!(after(proof, &["go on", "go on"]), Level::Hard);
    assert_eq!(after(proof, &["thanks!"]), Level::Simple);
    assert_eq!(
        after(proof, &["What is the capital of Peru?"]),
        Level::Simple
    );
    assert_eq!(after("hi", &["go on"]), Level::Simple);
}

#[test]
fn a_greeting_does_not_hide_the_question_after_it() {
    let judged = |text: &str, tools: bool| {
        let mut traits = traits(text);
        traits.tools = tools;
        judge(&traits)
    };
    for (text, level) in [
        ("ok, prove it by induction please", Level::Hard),
        ("hey, why does my code deadlock?", Level::Hard),
        ("Hi! Hello, explain tides", Level::Medium),
        ("Thanks, now fix the failing tests", Level::Medium),
        ("hi, how does a fridge work?", Level::Medium),
        ("你好，请证明勾股定理", Level::Medium),
    ] {
        let judged = judged(text, false);
        assert!(judged.level >= level, "{text}: {judged:?}");
    }
    for text in [
        "hi",
        "Hello there!",
        "Hi \u{1f44b}",
        "Thanks a lot, that was helpful",
        "ok, thank you so much!",
        "Hallo, wie geht's?",
        "谢谢你",
        "ありがとうございます",
    ] {
        let judged = judged(text, false);
        assert_eq!((judged.level, judged.sure), (Level::Simple, true), "{text}");
        assert_eq!(judged.because, "it is a greeting", "{text}");
    }
    // With tools, "ok" may be followed by what is to be done with them.
    assert_eq!(judged("hello!", true).level, Level::Simple);
    for text in ["ok, delete it", "thanks, send it", "hi, is it there?"] {
        assert_eq!(judged(text, true).level, Level::Medium, "{text}");
    }
    let many = format!("hi {}", "you are ".repeat(20));
    assert_ne!(judged(&many, false).because, "it is a greeting");
}

#[test]
fn every_reason_is_a_valid_header_value() {
    for text in [
        "hi",
        "prove it",
        "∫",
        "a",
        "explain it",
        &"long ".repeat(30_000),
    ] {
        assert!(judge(&traits(text)).because.is_ascii());
    }
}
