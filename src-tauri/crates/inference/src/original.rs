//! A request in the dialect of its client, for servers that speak it: they get its bytes as they came.

use super::files::FilesSent;
use crate::body;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tierbar_core::{
    Error,
    config::Dialect,
    json_edit::{self, Change},
    lease::{Address, Endpoint, Foreign},
};

/// What policy reads or sets. Servers written in Go match names without case, and would take another spelling for the same field.
#[rustfmt::skip]
const OF_POLICY: [&str; 23] = [
    "background", "best_of", "cache_control", "conversation", "extra_body", "fallbacks", "inference_geo", "input",
    "keep_alive", "max_completion_tokens", "max_output_tokens", "max_tokens", "messages", "model", "models", "n",
    "previous_response_id", "prompt", "service_tier", "speed", "stream", "system", "tools",
];

/// The form of a request at its server, and of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// OpenAI's completions and whatever else is not named here. Everything inside the host has it.
    #[default]
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
}

impl Form {
    /// Returns the field that limits an answer's tokens.
    fn limit(self) -> &'static str {
        match self {
            Self::Responses => "max_output_tokens",
            Self::Chat | Self::Messages => "max_tokens",
        }
    }
}

/// A request as its client sent it, where that is not the form that the host uses.
#[derive(Debug, Clone)]
pub struct Original {
    pub form: Form,
    /// The path that takes it at the server.
    pub path: &'static str,
    bytes: Bytes,
    /// Why a chat cannot say the same: then only a server that speaks the dialect can answer.
    pub(crate) untranslatable: Option<Error>,
    pub files_sent: FilesSent,
}

impl Original {
    /// # Errors
    /// `BadRequest` for what is no JSON object, or has a field twice or in another case: the server might read the other one.
    pub fn read(form: Form, path: &'static str, bytes: Bytes) -> Result<Self, Error> {
        body::parse::<IgnoredAny>(&bytes)?;
        let mut names = BTreeSet::new();
        for name in json_edit::names(&bytes).map_err(body::not_json)? {
            if let Some(field) = misspelled(&name) {
                return Err(misspelled_field(&name, field));
            }
            if let Some(twice) = names.replace(name) {
                return Err(body::invalid(&format!("duplicate field `{twice:.100}`")));
            }
        }
        Ok(Self {
            form,
            path,
            bytes,
            untranslatable: None,
            files_sent: FilesSent::default(),
        })
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether this stands anywhere in its text.
    pub fn contains(&self, text: &str) -> bool {
        str::from_utf8(&self.bytes).is_ok_and(|request| request.contains(text))
    }

    /// Returns the value of a field.
    pub fn value(&self, field: &str) -> Option<Value> {
        json_edit::value(&self.bytes, field)
    }

    /// Changes fields, and no other byte.
    pub fn change(&mut self, changes: &[Change]) {
        self.bytes = json_edit::edit(&self.bytes, changes).into();
    }

    /// Returns its limit of the answer's tokens.
    pub(crate) fn limit_of_tokens(&self) -> Option<Value> {
        self.value(self.form.limit())
    }

    /// Limits the answer's tokens, unless the request does.
    pub fn limit(&mut self, tokens: &Value) {
        if self.limit_of_tokens().is_none_or(|limit| limit.is_null()) {
            self.change(&[(self.form.limit(), Some(tokens.clone()))]);
        }
    }

    /// Returns what decides where the request goes and what it may cost, as a chat says it.
    pub(crate) fn outline(&self) -> Map<String, Value> {
        let fields = [
            ("model", "model"),
            ("stream", "stream"),
            ("keep_alive", "keep_alive"),
            ("max_tokens", self.form.limit()),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(name, field)| Some((name.to_owned(), self.value(field)?)));
        fields.collect()
    }

    /// Whether the server speaks its dialect.
    pub(crate) fn passes_to(&self, endpoint: &Endpoint) -> bool {
        let Endpoint::Foreign(Foreign {
            at: Address::Url(_),
            dialect,
            ..
        }) = endpoint
        else {
            return false;
        };
        match self.form {
            Form::Chat => false,
            Form::Messages => *dialect == Dialect::Anthropic,
            Form::Responses => *dialect == Dialect::OpenAi,
        }
    }
}

/// Refuses a field whose name is that of a field of policy in another case.
pub(super) fn misspelled_field(name: &str, field: &str) -> Error {
    let error = body::invalid(&format!("unknown field `{name:.100}`"));
    error.hint(format!("write it as `{field}`"))
}

/// Returns the field of policy that some server takes this name for, though it is another.
pub(super) fn misspelled(name: &str) -> Option<&'static str> {
    // Two letters outside ASCII fold to letters inside it.
    let folded = name.chars().map(|letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    });
    let field = OF_POLICY
        .into_iter()
        .find(|field| field.chars().eq(folded.clone()))?;
    (field != name).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    #[test]
    fn a_field_of_policy_in_another_case_is_refused() {
        let read = |name: &str| {
            let request = serde_json::json!({"model": "m", name: 1}).to_string();
            Original::read(Form::Messages, "/v1/messages", request.into())
        };
        for (name, field) in [
            ("Model", "model"),
            ("MAX_TOKENS", "max_tokens"),
            ("\u{17f}tream", "stream"),
            ("\u{212a}eep_alive", "keep_alive"),
            ("max_output_to\u{212a}en\u{17f}", "max_output_tokens"),
            ("Max_Completion_Tokens", "max_completion_tokens"),
            ("N", "n"),
            ("Service_Tier", "service_tier"),
            ("Models", "models"),
            ("Messages", "messages"),
        ] {
            let error = read(name).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{name}");
            assert!(error.message.contains(name), "{error}");
            let hint = error.hint.unwrap_or_default();
            assert!(hint.contains(&format!("`{field}`")), "{hint}");
        }
        for name in ["stream", "Temperature", "of_next_year", "\u{17f}"] {
            assert!(read(name).is_ok(), "{name}");
        }
    }
}
