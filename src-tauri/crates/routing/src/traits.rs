//! The properties of a request that decide its tier.

use serde_json::Value;

/// Tokens expected of an answer without a limit.
const USUAL_ANSWER: u64 = 512;
/// Clients habitually set high limits; above this, a limit is no expectation.
const LONGEST_ANSWER: u64 = 2048;
/// Tokens of a message's markup in a chat template.
const TOKENS_PER_MESSAGE: u64 = 8;
/// About the most tokens of one image.
const TOKENS_PER_MEDIUM: u64 = 1024;
/// The user's messages before the last that count.
const EARLIER: usize = 3;

/// The dimensions of a request. Invalid fields are ignored here; the worker refuses them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traits {
    /// The user's last message, or the prompt of a completion.
    pub text: String,
    /// The user's messages before it, the newest first.
    pub earlier: Vec<String>,
    /// Tokens of the whole prompt, estimated rather too high.
    pub prompt_tokens: u64,
    /// Tokens expected of the answer.
    pub answer_tokens: u64,
    pub images: bool,
    pub sound: bool,
    pub tools: bool,
    /// Whether it requests thinking.
    pub thinks: bool,
}

impl Traits {
    /// Reads the body of a chat completion or a text completion.
    pub fn of(request: &Value) -> Self {
        let mut traits = Self {
            answer_tokens: answer_tokens(request),
            tools: has_tools(request),
            thinks: thinks(request),
            ..Self::default()
        };
        for message in array(&request["messages"]) {
            traits.add_message(message);
        }
        match &request["prompt"] {
            Value::String(prompt) => traits.prompt(prompt),
            // Several prompts share a context, and go to one tier.
            Value::Array(prompts) => {
                for prompt in prompts {
                    match prompt {
                        Value::String(prompt) => traits.prompt(prompt),
                        _ => traits.prompt_tokens += 1,
                    }
                }
            }
            _ => {}
        }
        if traits.tools {
            for field in TOOLS {
                let length = request
                    .get(field)
                    .map_or(0, |tools| tools.to_string().len());
                traits.prompt_tokens += tokens_of_ascii(length);
            }
        }
        traits
    }

    /// Returns the tokens that a context must hold.
    pub fn context_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.answer_tokens)
    }

    fn prompt(&mut self, prompt: &str) {
        self.prompt_tokens += tokens(prompt);
        self.text.push_str(prompt);
    }

    fn add_message(&mut self, message: &Value) {
        self.prompt_tokens += TOKENS_PER_MESSAGE;
        let is_users = message["role"] == "user";
        if is_users && !self.text.is_empty() {
            self.earlier.insert(0, std::mem::take(&mut self.text));
            self.earlier.truncate(EARLIER);
        }
        let mut text = |text: &str| {
            self.prompt_tokens += tokens(text);
            if is_users {
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text.push_str(text);
            }
        };
        match &message["content"] {
            Value::String(content) => text(content),
            Value::Array(parts) => {
                let mut media = 0;
                for part in parts {
                    match part["text"].as_str() {
                        Some(content) => text(content),
                        None => {
                            let kind = part["type"].as_str();
                            let (image, sound) =
                                (kind == Some("image_url"), kind == Some("input_audio"));
                            self.images |= image;
                            self.sound |= sound;
                            media += u64::from(image || sound);
                        }
                    }
                }
                self.prompt_tokens += media * TOKENS_PER_MEDIUM;
            }
            _ => {}
        }
        for calls in [&message["tool_calls"], &message["function_call"]] {
            if !calls.is_null() {
                self.prompt_tokens += tokens_of_ascii(calls.to_string().len());
            }
        }
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn answer_tokens(request: &Value) -> u64 {
    let limits = ["max_completion_tokens", "max_tokens", "n_predict"];
    let limit = limits.iter().find_map(|name| request[name].as_u64());
    limit.map_or(USUAL_ANSWER, |limit| limit.min(LONGEST_ANSWER))
}

/// Where a request has tools: OpenAI's field, and its older one.
const TOOLS: [&str; 2] = ["tools", "functions"];

fn has_tools(request: &Value) -> bool {
    let refuses = |field: &str| request[field] == "none";
    !refuses("tool_choice")
        && !refuses("function_call")
        && TOOLS
            .iter()
            .any(|field| !array(&request[*field]).is_empty())
}

/// Returns whether it requests more than a little thinking, in any form that the engine supports.
fn thinks(request: &Value) -> bool {
    if request["think"] == false {
        return false;
    }
    let much = |value: &Value| match value {
        Value::Bool(wanted) => *wanted,
        Value::String(effort) => matches!(effort.as_str(), "medium" | "high" | "xhigh" | "max"),
        _ => false,
    };
    much(&request["reasoning_effort"])
        || much(&request["think"])
        || much(&request["chat_template_kwargs"]["enable_thinking"])
}

/// Tokens of a text. Vocabularies have 3.5 to 5 letters a token of English, fewer of code, about one for a Chinese or Japanese
/// character, and two thirds of one for a letter of most other scripts.
pub(super) fn tokens(text: &str) -> u64 {
    let (mut ascii, mut ideographs, mut others) = (0, 0, 0);
    for character in text.chars() {
        match character {
            '\0'..='\x7f' => ascii += 1,
            '\u{2e80}'.. => ideographs += 1,
            _ => others += 1,
        }
    }
    tokens_of_ascii(ascii) + ideographs + (others * 2u64).div_ceil(3)
}

fn tokens_of_ascii(letters: usize) -> u64 {
    (letters as u64 * 2).div_ceil(7)
}
