//! Whether another program's success is an answer: proxies return pages, and some servers report a failure with status 200.

use super::attempt::AttemptFailure;
use crate::{original::Form, request::is_generated, wire};
use http::{StatusCode, header, response::Parts};
use serde::{Deserialize, de::IgnoredAny};
use tierbar_core::{Code, Error, TierId, chain::Outcome};

/// Vectors may be large: nothing is kept of them.
#[derive(Deserialize)]
struct Envelope {
    error: Option<IgnoredAny>,
    /// Of OpenAI's completions, Anthropic's messages and OpenAI's responses.
    choices: Option<Vec<IgnoredAny>>,
    content: Option<IgnoredAny>,
    output: Option<IgnoredAny>,
}

/// The failure of a server that has sent this in place of an answer.
pub(super) fn no_answer(tier: &TierId, what: &str) -> AttemptFailure {
    let message = format!("the server of {tier} answered with {what}");
    AttemptFailure {
        error: Error::new(Code::Unreachable, message)
            .hint("check that the address is that of its API, then try again"),
        outcome: Outcome::Failed,
    }
}

/// What is wrong with a success. A whole answer is an object; one of words has a choice, or what its form has instead.
pub(super) fn fault(
    tier: &TierId,
    path: &str,
    form: Form,
    head: &Parts,
    body: &[u8],
) -> Option<AttemptFailure> {
    let Ok(answer) = serde_json::from_slice::<Envelope>(body) else {
        let kind = head.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let what = match kind {
            _ if body.is_empty() => format!("nothing ({})", head.status),
            Some(kind) => format!("{kind:.100}, which is not an answer"),
            None => "something that is not an answer".to_owned(),
        };
        return Some(no_answer(tier, &what));
    };
    if answer.error.is_some() {
        return Some(failure(wire::error(StatusCode::OK, body)));
    }
    let has_answer = match form {
        Form::Chat => answer.choices.is_some_and(|choices| !choices.is_empty()),
        Form::Messages => answer.content.is_some(),
        Form::Responses => answer.output.is_some(),
    };
    let lacks_one = is_generated(path) && !has_answer;
    lacks_one.then(|| no_answer(tier, "JSON without an answer"))
}

/// A failure that a server reports with a successful status: in its body, or in an event.
pub(super) fn failure(error: Error) -> AttemptFailure {
    let outcome = match error.code {
        Code::Overloaded => Outcome::Limited { for_ms: None },
        Code::BadRequest | Code::ContextExceeded | Code::ModelUnknown | Code::PayloadTooLarge => {
            Outcome::Unfit
        }
        _ => Outcome::Failed,
    };
    AttemptFailure { error, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CHAT;
    use http::Response;
    use serde_json::{Value, json};

    fn read(path: &str, kind: Option<&str>, body: &str) -> Option<AttemptFailure> {
        let mut response = Response::builder();
        if let Some(kind) = kind {
            response = response.header(header::CONTENT_TYPE, kind);
        }
        let (head, ()) = response.body(()).unwrap().into_parts();
        let cloud = TierId::new("cloud").unwrap();
        fault(&cloud, path, Form::Chat, &head, body.as_bytes())
    }

    #[test]
    fn a_success_without_an_answer_is_a_failure() {
        for (kind, body, said) in [
            (
                Some("text/html"),
                "<html>Login</html>",
                "with text/html, which is not an answer",
            ),
            (None, "", "with nothing (200 OK)"),
            (Some("text/plain"), "data: {}", "with text/plain, which"),
            (None, "[1]", "with something that is not an answer"),
            (
                Some("application/json"),
                "{}",
                "with JSON without an answer",
            ),
            (
                Some("application/json"),
                "{\"choices\": []}",
                "with JSON without an answer",
            ),
        ] {
            let failed = read(CHAT, kind, body).unwrap();
            assert_eq!(failed.outcome, Outcome::Failed);
            assert_eq!(failed.error.code, Code::Unreachable);
            assert!(failed.error.message.contains(said), "{}", failed.error);
        }
        let answer = json!({"choices": [{"message": {"content": ""}}], "error": null}).to_string();
        assert!(read(CHAT, None, &answer).is_none());
        assert!(read("/v1/embeddings", None, "{\"data\": []}").is_none());
    }

    #[test]
    fn an_error_body_in_a_success_is_an_error() {
        let reply = |code: Value| {
            let body = json!({"error": {"message": "quota gone", "code": code}}).to_string();
            let failed = read(CHAT, None, &body).unwrap();
            assert_eq!(failed.error.message, "quota gone");
            (failed.error.code, failed.outcome)
        };
        let limited = (Code::Overloaded, Outcome::Limited { for_ms: None });
        assert_eq!(reply(json!(429)), limited);
        assert_eq!(reply(json!("rate_limit_exceeded")), limited);
        assert_eq!(reply(json!(400)), (Code::BadRequest, Outcome::Unfit));
        assert_eq!(reply(json!(402)), (Code::Unreachable, Outcome::Failed));
        assert_eq!(reply(json!(null)), (Code::Unreachable, Outcome::Failed));
    }
}
