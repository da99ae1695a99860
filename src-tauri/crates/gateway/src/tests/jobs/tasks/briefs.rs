//! A day's lines.

use super::*;
use crate::testing::json;
use axum::{
    body::Body,
    http::{Request, header},
};

const LINES: &str = "{\"time\":\"08:00\",\"level\":\"error\",\"msg\":\"disk 3 is full\"}\n\
    nonsense\n\
    {\"time\":\"09:00\",\"level\":\"error\",\"msg\":\"disk 4 is full\"}\n\
    {\"metric\":\"cpu\",\"value\":0.5}\n";

async fn lines(bench: &Bench, uri: &str, kind: &str, body: impl Into<Body>) -> Response {
    let request = Request::post(uri)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, kind)
        .body(body.into())
        .unwrap();
    bench.send(request).await
}

#[tokio::test]
async fn a_brief_reports_its_counts_and_its_malformed_lines() {
    let (bench, requests) = scripted(|_, request| says_text(request, "Two disks are full.")).await;
    let answer = json(
        bench
            .post(
                "/v1/brief",
                json!({"lines": LINES, "words": 40}).to_string(),
            )
            .await,
    )
    .await;
    assert_eq!(answer["brief"], "Two disks are full.");
    assert_eq!(answer["fallback"], false);
    assert_eq!(
        answer["header"],
        "Subject: 2 errors in 3 entries, 08:00 to 09:00\nType: problem\nUrgency: 2 (today)\n"
    );
    let counted = &answer["aggregate"];
    assert_eq!(
        (
            &counted["entries"],
            &counted["malformed"],
            &counted["first_malformed"]
        ),
        (&json!(3), &json!(1), &json!(2))
    );
    assert_eq!(counted["groups"][0]["message"], "disk # is full");
    assert_eq!(counted["groups"][0]["count"], 2);
    let request = &requests.all()[0];
    assert!(user(request).starts_with("In at most 40 words:"));
    assert_eq!(
        data(request),
        "3 entries, from 08:00 to 09:00; 1 lines could not be read\n\
         2× error: disk 4 is full [08:00 to 09:00]\n\
         metric cpu: 1 values, min 0.5, median 0.5, max 0.5, last 0.5"
    );
    assert!(answer["saved"].as_u64().unwrap() > 20, "{answer}");
}

#[tokio::test]
async fn a_brief_that_no_model_writes_is_the_counts() {
    let (bench, requests) = scripted(|_, request| answer(request, "{\"no\": \"text\"}")).await;
    let body = json!({"lines": LINES, "words": 21}).to_string();
    let answer = json(bench.post("/v1/brief", body).await).await;
    assert_eq!(answer["fallback"], true);
    let brief = answer["brief"].as_str().unwrap();
    assert!(
        brief.ends_with("2× error: disk 4 is full [08:00 to 09:00]"),
        "{brief}"
    );
    assert_eq!(requests.all().len(), 2);
}

#[tokio::test]
async fn a_brief_that_names_no_error_is_the_counts() {
    let (bench, requests) = scripted(|_, request| says_text(request, "All is well.")).await;
    let body = json!({"lines": LINES, "words": 21}).to_string();
    let answer = json(bench.post("/v1/brief", body).await).await;
    assert_eq!(answer["fallback"], true);
    assert!(answer["brief"].as_str().unwrap().contains("disk 4 is full"));
    let asked = requests.texts();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[1].contains("did not name what is wrong"),
        "{}",
        asked[1]
    );
}

#[tokio::test]
async fn lines_may_be_a_field_entries_a_body_or_a_batch() {
    let (bench, _) = scripted(|_, request| says_text(request, "All is well.")).await;
    let entries = json!({"entries": [{"msg": "a"}, "{\"msg\": \"b\"}", 7]}).to_string();
    let answer = json(bench.post("/v1/brief", entries).await).await;
    assert_eq!(
        (
            &answer["aggregate"]["entries"],
            &answer["aggregate"]["malformed"]
        ),
        (&json!(2), &json!(1))
    );

    let mut bytes = LINES.as_bytes().to_vec();
    bytes.extend(b"{\"msg\": \"\xff\"}\n");
    let response = lines(
        &bench,
        "/v1/brief?words=30&model=fast",
        "application/x-ndjson; charset=utf-8",
        bytes,
    )
    .await;
    assert_eq!(response.status(), 200);
    assert_eq!(json(response).await["aggregate"]["entries"], 4);
    let wrong = lines(
        &bench,
        "/v1/brief?words=many",
        "application/x-ndjson",
        LINES,
    )
    .await;
    assert_eq!(wrong.status(), 400);

    let batch = json!({"batch": [{"lines": LINES}, {"lines": ""}, {"entries": [{"msg": "a"}]}]})
        .to_string();
    let answer = json(bench.post("/v1/brief", batch).await).await;
    assert_eq!(answer["failed"], 1);
    assert_eq!(answer["results"][1]["error"]["code"], "bad_request");
    assert_eq!(answer["results"][2]["brief"], "All is well.");
}

#[tokio::test]
async fn a_day_of_many_kinds_is_cut_to_the_context() {
    let (bench, requests) = scripted(|_, request| {
        if data(request).len() > 3000 {
            let error = tierbar_core::Error::new(tierbar_core::Code::ContextExceeded, "too long");
            return refuses(StatusCode::BAD_REQUEST, error.openai_body());
        }
        says_text(request, "Much happened.")
    })
    .await;
    let word = |n: usize| ["ash", "bee", "cod", "dog", "elk"][n % 5];
    let day: String = (0..125)
        .map(|n| {
            format!(
                "{{\"msg\": \"{} {} {} has happened to some of the things that we have here\"}}\n",
                word(n),
                word(n / 5),
                word(n / 25)
            )
        })
        .collect();
    let answer = json(
        bench
            .post("/v1/brief", json!({"lines": day}).to_string())
            .await,
    )
    .await;
    assert_eq!(answer["aggregate"]["more_groups"], 25);
    let last = requests.all().last().map(data).unwrap();
    assert!(
        last.len() <= 3000 && last.contains("more kinds of lines"),
        "{last}"
    );
}
