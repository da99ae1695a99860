//! Which tier a request's `model` means.

use super::{EMBEDDINGS, RERANK, TOKENS, content::Content};
use std::collections::BTreeSet;
use tierbar_core::{
    Code, Error, ModelId, ModelKind, TierId, TierState, bad_request,
    nearest::suggest,
    status::{EngineKind, TierStatus},
};

/// What Ollama's clients add to a name without a tag.
pub(crate) const LATEST: &str = ":latest";

/// What a model must be for to answer at a path.
pub(crate) fn kind_of(path: &str) -> ModelKind {
    match path {
        EMBEDDINGS => ModelKind::Embedding,
        RERANK => ModelKind::Reranking,
        _ => ModelKind::Chat,
    }
}

/// As [`resolve`], of a request for text, vectors or scores: where it leaves the choice, the tier with a model for that. A chat
/// model embeds if there is no other.
///
/// # Errors
/// As [`resolve`]; `BadRequest` if no tier can rank documents.
pub fn resolve_for(
    kind: ModelKind,
    wanted: Option<&str>,
    tiers: &[TierStatus],
) -> Result<TierId, Error> {
    if !leaves_choice(wanted) || kind == ModelKind::Chat {
        return resolve(wanted, tiers);
    }
    let of_kind = tiers.iter().filter(|tier| tier.kind == kind);
    let found = best(of_kind, |tier| {
        ![TierId::EMBEDDER, TierId::RERANKER].contains(&tier.id.as_str())
    });
    match found {
        Some(found) => Ok(found),
        None if kind == ModelKind::Embedding => resolve(None, tiers),
        None => Err(no_reranker("no tier has a reranking model")),
    }
}

/// Whether the name of a request's model leaves the choice of a tier.
pub fn leaves_choice(wanted: Option<&str>) -> bool {
    matches!(wanted, None | Some("" | TierId::AUTO))
}

/// `wanted` is a tier's name, a model's id or `auto`, which is also what an absent one means: a tier with a chat model. `tiers`
/// are in reading order, so the smallest comes first.
///
/// The states only choose among tiers. Whether the chosen one answers is decided by its owner.
///
/// # Errors
/// `ModelUnknown` with the names that exist; `ModelMissing` if no tier has a model.
pub fn resolve(wanted: Option<&str>, tiers: &[TierStatus]) -> Result<TierId, Error> {
    resolve_by(wanted, tiers, |_| ())
}

/// Returns the name without the tag that says nothing, as tiers, chains and models have it. Another server's model may be known by a
/// name with that tag.
pub fn without_latest_tag<'a>(name: &'a str, tiers: &[TierStatus]) -> &'a str {
    let is_known = |tier: &TierStatus| {
        let model = tier.model.as_ref();
        model.is_some_and(|model| model.as_str() == name)
    };
    match name.strip_suffix(LATEST) {
        Some(plain) if !tiers.iter().any(is_known) => plain,
        _ => name,
    }
}

/// As [`resolve`]; where there is a choice, the tier of the least `drawback` comes first, whatever its state.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_by<D: Ord>(
    wanted: Option<&str>,
    tiers: &[TierStatus],
    drawback: impl Fn(&TierStatus) -> D,
) -> Result<TierId, Error> {
    let wanted = wanted.unwrap_or_default();
    let name = without_latest_tag(wanted, tiers);
    if leaves_choice(Some(name)) {
        let chats = tiers.iter().filter(|tier| tier.kind == ModelKind::Chat);
        return best(chats, drawback).ok_or_else(no_model);
    }
    let named = tiers.iter().find(|tier| tier.id.as_str() == name);
    let named = named.map(|tier| tier.id.clone());
    let of_model = tiers.iter().filter(|tier| is_model_of(tier, name));
    let found = named.or_else(|| best(of_model, drawback));
    found.ok_or_else(|| unknown_name_error(wanted, tiers).param("model"))
}

