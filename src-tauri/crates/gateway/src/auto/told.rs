//! `POST /tierbar/v1/route`: what `auto` would do with a request, and why, without answering it.

use super::{Considered, classifier, consider, seats, weigh};
use crate::{Gateway, body, error::Failure};
use axum::{
    Json,
    body::Body,
    extract::{Query, State},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{
    Code, Error,
    routing::{
        Asked, Level,
        classifier::{Opinion, PROBES},
        judge,
    },
};

#[derive(Debug, Deserialize)]
pub(crate) struct Wish {
    #[serde(default)]
    classify: Classify,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Classify {
    /// As for a request: where no rule knows, and only if it is quick.
    #[default]
    Auto,
    /// Whatever the rules say, and whatever it takes.
    Always,
}

pub(crate) async fn tell(
    State(gateway): State<Arc<Gateway>>,
    Query(wish): Query<Wish>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    let request: serde_json::Map<String, Value> = body::parse(&body)?;
    let request = Value::Object(request);
    let tiers = gateway.tiers.snapshot();
    let considered = match wish.classify {
        Classify::Auto => consider(&gateway, true, &request, &tiers).await,
        Classify::Always => {
            let fast = classifier::of_fast(&tiers);
            let fast = fast.and_then(|fast| Some((&fast.id, fast.model.as_ref()?)));
            let (id, model) = fast.ok_or_else(|| {
                Error::new(Code::ModelMissing, "the tier \"fast\" has no model here")
                    .hint("give it one, or leave out classify=always")
            })?;
            let asked = Asked::of(&request);
            let said = classifier::thoroughly(&gateway, id, model, &asked.text).await?;
            let judged = judge(&asked);
            let seats = seats::of(&gateway, &tiers, &asked).await;
            weigh(&gateway, asked, judged, Some(said), &seats)
        }
    };
    Ok(Json(told(&considered)))
}

fn told(considered: &Considered) -> Value {
    let Considered {
        asked,
        judged,
        said,
        level,
        because,
        choice,
    } = considered;
    let classifier = said.map(|said| {
        let (level, margin) = said.weighed().first();
        json!({
            "level": level,
            "margin": margin,
            "believed": said.believed().is_some(),
            "said": probabilities(said.opinion),
            "weighed": probabilities(said.weighed()),
            "exam": {"right": said.exam.right, "of": PROBES.len(), "passed": said.exam.is_passed()},
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
