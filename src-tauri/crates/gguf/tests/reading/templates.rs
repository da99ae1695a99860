//! Chat templates in an account.

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

fn detect(template: &str) -> (bool, bool, bool) {
    let account = with(&[("tokenizer.chat_template", template)]);
    (account.chat_template, account.thinking, account.tools)
}

#[test]
fn thinking_and_tools_are_read_from_the_template() {
    let plain =
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + m['content'] }}{% endfor %}";
    assert_eq!(detect(plain), (true, false, false));
    let gemma_4 = "{%- if (enable_thinking is defined and enable_thinking) or tools -%}{{ '<|turn>system' }}{% endif %}";
    assert_eq!(detect(gemma_4), (true, true, true));
    let qwen_3 = "{% if add_generation_prompt %}{{ '<think>\\n\\n</think>' }}{% endif %}";
    assert_eq!(detect(qwen_3), (true, true, false));
    let llama_3 = "{% if not tools is defined %}{% set tools = none %}{% endif %}";
    assert_eq!(detect(llama_3), (true, false, true));
}

#[test]
fn an_empty_template_counts_as_none() {
    assert_eq!(detect(""), (false, false, false));
    assert!(!with(&[]).chat_template);
    let number = Gguf::model("llama", 1).number("tokenizer.chat_template", 7);
    assert!(!number.read().unwrap().chat_template);
}

#[test]
fn named_templates_count() {
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
fn a_template_may_have_1_mib() {
    let marker = "{{ enable_thinking }}";
    let padded = |length: usize| format!("{}{marker}", "x".repeat(length - marker.len()));
    assert_eq!(detect(&padded(1 << 20)), (true, true, false));
    let error = Gguf::model("llama", 1)
        .text("tokenizer.chat_template", &padded((1 << 20) + 1))
        .read()
        .unwrap_err();
    assert!(error.message.contains("1048577 bytes"), "{error}");
}

#[test]
fn an_oversized_template_is_refused() {
    let read = |template: &str| {
        Gguf::model("llama", 1)
            .text("tokenizer.chat_template", template)
            .read()
    };
    let nested = |depth: usize| {
        format!(
            "{}x{}",
            "{% if a %}".repeat(depth),
            "{% endif %}".repeat(depth)
        )
    };
    let of_one = |signs: usize| format!("{{{{ {} }}}} and {{{{ b }}}}", "(".repeat(signs));
    for sound in [
        nested(500),
        of_one(1000),
        // No code: text, a comment, a string.
        "(".repeat(5000),
        format!("{{# {} #}}", "{% if a %}".repeat(5000)),
        format!("{{{{ '{}' }}}}", "(".repeat(5000)),
    ] {
        read(&sound).unwrap();
    }
    for deep in [
        nested(501),
        of_one(1001),
        format!("{{% set a = {} %}}", "not ".repeat(1001)),
    ] {
        let error = read(&deep).unwrap_err();
        assert!(
            error.message.contains("its chat template is too deep"),
            "{error}"
        );
    }
}

#[test]
fn a_template_that_is_not_utf_8_is_still_searched() {
    let text = b"\xff\xfe{% if tools %}";
    let value = [&(text.len() as u64).to_le_bytes()[..], text].concat();
    let account = Gguf::model("llama", 1)
        .pair("tokenizer.chat_template", 8, &value)
        .read()
        .unwrap();
    assert!(account.chat_template && account.tools);
}
