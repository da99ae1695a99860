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
