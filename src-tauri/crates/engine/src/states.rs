//! Where conversations are kept, and the key of their states.

use crate::{
    Args, internal_error,
    llama::{Model, model_files},
    saved_contexts::SavedContexts,
    swap::{ConversationSwap, Swapping},
};
use std::{path::PathBuf, sync::Arc};
use tierbar_contexts::{Contexts, Key, SwapFolder, fingerprint, hash};
use tierbar_core::{Error, ModelId, run::Approximation};

/// Opens the contexts that are saved by name, and those that are kept at the end. An embedding model keeps nothing between texts.
pub(crate) fn open_states(
    args: &Args,
    model: &Model,
    template: Option<&str>,
    id: &str,
) -> Result<(Option<Arc<SavedContexts>>, Swapping), Error> {
    let swapped = args.swapped.clone().zip(args.swapped_mib);
    let swapped = swapped.filter(|_| model.pooling().is_none());
    if args.contexts.is_none() && swapped.is_none() {
        return Ok((None, None));
    }
    let key = state_key(args, model, template)?;
    let (id, whole_only) = (ModelId(id.to_owned()), model.forgets());
    let saved = args.contexts.clone().map(|folder| {
        let (contexts, key, id) = (Contexts::new(folder), key.clone(), id.clone());
        Arc::new(SavedContexts::new(contexts, key, id, whole_only, false))
    });
    let swap = swapped.map(|(folder, mib)| {
        let folder = SwapFolder::new(folder, u64::from(mib) << 20);
        let swap = ConversationSwap::new(folder, key, id, whole_only, &args.socket);
        Arc::new(swap)
    });
    Ok((saved, swap))
}

/// Returns the key of the model's states.
fn state_key(args: &Args, model: &Model, template: Option<&str>) -> Result<Key, Error> {
    let fingerprint = fingerprint(model_files(&args.model).iter().map(PathBuf::as_path))
        .map_err(|error| internal_error("the model could not be read again", &error))?;
    Ok(Key {
        model: fingerprint,
        template: hash(template.unwrap_or(&model.template(None).unwrap_or_default())),
        kv_cache: args.kv_cache,
        engine: engine(args),
    })
}

/// Names what computes states. Approximated ones are of no use to an exact engine.
fn engine(args: &Args) -> String {
    let mut name = env!("TIERBAR_LLAMA_CPP").to_owned();
    if args.approximate != Approximation::Off {
        name = format!("{name}, {}", args.approximate.as_str());
    }
    if let Some(count) = args.experts_used {
        name = format!("{name}, {count} experts");
    }
    name
}
