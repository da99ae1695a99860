//! The prompts of completions and the inputs of embeddings: texts and lists of token ids.

use crate::llama::Token;
use serde::{Deserialize, Deserializer, de::Error as _};

/// A prompt as the engine takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptInput {
    Text(String),
    Tokens(Vec<Token>),
}

/// One or several, of either kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompts(pub(crate) Vec<PromptInput>);

#[derive(Deserialize)]
#[serde(untagged)]
enum SentPrompts {
    Text(String),
    List(Vec<PromptElement>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PromptElement {
    Token(Token),
    Text(String),
    Tokens(Vec<Token>),
}

pub(super) fn deserialize_prompt<'de, D: Deserializer<'de>>(from: D) -> Result<Prompts, D::Error> {
    deserialize_prompts("prompt", from)
}

pub(crate) fn deserialize_input<'de, D: Deserializer<'de>>(from: D) -> Result<Prompts, D::Error> {
    deserialize_prompts("input", from)
}

fn deserialize_prompts<'de, D: Deserializer<'de>>(
    field: &str,
    from: D,
) -> Result<Prompts, D::Error> {
    let sent = SentPrompts::deserialize(from).map_err(|_| {
        D::Error::custom(format!(
            "`{field}` is neither a text nor a list of token ids, nor a list of these"
        ))
    })?;
    let elements = match sent {
        SentPrompts::Text(text) => return Ok(Prompts(vec![PromptInput::Text(text)])),
        SentPrompts::List(elements) => elements,
    };
    let (mut tokens, mut prompts) = (Vec::new(), Vec::new());
    for element in elements {
        match element {
            PromptElement::Token(token) => tokens.push(token),
            PromptElement::Text(text) => prompts.push(PromptInput::Text(text)),
            PromptElement::Tokens(tokens) => prompts.push(PromptInput::Tokens(tokens)),
        }
    }
    match (tokens.is_empty(), prompts.is_empty()) {
        (true, _) => Ok(Prompts(prompts)),
        (false, true) => Ok(Prompts(vec![PromptInput::Tokens(tokens)])),
        (false, false) => Err(D::Error::custom(format!(
            "`{field}` has token ids and texts in one list: send each as a text of its own or as a list of token ids"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn prompts(value: Value) -> Result<Vec<PromptInput>, String> {
        let read = deserialize_prompt(value).map(|prompts| prompts.0);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn prompts_come_in_each_form() {
        let text = |text: &str| PromptInput::Text(text.to_owned());
        let tokens = |tokens: &[Token]| PromptInput::Tokens(tokens.to_vec());
        for (value, expected) in [
            (json!("a"), vec![text("a")]),
            (json!([1, 2]), vec![tokens(&[1, 2])]),
            (json!(["a", "b"]), vec![text("a"), text("b")]),
            (json!([[1], [2, 3]]), vec![tokens(&[1]), tokens(&[2, 3])]),
            (json!(["a", [1]]), vec![text("a"), tokens(&[1])]),
            (json!([]), Vec::new()),
        ] {
            assert_eq!(prompts(value.clone()).unwrap(), expected, "{value}");
        }
    }

    #[test]
    fn what_is_no_prompt_is_refused_by_name() {
        for value in [
            json!([1, "a"]),
            json!(["a", 1]),
            json!(7),
            json!([{}]),
            json!([[1, "a"]]),
        ] {
            let message = prompts(value.clone()).unwrap_err();
            assert!(message.starts_with("`prompt`"), "{value}: {message}");
        }
    }
}
