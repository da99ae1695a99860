//! Detects from a chat template whether a model supports thinking and tools.
//!
//! Nothing is rendered. Templates name what they support: a switch (`enable_thinking`), a place in a message
//! (`reasoning_content`) or the tags around thoughts, and the variable `tools`.

use crate::fault::{Fault, invalid};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) empty: bool,
    pub(crate) thinking: bool,
    pub(crate) tools: bool,
}

/// Published templates are below 20 KiB. All of a template becomes prompt, in the worst case.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// The engine reads templates by recursion, and a thread's stack of 2 MiB holds some 1,000 statements and 2,000 operators
/// (measured). Published templates have up to 300 statements, of up to 100 names and signs.
const MAX_STATEMENTS: usize = 1000;
const MAX_TOKENS_OF_ONE: usize = 1000;

const KEY: &str = "tokenizer.chat_template";

/// The switches and places for thinking, and the tags of Qwen and DeepSeek (`<think>`), Seed (`<seed:think>`),
/// Apriel and Mistral.
const THINKING: [&str; 7] = [
    "enable_thinking",
    "thinking_budget",
    "reasoning_content",
    "reasoning_effort",
    "think>",
    "thinking>",
    "[THINK]",
];

/// The default template, or one for a purpose, such as `tokenizer.chat_template.tool_use`.
pub(crate) fn is_key(key: &str) -> bool {
    key.strip_prefix(KEY)
        .is_some_and(|purpose| purpose.is_empty() || purpose.starts_with('.'))
}

pub(crate) fn search_template(template: &str) -> Result<Template, Fault> {
    Ok(Template {
        empty: template.is_empty(),
        thinking: THINKING.iter().any(|marker| template.contains(marker)),
        tools: read_code(template)?,
    })
}

/// Whether `tools`, or a variable made of it such as `xml_tools`, stands in the template's code. The word in a
/// prompt that the template carries says nothing. Fails for code that the engine's stack may not hold.
fn read_code(template: &str) -> Result<bool, Fault> {
    let bytes = template.as_bytes();
    let part_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut at, mut code, mut tools) = (0, false, false);
    let (mut statements, mut tokens) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest {
            [b'{', b'#', ..] if !code => {
                let end = rest.windows(2).position(|two| two == b"#}");
                end.map_or(rest.len(), |end| end + 2)
            }
            [b'{', kind @ (b'%' | b'{'), ..] if !code => {
                code = true;
                tokens = 0;
                statements += usize::from(*kind == b'%');
                2
            }
            [b'%' | b'}', b'}', ..] if code => {
                code = false;
                2
            }
            [quote @ (b'"' | b'\''), text @ ..] if code => 2 + quoted_length(text, *quote),
            [first, ..] if code && part_of_name(first) => {
                let length = rest.iter().take_while(|byte| part_of_name(byte)).count();
                let name = &rest[..length];
                tools |= name == b"tools" || name.ends_with(b"_tools");
                tokens += 1;
                length
            }
            [first, ..] => {
                tokens += usize::from(code && !first.is_ascii_whitespace());
                1
            }
            [] => break,
        };
        if tokens > MAX_TOKENS_OF_ONE || statements > MAX_STATEMENTS {
            return invalid(format!(
                "its chat template is too deep: it has more than {MAX_STATEMENTS} statements, or one of more than \
                 {MAX_TOKENS_OF_ONE} names and signs"
            ));
        }
    }
    Ok(tools)
}

/// How many bytes stand before the closing quote.
fn quoted_length(text: &[u8], quote: u8) -> usize {
    let mut escaped = false;
    let closing = text.iter().position(|&byte| {
        let closes = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tools_variable_counts() {
        for template in [
            "{%- if tools %}x{% endif %}",
            "{{ tools | tojson }}",
            "{%- if not tools is defined %}",
            "{% if xml_tools or python_tools %}",
            "{{ 'it\\'s' + tools }}",
            "{{ \"'\" }}{% for tool in tools %}",
        ] {
            assert!(read_code(template).unwrap(), "{template}");
        }
        for template in [
            "",
            "You may use tools.",
            "{{ 'You may use tools' }}",
            "{{ \"it's tools\" }} and tools",
            "{{ 'a \\' tools' }}",
            "{# {{ tools #}{% if toolset or tools_in_user_message %}",
            "{{ unclosed 'tools",
            "{# unclosed {{ tools",
        ] {
            assert!(!read_code(template).unwrap(), "{template}");
        }
    }

    #[test]
    fn each_thinking_marker_is_detected() {
        for template in [
            "{% if enable_thinking is defined and enable_thinking %}",
            "{% if thinking_budget is defined %}",
            "{{ message.reasoning_content }}",
            "{{ 'Reasoning: ' + reasoning_effort }}",
            "<think>\n",
            "{{ content.split('</think>')[-1] }}",
            "<seed:think>",
            "<thinking>",
            "[THINK]",
        ] {
            assert!(search_template(template).unwrap().thinking, "{template}");
        }
        for template in ["", "I think, therefore > I am", "thinking of reasons"] {
            assert!(!search_template(template).unwrap().thinking, "{template}");
        }
    }

    #[test]
    fn templates_are_found_by_their_keys() {
        assert!(is_key("tokenizer.chat_template"));
        assert!(is_key("tokenizer.chat_template.tool_use"));
        // A list of names.
        assert!(!is_key("tokenizer.chat_templates"));
        assert!(!is_key("general.chat_template"));
    }
}
