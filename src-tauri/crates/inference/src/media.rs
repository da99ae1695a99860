//! Images and sound for a tier whose model does not take them: refused before anything is loaded, with what to do.

use super::{Inference, content::Content};
use std::collections::BTreeSet;
use tierbar_core::{Error, Modality, TierId, bad_request, fit::LibraryModel, status::TierStatus};

/// # Errors
/// `BadRequest` if the tier is known not to take the request's images or sound.
pub async fn check(inference: &Inference, tier: &TierId, content: &Content) -> Result<(), Error> {
    let media = content.media();
    if media.is_empty() {
        return Ok(());
    }
    let tiers = inference.tiers.snapshot();
    let Some(tier) = tiers.iter().find(|status| status.id == *tier) else {
        return Ok(());
    };
    let is_refused = |modality: &Modality| tier.takes(*modality) == Some(false);
    if !media.iter().any(is_refused) {
        return Ok(());
    }
    let listed = inference.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let model = models.iter().find(|model| model.tiers.contains(&tier.id));
    Err(refusal(tier, model, &media, &tiers))
}

/// Returns whether the tier is known to take all of them.
pub fn takes(tier: &TierStatus, media: &BTreeSet<Modality>) -> bool {
    media
        .iter()
        .all(|modality| tier.takes(*modality) == Some(true))
}

fn refusal(
    tier: &TierStatus,
    model: Option<&LibraryModel>,
    media: &BTreeSet<Modality>,
    tiers: &[TierStatus],
) -> Error {
    let sent: Vec<_> = media.iter().copied().collect();
    let name = tier.model.as_ref().map_or("the model", |id| id.as_str());
    let mut message = format!(
        "{name} of the {} tier takes {}, and the request has {}",
        tier.id,
        Modality::list(&tier.input_modalities),
        Modality::list(&sent)
    );
    let other = tiers.iter().find(|other| takes(other, media));
    let other = other.map(|other| format!("name the {} tier, which accepts them", other.id));
    let remedy = model.and_then(|model| remedy(model, media));
    if let Some((why, _)) = &remedy {
        message.push_str(&format!(": {why}"));
    }
    let what_to_do = remedy.map(|(_, what_to_do)| what_to_do);
    let hints: Vec<_> = what_to_do.into_iter().chain(other).collect();
    let hint = match hints.as_slice() {
        [] => "send text only, or choose a model that takes them".to_owned(),
        hints => hints.join("; or "),
    };
    bad_request(message).hint(hint)
}

/// Returns what is wrong with the model's projector, and what to do.
fn remedy(model: &LibraryModel, media: &BTreeSet<Modality>) -> Option<(String, String)> {
    let is_downloaded = model.reference.is_some();
    let download = format!("run `tierbar models pull {} --only-media`", model.id);
    if let Some(error) = &model.projector_error {
        let hint = if is_downloaded {
            download
        } else {
            "replace it with the projector that was published with the model".to_owned()
        };
        return Some((error.clone(), hint));
    }
    let takes = |modality: &Modality| model.input_modalities.contains(modality);
    let (why, what_to_do) = match &model.projector {
        Some(_) if media.iter().all(takes) => (
            "there is no room for its projector beside it",
            "choose a smaller context for the tier".to_owned(),
        ),
        Some(_) => return None,
        None if is_downloaded => (
            "its projector is not installed",
            format!("{download}, or choose Add Images and Sound in Models"),
        ),
        None => (
            "it has no projector",
            "put its projector (a file with \"mmproj\" in its name) into its folder".to_owned(),
        ),
    };
    Some((why.to_owned(), what_to_do))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier;
    use serde_json::json;
    use tierbar_core::Code;
    use tierbar_core::TierState;

    const ALL: [Modality; 3] = [Modality::Text, Modality::Image, Modality::Audio];

    fn model(fields: serde_json::Value) -> LibraryModel {
        let mut model = json!({
            "id": "m", "path": "/m.gguf", "size_bytes": 1, "keeper": "tierbar", "account": null, "error": null,
            "reference": null, "sha256": null, "tiers": ["fast"], "fit": null, "input_modalities": ["text"],
        });
        let fields = fields.as_object().unwrap().clone();
        model.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(model).unwrap()
    }

    #[test]
    fn a_refusal_says_what_is_missing_and_what_to_do() {
        let mut tiers = [
            tier("fast", Some("m"), TierState::Stopped),
            tier("primary", Some("n"), TierState::Stopped),
        ];
        tiers[0].input_modalities = vec![Modality::Text];
        let media = BTreeSet::from([Modality::Image]);
        let refused = |fields, tiers: &[TierStatus]| {
            let error = refusal(&tiers[0], Some(&model(fields)), &media, tiers);
            assert_eq!(error.code, Code::BadRequest);
            (error.message, error.hint.unwrap())
        };
        for (fields, why, hint) in [
            (json!({}), "it has no projector", "into its folder"),
            (
                json!({"reference": "a/b:Q4_0"}),
                "not installed",
                "tierbar models pull m --only-media",
            ),
            (
                json!({"projector_error": "mmproj.gguf is incomplete", "reference": "a/b"}),
                "mmproj.gguf is incomplete",
                "tierbar models pull m --only-media",
            ),
            (
                json!({"projector": "/mmproj.gguf", "input_modalities": ["text", "image"]}),
                "no room for its projector",
                "smaller context",
            ),
        ] {
            let (message, rendered) = refused(fields, &tiers);
            assert!(
                message.starts_with("m of the fast tier takes text, and the request has images")
            );
            assert!(message.contains(why), "{message}");
            assert!(rendered.contains(hint), "{rendered}");
        }
        tiers[1].input_modalities = ALL.to_vec();
        let (_, hint) = refused(json!({}), &tiers);
        assert!(
            hint.ends_with("name the primary tier, which accepts them"),
            "{hint}"
        );
        assert!(takes(&tiers[1], &media) && !takes(&tiers[0], &media));
    }
}
