//! One closed set of error codes, and the one place that turns a code into a response body.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Why something was refused or failed. Stable: clients may match on [`Code::as_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request is malformed: not JSON, a field of the wrong type, a value out of range.
    BadRequest,
    /// The prompt and the answer do not fit the tier's context. Named as OpenAI names it, which is what agents look for.
    #[serde(rename = "context_length_exceeded", alias = "context_exceeded")]
    ContextExceeded,
    /// The request body is larger than the server accepts.
    PayloadTooLarge,
    /// The request body is compressed.
    UnsupportedMediaType,
    /// The client sent its request too slowly, or stopped in the middle.
    RequestTimeout,
    /// No token or key, or a wrong one.
    Unauthorized,
    /// A `Host` or `Origin` header of somewhere else (DNS rebinding, a foreign web page).
    Forbidden,
    /// No such path or object.
    NotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// `previous_response_id` names a response that is not, or no longer, in memory.
    PreviousResponseNotFound,
    /// A WebSocket has been open for as long as one may be.
    WebsocketConnectionLimitReached,
    /// `model` names neither a tier, nor a model, nor `auto`.
    ModelUnknown,
    /// No such tier in the configuration.
    TierUnknown,
    /// The tier's model file does not exist.
    ModelMissing,
    /// The file is not a GGUF model, is truncated, or contradicts itself.
    ModelInvalid,
    /// A valid model that this engine cannot run.
    ModelUnsupported,
    /// A tier has the model loaded: it cannot be deleted now.
    ModelInUse,
    /// No context is saved under this name.
    ContextUnknown,
    /// A saved context belongs to another model, template, KV type or version than the one that is to load it.
    ContextMismatch,
    /// Another program keeps the file: it is used in place and never changed.
    NotOurs,
    /// No such repository, quant or file on the hub.
    RepositoryUnknown,
    /// The server of a model requires a token or an accepted license, or refuses.
    AccessDenied,
    /// A server cannot be reached, or keeps failing.
    Unreachable,
    /// The data received differs from what was announced, in length or hash.
    Corrupt,
    /// The plan does not fit this machine's memory budget.
    OverBudget,
    /// A chain has spent its budget of money for this day, week or month.
    BudgetSpent,
    /// The tier could not be started, or has been stopped after repeated failures.
    TierFailed,
    /// The tier was stopped while the request waited or ran.
    TierStopped,
    /// The worker process ended while it answered.
    WorkerCrashed,
    /// The worker did not answer in time.
    WorkerTimeout,
    /// The user has paused all tiers.
    Paused,
    /// Too many requests are waiting.
    Overloaded,
    /// The name or key is already taken.
    Conflict,
    /// Another program listens on the address.
    PortTaken,
    /// A tier is being measured, and one measurement would spoil the other.
    Measuring,
    /// Another Tierbar host owns the data folder.
    AlreadyRunning,
    /// The configuration has a wrong value.
    ConfigInvalid,
    /// The volume is full or not writable.
    Storage,
    /// The client or the user ended it.
    Cancelled,
    /// The host is shutting down.
    ShuttingDown,
    /// A defect of ours. The message says what to report.
    Internal,
}

impl Code {
    /// The wire name, such as `context_length_exceeded`.
    pub fn as_str(self) -> &'static str {
        self.on_the_wire().0
    }

    /// The HTTP status that carries this code.
    pub fn http_status(self) -> u16 {
        self.on_the_wire().1
    }

    fn on_the_wire(self) -> (&'static str, u16) {
        match self {
            Self::BadRequest => ("bad_request", 400),
            Self::ContextExceeded => ("context_length_exceeded", 400),
            Self::PayloadTooLarge => ("payload_too_large", 413),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415),
            Self::RequestTimeout => ("request_timeout", 408),
            Self::Unauthorized => ("unauthorized", 401),
            Self::Forbidden => ("forbidden", 403),
            Self::NotFound => ("not_found", 404),
            Self::MethodNotAllowed => ("method_not_allowed", 405),
            Self::PreviousResponseNotFound => ("previous_response_not_found", 400),
            Self::WebsocketConnectionLimitReached => ("websocket_connection_limit_reached", 400),
            Self::ModelUnknown => ("model_unknown", 404),
            Self::TierUnknown => ("tier_unknown", 404),
            Self::ModelMissing => ("model_missing", 503),
            Self::ModelInvalid => ("model_invalid", 503),
            Self::ModelUnsupported => ("model_unsupported", 503),
            Self::ModelInUse => ("model_in_use", 409),
            Self::ContextUnknown => ("context_unknown", 404),
            Self::ContextMismatch => ("context_mismatch", 409),
            Self::NotOurs => ("not_ours", 409),
            Self::RepositoryUnknown => ("repository_unknown", 404),
            Self::AccessDenied => ("access_denied", 403),
            Self::Unreachable => ("unreachable", 502),
            Self::Corrupt => ("corrupt", 502),
            Self::OverBudget => ("over_budget", 503),
            // Not 429, after which clients try again at once.
            Self::BudgetSpent => ("budget_spent", 402),
            Self::TierFailed => ("tier_failed", 503),
            Self::TierStopped => ("tier_stopped", 503),
            Self::WorkerCrashed => ("worker_crashed", 502),
            Self::WorkerTimeout => ("worker_timeout", 504),
            Self::Paused => ("paused", 503),
            Self::Overloaded => ("overloaded", 429),
            Self::Conflict => ("conflict", 409),
            Self::PortTaken => ("port_taken", 409),
            Self::Measuring => ("measuring", 409),
            Self::AlreadyRunning => ("already_running", 409),
            Self::ConfigInvalid => ("config_invalid", 400),
            Self::Storage => ("storage", 507),
            Self::Cancelled => ("cancelled", 409),
            Self::ShuttingDown => ("shutting_down", 503),
            Self::Internal => ("internal", 500),
        }
    }

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
    fn a_code_by_its_former_name_is_still_read() {
        let read: Code = serde_json::from_value(json!("context_exceeded")).unwrap();
        assert_eq!(read, Code::ContextExceeded);
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
