//! A chat of OpenAI's as a request of Anthropic's.

use super::{
    conversation::{Conversation, Message},
    form::{Form, JSON_ALONE},
    model::Generation,
    thinking::{Bounds, ThinkingRequest},
    tools::Tools,
};
use crate::body;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};
use tierbar_request_fields as fields;

/// There is no request without a bound; every model takes this one.
const MAX_TOKENS: u64 = 4096;

/// The most letters of a user's identifier.
const LONGEST_USER: usize = 256;

/// What says how the answer must be, and has no equivalent there.
const REFUSED: [&str; 17] = [
    "allowed_token_ids",
    "audio",
    "bad_words",
    "echo",
    "function_call",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "logit_bias",
    "logprobs",
    "min_tokens",
    "prompt_logprobs",
    "stop_token_ids",
    "structured_outputs",
];

/// What is known on both sides. The rest only shapes how tokens are drawn, and is left out: Anthropic's servers refuse what they do
/// not know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chat {
    model: Option<String>,
    messages: Vec<Message>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// Below 0, as in llama-server: no bound.
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    n_predict: Option<i64>,
    stop: Option<Stop>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    functions: Option<Value>,
    response_format: Option<Value>,
    json_schema: Option<Value>,
    n: Option<u64>,
    reasoning_effort: Option<String>,
    reasoning: Option<Reasoning>,
    think: Option<Value>,
    thinking_budget_tokens: Option<i64>,
    chat_template_kwargs: Option<Value>,
    safety_identifier: Option<Value>,
    /// The older name of `safety_identifier`.
    user: Option<Value>,
    service_tier: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// OpenRouter's form, as our own engine reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "`reasoning` as an object")]
