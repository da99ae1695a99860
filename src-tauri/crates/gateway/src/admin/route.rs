//! `POST /tierbar/v1/route`: what `auto` would do with a request, and why, without answering it.

use crate::{
    admin::Admin,
    http::{body, error::Failure, schema::Errors},
    inference::auto::{self, Considered},
};
use axum::{
    Json,
    body::Body,
    extract::{Query, State},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::routing::{
    Level,
    classifier::{Opinion, PROBES},
};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Question {
    #[serde(default)]
    #[param(inline)]
    classify: Classify,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Classify {
    /// As for a request: where no rule decides, and only if the answer is quick.
    #[default]
    Auto,
    /// Whatever the rules say, and however long it takes.
    Always,
}

/// Explains what `auto` would do with a request, without answering it.
#[utoipa::path(
    post,
    path = "/tierbar/v1/route",
    tag = "owner",
    operation_id = "explainRoute",
    security(("token" = [])),
    params(Question),
    request_body(content = Object, description = "A request as for /v1/chat/completions"),
    responses((status = 200, description = "The tier, and why", body = Object), Errors),
)]
pub(super) async fn explain(
    State(admin): State<Arc<Admin>>,
    Query(question): Query<Question>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let request: serde_json::Map<String, Value> = body::request(body).await?;
    let request = Value::Object(request);
    let thorough = question.classify == Classify::Always;
    let considered = auto::explain(&admin.inference, &request, thorough).await?;
    Ok(Json(render(&considered)))
}

fn render(considered: &Considered) -> Value {
    let Considered {
        asked,
        judged,
        classified,
        level,
        because,
        choice,
    } = considered;
    let classifier = classified.map(|classified| {
        let (level, margin) = classified.weighed().first();
        json!({
            "level": level,
            "margin": margin,
            "believed": classified.believed().is_some(),
            "said": probabilities(classified.opinion),
            "weighed": probabilities(classified.weighed()),
            "exam": {"right": classified.exam.right, "of": PROBES.len(), "passed": classified.exam.is_passed()},
        })
    });
    json!({
        "level": level,
        "tier": choice.as_ref().map(|choice| &choice.tier),
        "why": choice.as_ref().map(|choice| format!("{because}; {}", choice.why)),
        "rules": {"level": judged.level, "sure": judged.sure, "because": judged.because},
        "classifier": classifier,
        "prompt_tokens": asked.prompt_tokens,
        "answer_tokens": asked.answer_tokens,
    })
}

fn probabilities(opinion: Opinion) -> Value {
    let [simple, medium, hard] = opinion.probabilities();
    let [one, two, three] = Level::ALL.map(Level::word);
    json!({one: simple, two: medium, three: hard})
}
