//! Where conversations are kept, and the key of their states.

use crate::{
    Args, internal_error,
    llama::{Model, Pooling, model_files},
    saved_contexts::{SavedContexts, StatePurpose},
    swap::{ConversationSwap, Swapping},
};
use std::{path::PathBuf, sync::Arc};
use tierbar_contexts::{Contexts, Key, SwapFolder, fingerprint, hash};
use tierbar_core::{Error, ModelId, run::Approximation};

pub(crate) fn open_saved_contexts(
    args: &Args,
    model: &Model,
    template: Option<&str>,
    id: &str,
) -> Result<Option<Arc<SavedContexts>>, Error> {
    let Some(folder) = &args.contexts else {
        return Ok(None);
    };
    let key = state_key(args, model, template)?;
    let contexts = Contexts::new(folder.clone());
    let id = ModelId(id.to_owned());
    let saved = SavedContexts::new(contexts, key, id, model.forgets(), StatePurpose::Named);
    Ok(Some(Arc::new(saved)))
}

/// An embedding model keeps nothing between texts.
pub(crate) fn open_swap(
    args: &Args,
    model: &Model,
    template: Option<&str>,
    id: &str,
    pooling: Option<Pooling>,
) -> Result<Swapping, Error> {
    let (Some(folder), Some(mib), None) = (&args.swapped, args.swapped_mib, pooling) else {
        return Ok(None);
    };
    let folder = SwapFolder::new(folder.clone(), u64::from(mib) << 20);
    let key = state_key(args, model, template)?;
    let id = ModelId(id.to_owned());
    let swap = ConversationSwap::new(folder, key, id, model.forgets(), &args.socket);
    Ok(Some(Arc::new(swap)))
}

/// Returns the key of the model's states.
fn state_key(args: &Args, model: &Model, template: Option<&str>) -> Result<Key, Error> {
    let fingerprint = fingerprint(model_files(&args.model).iter().map(PathBuf::as_path))
        .map_err(|error| internal_error("the model could not be read again", &error))?;
    Ok(Key {
        model: fingerprint,
        template: hash(template.unwrap_or(&model.chat_template())),
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