struct Reasoning {
    effort: Option<String>,
    enabled: Option<bool>,
    max_tokens: Option<i64>,
    exclude: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// The request, and whether its stream is to end with what it used.
pub(super) fn message(chat: Map<String, Value>) -> Result<(Vec<u8>, bool), Error> {
    check_fields(&chat)?;
    let chat: Chat = body::of_value(chat.into())?;
    let usage = chat.stream_options.as_ref();
    let usage = usage.and_then(|options| options.include_usage) == Some(true);
    Ok((to_json(chat.into_request()?), usage))
}

/// The request for the number of a chat's tokens.
pub(super) fn count(chat: Map<String, Value>) -> Result<Vec<u8>, Error> {
    const COUNTED: [&str; 5] = ["model", "messages", "system", "tools", "tool_choice"];
    check_fields(&chat)?;
    let chat: Chat = body::of_value(chat.into())?;
    let mut request = chat.into_request()?;
    request.retain(|key, _| COUNTED.contains(&key.as_str()));
    Ok(to_json(request))
}

/// Refuses the first field that asks for what cannot be had there.
fn check_fields(chat: &Map<String, Value>) -> Result<(), Error> {
    let asked = |name: &&&str| {
        chat.get(**name)
            .is_some_and(|value| !fields::is_nothing(value))
    };
    let Some(name) = REFUSED.iter().find(asked) else {
        return Ok(());
    };
    let wrong = format!("a tier with Anthropic's dialect does not support `{name}`");
    Err(bad_request(wrong).hint("leave it out, or name a local tier"))
}

fn to_json(request: Map<String, Value>) -> Vec<u8> {
    Value::Object(request).to_string().into_bytes()
}

impl Chat {
    fn into_request(self) -> Result<Map<String, Value>, Error> {
        self.check()?;
        let generation = Generation::of(self.model.as_deref().unwrap_or_default());
        let asked = self.thinking_request();
        let max_tokens = self.most();
        let (metadata, service_tier) = (self.metadata(), self.service_tier());
        let mut conversation = Conversation::read(self.messages)?;
        let called = std::mem::take(&mut conversation.called);
        let choice = self.tool_choice.as_ref();
        let tools = Tools::read(self.tools, choice, self.parallel_tool_calls, called)?;
        let bounds = Bounds {
            forced: tools.are_forced(),
            after_tool: conversation.is_after_tool(),
            max_tokens,
        };
        let thinking = asked.thinking(generation, bounds);
        let form = Form::read(self.response_format, self.json_schema, generation)?;
        if form == Form::Json {
            conversation.instruct(JSON_ALONE);
        }

        let mut request = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                request.insert(key.to_owned(), value);
            }
        };
        put("model", self.model.map(Value::from));
        let most = max_tokens.unwrap_or(MAX_TOKENS + thinking.room);
        put("max_tokens", Some(most.into()));
        if generation.takes_temperature() && !thinking.is_on() {
            let temperature = self.temperature.map(|warmth| warmth.clamp(0.0, 1.0));
            put("temperature", temperature.map(Value::from));
            // The later ones take one of the two.
            let top_p = self.top_p.filter(|_| temperature.is_none());
            put("top_p", top_p.map(Value::from));
            put(
                "top_k",
                self.top_k.filter(|&most| most > 0).map(Value::from),
            );
        }
        put("stop_sequences", self.stop.and_then(Stop::sequences));
        put("stream", self.stream.map(Value::from));
        put("metadata", metadata);
        put("service_tier", service_tier);
        let mut output = Map::new();
        if let Some(effort) = thinking.effort {
            output.insert("effort".to_owned(), effort.into());
        }
        if let Form::Schema(format) = form {
            output.insert("format".to_owned(), format);
        }
        put("thinking", thinking.field);
        put("output_config", (!output.is_empty()).then(|| output.into()));
        put("system", conversation.take_system());
        put("messages", Some(conversation.into_messages().into()));
        tools.put(&mut request);
        Ok(request)
    }

    /// What would change the answer's meaning if it were left out.
    fn check(&self) -> Result<(), Error> {
        if self.messages.is_empty() {
            Err(bad_request("`messages` is empty"))
        } else if self.n.is_some_and(|n| n > 1) {
            let wrong = "a tier with Anthropic's dialect gives one answer: `n` must be 1";
            Err(bad_request(wrong).hint("leave it out, or name a local tier"))
        } else if self.functions.is_some() {
            let wrong = "a tier with Anthropic's dialect does not support `functions`";
            Err(bad_request(wrong).hint("send them as `tools`"))
        } else if self.reasoning.as_ref().and_then(|own| own.exclude) == Some(true) {
            let wrong = "`reasoning.exclude` is not supported";
            Err(bad_request(wrong).hint("leave it out, and leave `reasoning_content` unread"))
        } else {
            Ok(())
        }
    }

    fn most(&self) -> Option<u64> {
        let asked = [self.max_completion_tokens, self.max_tokens, self.n_predict];
        let asked = asked.into_iter().flatten();
        asked
            .filter_map(|most| u64::try_from(most).ok())
            .find(|&most| most > 0)
    }

    /// What identifies the user.
    fn metadata(&self) -> Option<Value> {
        let users = [&self.safety_identifier, &self.user].into_iter().flatten();
        let mut users = users.filter_map(Value::as_str);
        let user = users.find(|user| is_opaque(user))?;
        Some(json!({"user_id": user}))
    }

    fn service_tier(&self) -> Option<Value> {
        match self.service_tier.as_ref()?.as_str()? {
            "auto" => Some("auto".into()),
            "default" => Some("standard_only".into()),
            _ => None,
        }
    }

    /// As our own engine reads it.
    fn thinking_request(&self) -> ThinkingRequest {
        let named = self.chat_template_kwargs.as_ref();
        let named = named.and_then(|kwargs| kwargs["enable_thinking"].as_bool());
        let think = self.think.as_ref();
        let other = self.reasoning.as_ref();
        let effort = self.reasoning_effort.as_deref();
        let effort = effort.or_else(|| other?.effort.as_deref());
        let effort = effort.or_else(|| think?.as_str());
        let flag = think.and_then(Value::as_bool);
        let flag = flag.or_else(|| other?.enabled);
        let limited = other.and_then(|own| own.max_tokens);
        let budget = self.thinking_budget_tokens.or(limited);
        let budget = budget.and_then(|most| u64::try_from(most).ok());
        let thinks = named.or(flag).or(effort.map(|effort| effort != "none"));
        let thinks = thinks.or(limited.map(|most| most != 0));
        ThinkingRequest {
            thinks: if budget == Some(0) {
                Some(false)
            } else {
                thinks
            },
            effort: effort.map(str::to_owned),
            budget,
        }
    }
}

/// Whether an identifier is taken. Anthropic's servers refuse addresses of mail and telephone numbers, and some others all but these
/// letters.
fn is_opaque(user: &str) -> bool {
    let is_taken = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let is_number = user.len() > 6 && !user.contains(|letter: char| letter.is_ascii_alphabetic());
    (1..=LONGEST_USER).contains(&user.len()) && user.chars().all(is_taken) && !is_number
}

