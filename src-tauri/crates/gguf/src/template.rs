//! What a chat template's text tells of a model: whether it can think and be given tools.
//!
//! Nothing is rendered. Templates name what they support: a switch (`enable_thinking`), a place in a message
//! (`reasoning_content`) or the tags around thoughts, and the variable `tools`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) empty: bool,
    pub(crate) thinking: bool,
    pub(crate) tools: bool,
}

/// A template of any length counts; this much of it is searched. Published ones are below 20 KiB.
pub(crate) const SEARCHED_BYTES: u64 = 1 << 20;

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

pub(crate) fn search(template: &str) -> Template {
    Template {
        empty: template.is_empty(),
        thinking: THINKING.iter().any(|marker| template.contains(marker)),
        tools: uses_tools(template),
    }
}

/// Whether `tools`, or a variable made of it such as `xml_tools`, stands in the template's code. The word in a
/// prompt that the template carries says nothing.
fn uses_tools(template: &str) -> bool {
    let bytes = template.as_bytes();
    let part_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut at, mut code) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest {
            [b'{', b'%' | b'{', ..] if !code => {
                code = true;
                2
            }
            [b'%' | b'}', b'}', ..] if code => {
                code = false;
                2
            }
            [quote @ (b'"' | b'\''), text @ ..] if code => 2 + quoted(text, *quote),
            [first, ..] if code && part_of_name(first) => {
                let length = rest.iter().take_while(|byte| part_of_name(byte)).count();
                let name = &rest[..length];
                if name == b"tools" || name.ends_with(b"_tools") {
                    return true;
                }
                length
            }
            _ => 1,
        };
    }
    false
}

/// How many bytes stand before the closing quote.
fn quoted(text: &[u8], quote: u8) -> usize {
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
    fn tools_count_as_a_variable_and_not_as_a_word() {
        for template in [
            "{%- if tools %}x{% endif %}",
            "{{ tools | tojson }}",
            "{%- if not tools is defined %}",
            "{% if xml_tools or python_tools %}",
            "{{ 'it\\'s' + tools }}",
            "{{ \"'\" }}{% for tool in tools %}",
        ] {
            assert!(uses_tools(template), "{template}");
        }
        for template in [
            "",
            "You may use tools.",
            "{{ 'You may use tools' }}",
            "{{ \"it's tools\" }} and tools",
            "{{ 'a \\' tools' }}",
            "{# tools #}{% if toolset or tools_in_user_message %}",
            "{{ unclosed 'tools",
        ] {
            assert!(!uses_tools(template), "{template}");
        }
    }

    #[test]
    fn each_switch_place_and_tag_means_thinking() {
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
            assert!(search(template).thinking, "{template}");
        }
        for template in ["", "I think, therefore > I am", "thinking of reasons"] {
            assert!(!search(template).thinking, "{template}");
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
