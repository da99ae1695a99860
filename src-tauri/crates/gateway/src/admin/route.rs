//! `POST /tierbar/v1/route`: what `auto` would do with a request, and why, without answering it.

use crate::admin::AdminState;
use axum::{Json, body::Body, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tierbar_core::TierId;
use tierbar_http::{Answer, request::QueryFields};
use tierbar_inference::{
    auto::{self, Classification, RouteInputs},
    body,
};
use tierbar_routing::{
    Judgement, Level,
    classifier::{Opinion, PROBES},
};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RouteQuery {
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

/// What `auto` would do with a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Route {
    level: Level,
    /// `null` if no tier has a model.
    tier: Option<TierId>,
    why: Option<String>,
    rules: Judgement,
    /// `null` if the fast tier's model was not asked.
    classifier: Option<RouteClassifier>,
    /// An estimate.
    prompt_tokens: u64,
    /// An estimate.
    answer_tokens: u64,
}

/// The level by the fast tier's model.
#[derive(Debug, Serialize, ToSchema)]
struct RouteClassifier {
    level: Level,
    /// The probability of `level` above that of the next.
    margin: f64,
    /// Whether the opinion counts: the model has passed its exam, and the margin is wide enough.
    believed: bool,
    /// As the model answered.
    said: Probabilities,
    /// Without the model's bias.
    weighed: Probabilities,
    exam: RouteExam,
}

/// The probability of each level.
#[derive(Debug, Serialize, ToSchema)]
struct Probabilities {
    simple: f64,
    medium: f64,
    hard: f64,
}

/// How the model sorted requests of known levels.
#[derive(Debug, Serialize, ToSchema)]
struct RouteExam {
    right: usize,
    of: usize,
    passed: bool,
}

/// Explains what `auto` would do with a request, without answering it.
#[utoipa::path(
    post,
    path = "/tierbar/v1/route",
    operation_id = "explainRoute",
    reach(Owner, Reads),
    params(RouteQuery),
    request_body(content = Object, description = "A request as for /v1/chat/completions"),
    responses((status = 200, description = "The tier, and why", body = Route)),
)]
pub(super) async fn explain(
    State(admin): AdminState,
    QueryFields(RouteQuery { classify }): QueryFields<RouteQuery>,
    body: Body,
) -> Answer<Route> {
    let request: serde_json::Map<String, Value> = body::request(body).await?;
    let request = Value::Object(request);
    let thorough = classify == Classify::Always;
    let considered = auto::explain(&admin.inference, &request, thorough).await?;
    Ok(Json(Route::new(&considered)))
}

impl Route {
    fn new(considered: &RouteInputs) -> Self {
        let (choice, because) = (considered.choice.as_ref(), &considered.because);
        Self {
            level: considered.level,
            tier: choice.map(|choice| choice.tier.clone()),
            why: choice.map(|choice| format!("{because}; {}", choice.why)),
            rules: considered.judged,
            classifier: considered.classified.as_ref().map(RouteClassifier::new),
            prompt_tokens: considered.asked.prompt_tokens,
            answer_tokens: considered.asked.answer_tokens,
        }
    }
}

impl RouteClassifier {
    fn new(classified: &Classification) -> Self {
        let weighed = classified.weighed();
        let (level, margin) = weighed.first();
        Self {
            level,
            margin,
            believed: classified.believed().is_some(),
            said: Probabilities::from(classified.opinion),
            weighed: Probabilities::from(weighed),
            exam: RouteExam {
                right: classified.exam.right,
                of: PROBES.len(),
                passed: classified.exam.is_passed(),
            },
        }
    }
}

impl From<Opinion> for Probabilities {
    fn from(opinion: Opinion) -> Self {
        let [simple, medium, hard] = opinion.probabilities();
        Self {
            simple,
            medium,
            hard,
        }
    }
}