impl Stop {
    /// Those of spaces alone are refused.
    fn sequences(self) -> Option<Value> {
        let mut stops = match self {
            Self::One(stop) => vec![stop],
            Self::Several(stops) => stops,
        };
        stops.retain(|stop| !stop.trim().is_empty());
        (!stops.is_empty()).then(|| json!(stops))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn converted(chat: &Value) -> Result<Value, Error> {
        let (request, _) = message(chat.as_object().unwrap().clone())?;
        Ok(serde_json::from_slice(&request).unwrap())
    }

    /// A chat with these fields besides.
    fn chat(model: &str, more: Value) -> Value {
        let mut chat = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
        for (key, value) in more.as_object().unwrap() {
            chat[key] = value.clone();
        }
        chat
    }

    #[test]
    fn fields_are_renamed_and_unknown_ones_dropped() {
        let chat = chat(
            "claude-haiku-4-5",
            json!({
                "stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 9, "max_tokens": null,
                "stop": ["END", "\n"], "temperature": 1.7, "top_p": 0.9, "top_k": 3, "seed": 1, "cache_prompt": true,
                "logprobs": false, "logit_bias": {}, "user": "me", "min_p": 0.1,
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string"}}},
            }),
        );
        let (_, usage) = message(chat.as_object().unwrap().clone()).unwrap();
        assert!(usage);
        assert_eq!(
            converted(&chat).unwrap(),
            json!({
                "model": "claude-haiku-4-5", "max_tokens": 9, "temperature": 1.0, "top_k": 3,
                "stop_sequences": ["END"], "stream": true, "metadata": {"user_id": "me"},
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "string"}}},
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            })
        );
    }

    #[test]
    fn a_model_gets_no_field_that_it_refuses() {
        let warm = json!({"temperature": 0.5});
        let with = |model: &str, more: &Value| converted(&chat(model, more.clone())).unwrap();
        assert_eq!(with("claude-opus-4-6", &warm)["temperature"], 0.5);
        assert_eq!(with("claude-opus-4-7", &warm).get("temperature"), None);
        let thinks = json!({"temperature": 0.5, "reasoning_effort": "low"});
        let adaptive = with("claude-opus-4-6", &thinks);
        assert_eq!(adaptive.get("temperature"), None);
        assert_eq!(adaptive["output_config"]["effort"], "low");
        assert_eq!(adaptive["max_tokens"], 4096 + 2048);
        let openrouters = json!({"reasoning": {"effort": "low"}});
        let openais = json!({"reasoning_effort": "low"});
        assert_eq!(
            with("claude-opus-4-6", &openrouters),
            with("claude-opus-4-6", &openais)
        );
        for (reasoning, budget) in [
            (json!({"max_tokens": 3000}), 3000),
            (json!({"enabled": true}), 8192),
        ] {
            let request = with("claude-haiku-4-5", &json!({"reasoning": reasoning}));
            assert_eq!(request["thinking"]["budget_tokens"], budget);
        }
        let kept = json!({"temperature": 0.5, "think": true, "thinking_budget_tokens": 0});
        assert_eq!(with("claude-haiku-4-5", &kept)["temperature"], 0.5);
    }

    #[test]
    fn an_opaque_user_is_identified() {
        let user = |more: Value| {
            let request = converted(&chat("claude-haiku-4-5", more)).unwrap();
            request["metadata"]["user_id"].as_str().map(str::to_owned)
        };
        for taken in ["me", "user_1-a", "4711", "a5551234567"] {
            assert_eq!(user(json!({"user": taken})).as_deref(), Some(taken));
        }
        for refused in [
            "",
            "me@a.example",
            "5551234567",
            "Ann Lee",
            &"a".repeat(257),
        ] {
            assert_eq!(user(json!({"user": refused})), None, "{refused}");
        }
        let both = json!({"user": "older", "safety_identifier": "newer"});
        assert_eq!(user(both).as_deref(), Some("newer"));
        assert_eq!(user(json!({"user": null, "safety_identifier": 7})), None);
    }

    #[test]
    fn service_tiers_with_an_equivalent_are_renamed() {
        for (tier, renamed) in [
            (json!("auto"), json!("auto")),
            (json!("default"), json!("standard_only")),
            (json!("flex"), Value::Null),
            (json!("priority"), Value::Null),
            (Value::Null, Value::Null),
        ] {
            let more = json!({"service_tier": tier});
            let request = converted(&chat("claude-haiku-4-5", more)).unwrap();
            assert_eq!(request["service_tier"], renamed, "{tier}");
        }
    }

    #[test]
    fn there_is_always_a_token_limit() {
        for (more, most) in [
            (json!({}), 4096),
            (json!({"max_tokens": -1}), 4096),
            (json!({"max_tokens": 7}), 7),
            (json!({"n_predict": 5}), 5),
        ] {
            let request = converted(&chat("claude-haiku-4-5", more)).unwrap();
            assert_eq!(request["max_tokens"], most);
        }
    }

    #[test]
    fn fields_that_change_the_meaning_are_refused() {
        for (more, says) in [
            (json!({"n": 2}), "`n`"),
            (json!({"grammar": "root ::= \"x\""}), "`grammar`"),
            (json!({"logprobs": true}), "`logprobs`"),
            (json!({"guided_choice": ["a", "b"]}), "`guided_choice`"),
            (json!({"min_tokens": 4}), "`min_tokens`"),
            (
                json!({"reasoning": {"exclude": true}}),
                "`reasoning.exclude`",
            ),
            (json!({"messages": []}), "`messages`"),
            (json!({"temperature": "hot"}), "expected f64"),
        ] {
            let error = converted(&chat("claude-haiku-4-5", more)).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn a_count_sends_only_model_and_messages() {
        let chat = chat(
            "m",
            json!({"max_tokens": 5, "think": true, "stream": true, "stop": "a"}),
        );
        let request: Value =
            serde_json::from_slice(&count(chat.as_object().unwrap().clone()).unwrap()).unwrap();
        let keys: Vec<_> = request.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["model", "messages"]);
    }
}