/// The smaller tier that stands in for the one that was found, while memory is low: for who named the tier, not a model, and
/// whose request it may hold with an answer.
pub fn smaller_tier(
    found: &TierId,
    wanted: Option<&str>,
    tiers: &[TierStatus],
    content: &Content,
) -> Option<TierId> {
    // A token is at least so long in nearly all text; most are twice as long, which leaves room for the answer.
    const BYTES_PER_TOKEN: usize = 2;
    let named = tiers.iter().find(|tier| tier.id == *found)?;
    let by_name = leaves_choice(wanted) || wanted == Some(found.as_str());
    let smaller = named.steps_down_to.as_ref().filter(|_| by_name)?;
    let smaller = tiers.iter().find(|tier| tier.id == *smaller)?;
    let holds = content.prompt_bytes() / BYTES_PER_TOKEN < smaller.context_tokens as usize;
    // It may not see or hear.
    (holds && !content.has_media()).then(|| smaller.id.clone())
}

/// Scores are a reranking model's. Contexts are saved by our own engine alone, and tokens counted by it and by endpoints of Anthropic's dialect, which
/// the call of an endpoint knows; what another server would make of such a request is unknown.
///
/// # Errors
/// `BadRequest` for such a request to a tier with another engine.
pub fn check_engine(id: &TierId, tiers: &[TierStatus], path: &str) -> Result<(), Error> {
    let Some(tier) = tiers.iter().find(|tier| tier.id == *id) else {
        return Ok(());
    };
    match tier.engine {
        EngineKind::Embedded if path == RERANK && tier.kind != ModelKind::Reranking => {
            let model = tier.model.as_ref().map(ModelId::as_str);
            let what = match model {
                Some(model) => format!("{model}, the model of {id}, does not rank documents"),
                None => format!("{id} has no model yet"),
            };
            Err(no_reranker(&what))
        }
        EngineKind::Command if path == TOKENS => Err(not_counted(id.as_str())),
        EngineKind::Command | EngineKind::Endpoint if path.starts_with("/v1/context/") => {
            Err(only_ours(id.as_str(), "contexts are saved"))
        }
        _ => Ok(()),
    }
}

/// The refusal of a server that cannot count tokens.
pub(crate) fn not_counted(who: &str) -> Error {
    only_ours(who, "tokens are counted")
}

fn only_ours(who: &str, what: &str) -> Error {
    let message =
        format!("{who} is served by another program, and {what} by Tierbar's own engine only");
    bad_request(message).hint("name a tier with a local model")
}

/// One that is loaded, else one that may load, else one that has failed and may be tried again. What goes elsewhere comes last:
/// an endpoint is asked by name, or where nothing here could answer.
fn best<'a, D: Ord>(
    tiers: impl Iterator<Item = &'a TierStatus>,
    drawback: impl Fn(&TierStatus) -> D,
) -> Option<TierId> {
    let rank = |tier: &TierStatus| match tier.state {
        TierState::Ready | TierState::Busy => 0,
        TierState::Starting => 1,
        TierState::Stopped | TierState::Stopping => 2,
        TierState::Failed => 3,
    };
    tiers
        .filter(|tier| tier.model.is_some())
        .min_by_key(|tier| {
            let elsewhere = tier.engine == EngineKind::Endpoint;
            (drawback(tier), elsewhere, rank(tier))
        })
        .map(|tier| tier.id.clone())
}

/// Whether it is the name of the tier's model: its id, or another one, as in Ollama's library. `:latest` is the tag of a name
/// without one.
fn is_model_of(tier: &TierStatus, name: &str) -> bool {
    let Some(model) = &tier.model else {
        return false;
    };
    let plain = name.strip_suffix(LATEST).unwrap_or(name);
    let id = model.as_str();
    id == name
        || id == plain.strip_suffix(".gguf").unwrap_or(plain)
        || tier
            .aliases
            .iter()
            .any(|alias| alias.eq_ignore_ascii_case(plain))
}

