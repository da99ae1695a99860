//! `GET /` for a program, such as curl: what is here, in a few lines. A browser gets the page.

use crate::edge::origin::OverTls;
use axum::{
    body::Body,
    http::{Method, Request, header},
    response::{IntoResponse, Response},
};

/// Returns whether a request wants text and not the page, which browsers name in `Accept`.
pub(crate) fn is_wanted(request: &Request<Body>) -> bool {
    let mut accepted = request.headers().get_all(header::ACCEPT).iter();
    [Method::GET, Method::HEAD].contains(request.method())
        && request.uri().path() == "/"
        && !accepted.any(|accepted| {
            let accepted = String::from_utf8_lossy(accepted.as_bytes());
            accepted.to_ascii_lowercase().contains("text/html")
        })
}

/// Returns the addresses for each kind of client, as this request reached the server.
pub(crate) fn answer(request: &Request<Body>) -> Response {
    let scheme = match request.extensions().get::<OverTls>() {
        Some(OverTls) => "https",
        None => "http",
    };
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|found| found.as_str());
    let host = authority.or(host).unwrap_or("localhost");
    let base = format!("{scheme}://{host}");
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "Tierbar {version} is running.

  OpenAI clients      {base}/v1
  Anthropic clients   {base}
  Ollama clients      {base}

  models              GET /v1/models
  every route         GET /openapi.json
  window              open {base} in a browser
  a client's settings tierbar connect

Try it:
  curl {base}/v1/chat/completions -d '{{\"model\": \"auto\", \"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'
"
    );
    ([(header::VARY, "accept")], text).into_response()
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, text};
    use axum::{
        body::Body,
        http::{Request, header},
    };

    async fn get(bench: &Bench, accept: Option<&str>) -> (String, String) {
        let mut request = Request::get("/").header("host", "127.0.0.1:11435");
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let response = bench.send(request.body(Body::empty()).unwrap()).await;
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
        (kind.to_owned(), text(response).await)
    }

    #[tokio::test]
    async fn no_other_method_gets_the_text() {
        let bench = Bench::new("127.0.0.1:11435").await;
        for method in ["POST", "DELETE", "BREW"] {
            let request = Request::builder().method(method).uri("/");
            let request = request.header("host", "127.0.0.1:11435");
            let response = bench.send(request.body(Body::empty()).unwrap()).await;
            assert!(response.status().is_client_error(), "{method}");
        }
    }

    #[tokio::test]
    async fn programs_get_text_and_browsers_the_page() {
        let bench = Bench::new("127.0.0.1:11435").await;
        for accept in [None, Some("*/*"), Some("application/json")] {
            let (kind, text) = get(&bench, accept).await;
            assert_eq!(kind, "text/plain; charset=utf-8");
            assert!(
                text.contains("OpenAI clients      http://127.0.0.1:11435/v1\n"),
                "{text}"
            );
            assert!(
                text.contains("curl http://127.0.0.1:11435/v1/chat/completions"),
                "{text}"
            );
        }
        let (kind, _) = get(&bench, Some("text/html,application/xhtml+xml,*/*;q=0.8")).await;
        assert_eq!(kind, "text/html; charset=utf-8");
    }
}
