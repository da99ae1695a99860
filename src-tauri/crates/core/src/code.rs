//! One closed set of error codes, and the one place that turns a code into a response body.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Defines the codes, each with its wire name and the HTTP status that carries it.
macro_rules! codes {
    (
        $(#[$($about:tt)*])*
        pub enum $name:ident {
            $($(#[$($of:tt)*])* $code:ident = $word:tt, $status:tt;)+
        }
    ) => {
        $(#[$($about)*])*
        pub enum $name {
            $($(#[$($of)*])* #[serde(rename = $word)] $code,)+
        }

        impl $name {
            /// The wire name, such as `context_length_exceeded`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)+
                }
            }

            /// The HTTP status that carries this code.
            pub fn http_status(self) -> u16 {
                match self {
                    $(Self::$code => $status,)+
                }
            }
        }
    };
}

codes! {
    /// Why something was refused or failed. Stable: clients may match on [`Code::as_str`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Code {
        /// The request is malformed: not JSON, a field of the wrong type, a value out of range.
        BadRequest = "bad_request", 400;
        /// The prompt and the answer do not fit the tier's context. Named as OpenAI names it, which is what agents look for.
        ContextExceeded = "context_length_exceeded", 400;
        /// The request body is larger than the server accepts.
        PayloadTooLarge = "payload_too_large", 413;
        /// The request body is compressed.
        UnsupportedMediaType = "unsupported_media_type", 415;
        /// The client sent its request too slowly, or stopped in the middle.
        RequestTimeout = "request_timeout", 408;
        /// No token or key, or a wrong one.
        Unauthorized = "unauthorized", 401;
        /// A `Host` or `Origin` header of somewhere else (DNS rebinding, a foreign web page).
        Forbidden = "forbidden", 403;
        /// No such path or object.
        NotFound = "not_found", 404;
        /// The path exists, the method does not.
        MethodNotAllowed = "method_not_allowed", 405;
        /// `previous_response_id` names a response that is not, or no longer, in memory.
        PreviousResponseNotFound = "previous_response_not_found", 400;
        /// A WebSocket has been open for as long as one may be.
        WebsocketConnectionLimitReached = "websocket_connection_limit_reached", 400;
        /// `model` names neither a tier, nor a model, nor `auto`.
        ModelUnknown = "model_unknown", 404;
        /// No such tier in the configuration.
        TierUnknown = "tier_unknown", 404;
        /// The tier's model file does not exist.
        ModelMissing = "model_missing", 503;
        /// The file is not a GGUF model, is truncated, or contradicts itself.
        ModelInvalid = "model_invalid", 503;
        /// A valid model that this engine cannot run.
        ModelUnsupported = "model_unsupported", 503;
        /// A tier has the model loaded: it cannot be deleted now.
        ModelInUse = "model_in_use", 409;
        /// No context is saved under this name.
        ContextUnknown = "context_unknown", 404;
        /// A saved context belongs to another model, template, KV type or version than the one that is to load it.
        ContextMismatch = "context_mismatch", 409;
        /// Another program keeps the file: it is used in place and never changed.
        NotOurs = "not_ours", 409;
        /// No such repository, quant or file on the hub.
        RepositoryUnknown = "repository_unknown", 404;
        /// The server of a model requires a token or an accepted license, or refuses.
        AccessDenied = "access_denied", 403;
        /// A server cannot be reached, or keeps failing.
        Unreachable = "unreachable", 502;
        /// The data received differs from what was announced, in length or hash.
        Corrupt = "corrupt", 502;
        /// The plan does not fit this machine's memory budget.
        OverBudget = "over_budget", 503;
        /// A chain has spent its budget of money for this day, week or month.
        // Not 429, after which clients try again at once.
        BudgetSpent = "budget_spent", 402;
        /// The tier could not be started, or has been stopped after repeated failures.
        TierFailed = "tier_failed", 503;
        /// The tier was stopped while the request waited or ran.
        TierStopped = "tier_stopped", 503;
        /// The worker process ended while it answered.
        WorkerCrashed = "worker_crashed", 502;
        /// The worker did not answer in time.
        WorkerTimeout = "worker_timeout", 504;
        /// The user has paused all tiers.
        Paused = "paused", 503;
        /// Too many requests are waiting.
        Overloaded = "overloaded", 429;
        /// The name or key is already taken.
        Conflict = "conflict", 409;
        /// Another program listens on the address.
        PortTaken = "port_taken", 409;
        /// A tier is being measured, and one measurement would spoil the other.
        Measuring = "measuring", 409;
        /// Another Tierbar host owns the data folder.
        AlreadyRunning = "already_running", 409;
        /// The configuration has a wrong value.
        ConfigInvalid = "config_invalid", 400;
        /// The volume is full or not writable.
        Storage = "storage", 507;
        /// The client or the user ended it.
        Cancelled = "cancelled", 409;
        /// The host is shutting down.
        ShuttingDown = "shutting_down", 503;
        /// A defect of ours. The message says what to report.
        Internal = "internal", 500;
    }
}

impl Code {
    /// OpenAI's coarse `error.type`.
    fn openai_type(self) -> &'static str {
        match self.http_status() {
            401 => "authentication_error",
            402 => "insufficient_quota",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }
}

/// An error that a person can act on: what happened, with its figures, and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Error {
    pub code: Code,
    /// One plain sentence with the figures in it.
    pub message: String,
    /// What to do about it, when that is not obvious from the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Machine-readable figures, such as `prompt_tokens` and `context_tokens`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, Value>,
}

impl Error {
    /// The detail with the seconds after which the same request may succeed.
    pub const RETRY_AFTER: &str = "retry_after_seconds";

    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            details: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Returns what happened and what to do as one text, with `between` before the hint, if there is one.
    pub fn to_text(&self, between: &str) -> String {
        match &self.hint {
            Some(hint) => format!("{}{between}{hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Names the one field that it is about, where the message does not begin with its name in backticks.
    #[must_use]
    pub fn param(self, field: impl Into<Value>) -> Self {
        self.detail(PARAM, field)
    }

    /// The body of the OpenAI dialect and of the admin API: `{"error":{message,type,param,code,hint?,…details}}`.
    /// `param` is the one field that it is about, else `null`.
    ///
    /// Shape: OpenAI API reference, "Error codes"; `hint` and the details are additions that its clients ignore.
    pub fn openai_body(&self) -> Value {
        let mut error = Map::new();
        error.insert("message".into(), json!(self.message));
        error.insert("type".into(), json!(self.code.openai_type()));
        let named = self.details.get(PARAM).cloned();
        let first = || field_of(self.code, &self.message).map(Value::from);
        error.insert(PARAM.into(), named.or_else(first).unwrap_or_default());
        error.insert("code".into(), json!(self.code.as_str()));
        if let Some(hint) = &self.hint {
            error.insert("hint".into(), json!(hint));
        }
        for (name, value) in &self.details {
            error.entry(name).or_insert_with(|| value.clone());
        }
        json!({ "error": error })
    }

    /// Reads a body written by [`Error::openai_body`]; `None` if it is something else.
    pub fn from_openai_body(body: &Value) -> Option<Self> {
        let mut error = body.get("error")?.as_object()?.clone();
        let code = serde_json::from_value(error.remove("code")?).ok()?;
        let message = error.remove("message")?.as_str()?.to_owned();
        let hint = error.remove("hint");
        let hint = hint.and_then(|hint| hint.as_str().map(str::to_owned));
        error.remove("type");
        let param = error.remove(PARAM).unwrap_or_default();
        if param.is_string() && param.as_str() != field_of(code, &message) {
            error.insert(PARAM.to_owned(), param);
        }
        Some(Self {
            code,
            message,
            hint,
            details: error.into_iter().collect(),
        })
    }
}

/// Returns the refusal of a request that is wrong.
pub fn bad_request(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
}

const PARAM: &str = "param";

/// Returns the field of a request whose name, in backticks, a refusal begins with.
fn field_of(code: Code, message: &str) -> Option<&str> {
    const BEFORE: [&str; 3] = [
        "the request is not valid: ",
        "missing field ",
        "duplicate field ",
    ];
    if code != Code::BadRequest {
        return None;
    }
    let plain = BEFORE.iter().fold(message, |message, before| {
        message.strip_prefix(before).unwrap_or(message)
    });
    let (name, _) = plain.strip_prefix('`')?.split_once('`')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (begins && name.bytes().all(is_part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_a_refusal_is_about_is_named() {
        let param = |error: &Error| error.openai_body()["error"]["param"].clone();
        for (message, named) in [
            ("`top_p` is 5; send 0 to 1", json!("top_p")),
            ("`messages[1].role` is \"x\"", json!("messages[1].role")),
            (
                "the request is not valid: `stream`: invalid type",
                json!("stream"),
            ),
            (
                "the request is not valid: missing field `messages`",
                json!("messages"),
            ),
            ("the body is not JSON", Value::Null),
            ("`tierbar setup` is to be run first", Value::Null),
            ("`a-b` is wrong", Value::Null),
            ("`", Value::Null),
            ("``", Value::Null),
        ] {
            let error = Error::new(Code::BadRequest, message);
            assert_eq!(param(&error), named, "{message}");
            assert_eq!(Error::from_openai_body(&error.openai_body()), Some(error));
        }
        let elsewhere = Error::new(Code::ModelUnknown, "`x` is not a model");
        assert_eq!(param(&elsewhere), Value::Null);
        let named = elsewhere.param("model");
        assert_eq!(param(&named), "model");
        assert_eq!(Error::from_openai_body(&named.openai_body()), Some(named));
    }

    #[test]
    fn a_body_reads_back_as_the_error_that_wrote_it() {
        let error = Error::new(Code::ContextExceeded, "5000 tokens do not fit 4096")
            .hint("shorten it")
            .detail("prompt_tokens", 5000);
        assert_eq!(Error::from_openai_body(&error.openai_body()), Some(error));
    }

    #[test]
    fn a_foreign_body_is_not_an_error_of_ours() {
        assert_eq!(
            Error::from_openai_body(&json!({"error": {"code": 400, "message": "x"}})),
            None
        );
        assert_eq!(Error::from_openai_body(&json!({"choices": []})), None);
    }

    #[test]
    fn a_spent_budget_is_no_fault_of_the_request() {
        let error = Error::new(Code::BudgetSpent, "spent").detail("spent", 4.98);
        assert_eq!(error.code.http_status(), 402);
        let body = error.openai_body();
        assert_eq!(body["error"]["type"], "insufficient_quota");
        assert_eq!(body["error"]["spent"], 4.98);
        assert_eq!(Error::from_openai_body(&body), Some(error));
    }

    #[test]
    fn the_wire_name_is_what_serde_writes() {
        assert_eq!(
            serde_json::to_value(Code::BudgetSpent).unwrap(),
            Code::BudgetSpent.as_str()
        );
        assert_eq!(
            serde_json::to_value(Code::ContextExceeded).unwrap(),
            Code::ContextExceeded.as_str()
        );
        assert_eq!(
            serde_json::to_value(Code::AlreadyRunning).unwrap(),
            Code::AlreadyRunning.as_str()
        );
    }
}