fn no_reranker(what: &str) -> Error {
    bad_request(what).hint(
        "download a reranking model, such as gpustack/bge-reranker-v2-m3-GGUF, then choose Use as Reranker in Settings > Models, \
         or run `tierbar tier use reranker MODEL`",
    )
}

fn no_model() -> Error {
    Error::new(Code::ModelMissing, "no tier has a model yet")
        .hint("choose a model in Settings > Models, or run `tierbar setup`, or `tierbar tier use fast MODEL`")
}

pub fn unknown_name_error(wanted: &str, tiers: &[TierStatus]) -> Error {
    let mut names = vec![TierId::AUTO.to_owned()];
    names.extend(tiers.iter().map(|tier| tier.id.to_string()));
    let models = tiers.iter().filter_map(|tier| tier.model.as_ref());
    let models: BTreeSet<_> = models.map(ToString::to_string).collect();
    names.extend(models);
    let shown: String = wanted.chars().take(100).collect();
    let use_one = format!("use one of: {}", names.join(", "));
    let aliases = tiers.iter().flat_map(|tier| &tier.aliases);
    let known = names.iter().chain(aliases).map(String::as_str);
    let plain = shown.strip_suffix(LATEST).unwrap_or(&shown);
    let hint = suggest(plain, known, use_one);
    Error::new(
        Code::ModelUnknown,
        format!("there is no model or tier \"{shown}\""),
    )
    .hint(hint)
    .detail("available", names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tier;

    fn resolved(wanted: Option<&str>, tiers: &[TierStatus]) -> Result<String, Code> {
        resolve(wanted, tiers)
            .map(|id| id.to_string())
            .map_err(|error| error.code)
    }

    #[test]
    fn auto_prefers_a_loaded_tier() {
        let mut tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("primary", Some("medium"), TierState::Busy),
            tier("heavy", None, TierState::Stopped),
        ];
        assert_eq!(resolved(None, &tiers), Ok("primary".into()));
        assert_eq!(resolved(Some("auto"), &tiers), Ok("primary".into()));
        tiers[1].state = TierState::Stopped;
        assert_eq!(resolved(Some("auto"), &tiers), Ok("fast".into()));
    }

    #[test]
    fn auto_prefers_local_tiers() {
        let mut tiers = [
            tier("fast", Some("far"), TierState::Ready),
            tier("primary", Some("medium"), TierState::Failed),
        ];
        tiers[0].engine = EngineKind::Endpoint;
        assert_eq!(resolved(Some("auto"), &tiers), Ok("primary".into()));
        assert_eq!(resolved(Some("far"), &tiers), Ok("fast".into()));
        assert_eq!(resolved(Some("auto"), &tiers[..1]), Ok("fast".into()));
    }

    #[test]
    fn auto_skips_tiers_without_a_model_and_avoids_failed_ones() {
        let mut tiers = [
            tier("fast", None, TierState::Stopped),
            tier("primary", Some("medium"), TierState::Failed),
            tier("heavy", Some("large"), TierState::Stopped),
        ];
        assert_eq!(resolved(None, &tiers), Ok("heavy".into()));
        tiers[2].model = None;
        assert_eq!(resolved(None, &tiers), Ok("primary".into()));
        assert_eq!(resolved(None, &tiers[..1]), Err(Code::ModelMissing));
        assert_eq!(resolved(None, &[]), Err(Code::ModelMissing));
    }

    #[test]
    fn a_tiers_name_precedes_a_model_id() {
        let tiers = [
            tier("fast", Some("shared"), TierState::Stopped),
            tier("primary", Some("shared"), TierState::Ready),
            tier("shared", Some("other"), TierState::Stopped),
        ];
        assert_eq!(resolved(Some("shared"), &tiers), Ok("shared".into()));
        assert_eq!(resolved(Some("shared"), &tiers[..2]), Ok("primary".into()));
        assert_eq!(resolved(Some("other.gguf"), &tiers), Ok("shared".into()));
    }

    #[test]
    fn a_tag_that_says_nothing_is_no_part_of_a_name() {
        let tiers = [
            tier("fast", Some("small"), TierState::Ready),
            tier("far", Some("llama3:latest"), TierState::Stopped),
        ];
        for (name, means) in [
            ("fast:latest", "fast"),
            ("auto:latest", "fast"),
            ("small:latest", "fast"),
            ("llama3:latest", "far"),
        ] {
            assert_eq!(resolved(Some(name), &tiers), Ok(means.into()), "{name}");
        }
        assert_eq!(without_latest_tag("thorough:latest", &tiers), "thorough");
        assert_eq!(without_latest_tag("qwen:7b", &tiers), "qwen:7b");
        for unknown in ["llama3", "fast:7b", "gone:latest"] {
            let found = resolved(Some(unknown), &tiers);
            assert_eq!(found, Err(Code::ModelUnknown), "{unknown}");
        }
    }

    #[test]
    fn a_smaller_tier_stands_in_if_the_request_fits() {
        let mut tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("heavy", Some("large"), TierState::Ready),
        ];
        let heavy = tiers[1].id.clone();
        let stands_in = |tiers: &[TierStatus], wanted, bytes| {
            let prompt = " ".repeat(bytes);
            let content = Content::from_fields(serde_json::json!({"prompt": prompt}))
                .unwrap()
                .0;
            smaller_tier(&heavy, wanted, tiers, &content)
        };
        assert_eq!(stands_in(&tiers, Some("heavy"), 100), None);
        tiers[1].steps_down_to = Some(tiers[0].id.clone());
        let fast = Some(tiers[0].id.clone());
        for by_tier in [Some("heavy"), Some("auto"), Some(""), None] {
            assert_eq!(stands_in(&tiers, by_tier, 100), fast, "{by_tier:?}");
        }
        assert_eq!(
            stands_in(&tiers, Some("large"), 100),
            None,
            "it wants this model"
        );
        assert_eq!(
            stands_in(&tiers, Some("heavy"), 2 * 4096),
            None,
            "too long for it"
        );
        let image = serde_json::json!({"messages": [{"content": [{"image_url": {}}]}]});
        let (image, _) = Content::from_fields(image).unwrap();
        assert_eq!(smaller_tier(&heavy, Some("heavy"), &tiers, &image), None);
    }

    #[test]
    fn a_request_goes_to_a_model_for_its_kind() {
        let mut tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("search", Some("vectors"), TierState::Ready),
            tier("embedder", Some("other-vectors"), TierState::Stopped),
            tier("reranker", Some("scores"), TierState::Stopped),
        ];
        tiers[1].kind = ModelKind::Embedding;
        tiers[2].kind = ModelKind::Embedding;
        tiers[3].kind = ModelKind::Reranking;
        let resolved = |kind, wanted, tiers: &[TierStatus]| {
            let found = resolve_for(kind, wanted, tiers);
            found.map(|id| id.to_string()).map_err(|error| error.code)
        };
        for leaves_the_choice in [None, Some(""), Some("auto")] {
            for (kind, id) in [
                (ModelKind::Chat, "fast"),
                (ModelKind::Embedding, "embedder"),
                (ModelKind::Reranking, "reranker"),
            ] {
                let found = resolved(kind, leaves_the_choice, &tiers);
                assert_eq!(found, Ok(id.into()), "{leaves_the_choice:?}");
            }
        }
        let embedding = ModelKind::Embedding;
        assert_eq!(resolved(embedding, Some("fast"), &tiers), Ok("fast".into()));
        assert_eq!(resolved(embedding, None, &tiers[..2]), Ok("search".into()));
        assert_eq!(resolved(embedding, None, &tiers[..1]), Ok("fast".into()));
        assert_eq!(
            resolved(ModelKind::Reranking, None, &tiers[..3]),
            Err(Code::BadRequest)
        );
        assert_eq!(
            resolved(ModelKind::Chat, None, &tiers[1..]),
            Err(Code::ModelMissing)
        );
    }

    #[test]
    fn only_a_reranking_model_ranks() {
        let mut tiers = [tier("fast", Some("small"), TierState::Ready)];
        let fast = tiers[0].id.clone();
        let error = check_engine(&fast, &tiers, RERANK).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert_eq!(
            error.message,
            "small, the model of fast, does not rank documents"
        );
        tiers[0].kind = ModelKind::Reranking;
        assert!(check_engine(&fast, &tiers, RERANK).is_ok());
        tiers[0].kind = ModelKind::Chat;
        tiers[0].engine = EngineKind::Endpoint;
        assert!(check_engine(&fast, &tiers, RERANK).is_ok(), "it knows");
    }

    #[test]
    fn only_our_engine_saves_contexts() {
        let mut tiers = [tier("fast", Some("small"), TierState::Ready)];
        let fast = tiers[0].id.clone();
        for (engine, counts, saves) in [
            (EngineKind::Embedded, true, true),
            (EngineKind::Command, false, false),
            (EngineKind::Endpoint, true, false),
        ] {
            tiers[0].engine = engine;
            assert_eq!(check_engine(&fast, &tiers, TOKENS).is_ok(), counts);
            assert_eq!(
                check_engine(&fast, &tiers, "/v1/context/save").is_ok(),
                saves
            );
            assert!(check_engine(&fast, &tiers, "/v1/completions").is_ok());
        }
    }

    #[test]
    fn a_model_is_found_by_its_other_names() {
        let mut tiers = [
            tier("fast", Some("small"), TierState::Stopped),
            tier("primary", Some("gemma-4-E4B-it-Q4_K_M"), TierState::Ready),
            tier("far", Some("llama3:latest"), TierState::Ready),
        ];
        tiers[1].aliases = ["gemma-4-e4b", "gemma4:e4b", "gemma4"]
            .map(str::to_owned)
            .into();
        for name in [
            "gemma4",
            "gemma4:latest",
            "gemma4:e4b",
            "Gemma4:E4B",
            "gemma-4-e4b",
            "gemma-4-E4B-it-Q4_K_M",
            "gemma-4-E4B-it-Q4_K_M.gguf",
            "gemma-4-E4B-it-Q4_K_M:latest",
        ] {
            assert_eq!(resolved(Some(name), &tiers), Ok("primary".into()), "{name}");
        }
        assert_eq!(resolved(Some("llama3:latest"), &tiers), Ok("far".into()));
        assert_eq!(
            resolved(Some("gemma4:26b"), &tiers),
            Err(Code::ModelUnknown)
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let mut tiers = [tier(
            "primary",
            Some("gemma-4-E4B-it-Q4_K_M"),
            TierState::Ready,
        )];
        tiers[0].aliases = vec!["gemma4:e4b".to_owned()];
        let hint = |name| resolve(Some(name), &tiers).unwrap_err().hint.unwrap();
        for (name, nearest) in [
            ("primery", "primary"),
            ("gemma4:4b", "gemma4:e4b"),
            ("gemma-4-e4b-it-q4_k_s", "gemma-4-E4B-it-Q4_K_M"),
        ] {
            let begins = format!("did you mean {nearest}? use one of: auto, ");
            assert!(hint(name).starts_with(&begins), "{}", hint(name));
        }
        assert!(hint("gpt-5").starts_with("use one of"), "{}", hint("gpt-5"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_known_names() {
        let tiers = [tier("fast", Some("small"), TierState::Ready)];
        let error = resolve(Some("gpt-5"), &tiers).unwrap_err();
        assert_eq!(error.code, Code::ModelUnknown);
        assert_eq!(error.hint.as_deref(), Some("use one of: auto, fast, small"));
        assert_eq!(
            error.details["available"],
            serde_json::json!(["auto", "fast", "small"])
        );
    }
}
