//! The part of a model on the GPU, on simulated Macs.

use crate::{FAST, arguments_of};
use reqwest::Method;
use serde_json::{Value, json};
use tierbar_core::TierState;
use tierbar_tests::serving::Data;

/// Returns the GPU share in the starter model's verdict, and the arguments of the worker that loads it.
async fn loaded_beside(working_set: &str) -> (Value, String) {
    let data = Data::new(FAST).with("TIERBAR_SIMULATE_METAL", working_set);
    let host = data.serve().await;
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    let share = listed["models"][0]["fit"]["gpu"].clone();
    let answer = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(answer.status(), 200);
    let tier = host
        .tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    (share, arguments_of(tier.pid.unwrap()))
}

#[tokio::test]
async fn a_small_working_set_gets_the_verdicts_gpu_layers() {
    let (share, arguments) = loaded_beside("640MiB").await;
    let layers = share["layers"].as_u64().unwrap();
    assert!((1..30).contains(&layers), "{share}");
    assert!(
        arguments
            .trim_end()
            .ends_with(&format!(" --gpu-layers {layers}")),
        "{arguments}"
    );
}

#[tokio::test]
async fn gpu_layers_are_passed_only_for_a_partial_offload() {
    let (share, arguments) = loaded_beside("11.8GiB").await;
    assert_eq!(share["layers"], share["layers_all"]);
    assert!(
        arguments.contains("--model ") && !arguments.contains("--gpu-layers"),
        "{arguments}"
    );
    let (share, arguments) = loaded_beside("0").await;
    assert!(share.is_null(), "{share}");
    assert!(
        arguments.contains("--model ") && !arguments.contains("--gpu-layers"),
        "{arguments}"
    );
}
