//! What an account says of chat templates.

use crate::writer::Gguf;
use tierbar_core::ModelAccount;

fn with(templates: &[(&str, &str)]) -> ModelAccount {
    templates
        .iter()
        .fold(Gguf::model("llama", 1), |file, (key, template)| {
            file.text(key, template)
        })
        .read()
        .unwrap()
}

fn told(template: &str) -> (bool, bool, bool) {
    let account = with(&[("tokenizer.chat_template", template)]);
    (account.chat_template, account.thinking, account.tools)
}

#[test]
fn thinking_and_tools_are_read_from_the_template() {
    let plain =
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + m['content'] }}{% endfor %}";
    assert_eq!(told(plain), (true, false, false));
    let gemma_4 = "{%- if (enable_thinking is defined and enable_thinking) or tools -%}{{ '<|turn>system' }}{% endif %}";
    assert_eq!(told(gemma_4), (true, true, true));
    let qwen_3 = "{% if add_generation_prompt %}{{ '<think>\\n\\n</think>' }}{% endif %}";
    assert_eq!(told(qwen_3), (true, true, false));
    let llama_3 = "{% if not tools is defined %}{% set tools = none %}{% endif %}";
    assert_eq!(told(llama_3), (true, false, true));
}

#[test]
fn an_empty_template_is_none() {
    assert_eq!(told(""), (false, false, false));
    assert!(!with(&[]).chat_template);
    let number = Gguf::model("llama", 1).number("tokenizer.chat_template", 7);
    assert!(!number.read().unwrap().chat_template);
}

#[test]
fn templates_for_a_purpose_count() {
    let account = with(&[
        ("tokenizer.chat_template", "{{ messages }}"),
        ("tokenizer.chat_template.tool_use", "{{ tools }}"),
    ]);
    assert!(account.chat_template && account.tools && !account.thinking);
    let account = with(&[("tokenizer.chat_template.rag", "{{ enable_thinking }}")]);
    assert!(!account.chat_template && account.thinking && !account.tools);
    // No template, though it sounds like one.
    let account = with(&[("tokenizer.chat_templates", "{{ tools }}")]);
    assert!(!account.tools);
}

#[test]
fn a_template_is_searched_to_a_mebibyte_and_counts_at_any_length() {
    let mebibyte = 1 << 20;
    let marker = "{{ enable_thinking }}";
    let padded =
        |padding: usize| format!("{}{marker}{}", "x".repeat(padding), "x".repeat(mebibyte));
    assert_eq!(told(&padded(100_000)), (true, true, false));
    assert_eq!(told(&padded(mebibyte - marker.len())), (true, true, false));
    assert_eq!(told(&padded(mebibyte)), (true, false, false));
    // What follows it is still read in its place.
    let account = Gguf::model("llama", 1)
        .text("tokenizer.chat_template", &padded(mebibyte))
        .text("general.name", "Behind")
        .read()
        .unwrap();
    assert_eq!(account.name.as_deref(), Some("Behind"));
}

#[test]
fn a_template_that_is_no_utf_8_is_searched_all_the_same() {
    let text = b"\xff\xfe{% if tools %}";
    let value = [&(text.len() as u64).to_le_bytes()[..], text].concat();
    let account = Gguf::model("llama", 1)
        .pair("tokenizer.chat_template", 8, &value)
        .read()
        .unwrap();
    assert!(account.chat_template && account.tools);
}
