//! What the worker loads, as its arguments say: the model, its context, its draft model, and its projector.

use crate::{
    Args, announce, bad,
    generate::{Drafter, MOST_DRAFTED},
    internal_error,
    llama::{
        Context, ContextParams, CpuWeights, DraftModel, ExpertsUsed, Model, PagingMode,
        PagingOptions, Pooling, Projector, ProjectorParams, Weights,
    },
    media,
    pause::Pause,
    platform, request, trial,
    turns::Turns,
};
use std::{fs, path::PathBuf, sync::Arc};
use tierbar_contexts::fingerprint;
use tierbar_core::{Code, Error, ModelAccount, worker::Handshake};

/// The number of texts that an embedding model evaluates together.
const EMBEDDED_AT_ONCE: u16 = 16;

/// llama.cpp allocates a row of logits for each output token, even for models without logits.
const MOST_OUTPUT_BYTES: usize = 1 << 30;

/// # Errors
/// As [`experts_used`].
pub(crate) fn placed_weights(args: &Args, account: &ModelAccount) -> Result<Weights, Error> {
    Ok(Weights {
        gpu_layers: args.gpu_layers,
        mapped: args.mapped,
        off_gpu: match args.layer_cache_mib {
            Some(_) => Some(CpuWeights::FeedForward),
            None => args.experts_on_cpu.then_some(CpuWeights::Experts),
        },
        experts_used: experts_used(args, account)?,
    })
}

pub(crate) fn load_model(
    args: &Args,
    account: &ModelAccount,
    weights: Weights,
) -> Result<Model, Error> {
    let map = || {
        Model::load(&args.model, weights, &|percent| {
            announce(&Handshake::Loading(percent));
        })
    };
    // Prefaulting a model larger than RAM evicts its own pages.
    let mut model = if args.mapped {
        platform::map_lazily(map)
    } else {
        map()
    }?;
    if let Some(keeping) = paging_mode(args) {
        let manner = PagingOptions {
            keeping,
            approximation: args.approximate,
            trace: args.expert_trace.as_deref(),
        };
        model.page(&args.model, account, manner)?;
    }
    Ok(model)
}

fn paging_mode(args: &Args) -> Option<PagingMode> {
    let bytes = |mib: u32| u64::from(mib) << 20;
    match (args.expert_cache_mib, args.layer_cache_mib) {
        (Some(mib), _) => Some(PagingMode::Cache { bytes: bytes(mib) }),
        (_, Some(mib)) => Some(PagingMode::Layers { bytes: bytes(mib) }),
        _ => args.announce_experts.then_some(PagingMode::System),
    }
}

/// # Errors
/// [`Code::BadRequest`] if they are not fewer than the model's.
fn experts_used(args: &Args, account: &ModelAccount) -> Result<Option<ExpertsUsed>, Error> {
    let Some(count) = args.experts_used else {
        return Ok(None);
    };
    if count >= account.experts_used {
        return Err(bad(format!(
            "{} uses {} experts for a token, and {count} are not fewer",
            args.model.display(),
            account.experts_used
        )));
    }
    let used = ExpertsUsed::new(&account.architecture, account.experts_used, count);
    Ok(Some(used))
}

pub(crate) fn context_params(
    args: &Args,
    model: &Model,
    weights: Weights,
    threads: u16,
) -> ContextParams {
    let pooling = model.pooling();
    ContextParams {
        tokens: context_tokens(args, model, pooling),
        sequences: if pooling.is_some() {
            EMBEDDED_AT_ONCE.max(args.slots)
        } else {
            args.slots
        },
        // Beyond one for each slot, for drafted tokens or for those of a prompt whose probabilities are asked for.
        outputs: u32::from(args.slots) + MOST_DRAFTED,
        pooling,
        kv_cache: args.kv_cache,
        batch: args.batch,
        threads,
        gpu_takes_over: args.gpu_prompts || args.gpu_layers.is_none() && weights.off_gpu.is_none(),
    }
}

/// Returns what predicts tokens, if anything does.
pub(crate) fn load_drafter(
    args: &Args,
    weights: Weights,
    params: ContextParams,
    large: &Model,
    beside: &Context,
) -> Result<Option<Drafter>, Error> {
    let Some(path) = &args.draft_model else {
        return Ok(args.lookup.then(|| Drafter::new(None)));
    };
    tierbar_gguf::read(path)?;
    // What is said of experts is said of the large one's.
    let weights = Weights {
        experts_used: None,
        ..weights
    };
    let small = Arc::new(Model::load(path, weights, &|_| ())?);
    let params = ContextParams {
        sequences: 1,
        outputs: 1,
        ..params
    };
    let context = Context::new(Arc::clone(&small), params, Some(beside))?;
    let model = DraftModel::new(context, &small, large)?;
    Ok(Some(Drafter::new(Some(model))))
}

/// Loads the media reader. If the projector is unusable, the model still answers text, and images get the error.
pub(crate) fn open_media_reader(
    args: &Args,
    model: &Arc<Model>,
    threads: u16,
    turns: Arc<Turns>,
    pause: &Arc<Pause>,
) -> Result<media::MediaReader, Error> {
    let path = args.projector.as_ref().ok_or_else(request::text_only)?;
    let load = || -> Result<media::MediaReader, Error> {
        // Our own reader validates its header first, because llama.cpp asserts on it.
        let account = tierbar_gguf::projector(path)?;
        let fingerprint = fingerprint([path.as_path()])
            .map_err(|error| internal_error("the projector could not be read", &error))?;
        trial::try_projector(args, path)?;
        let gpu = args.gpu_layers != Some(0);
        let context = args.context.min(model.context_train());
        let sight = account.vision.as_ref();
        let params = ProjectorParams {
            threads,
            gpu,
            most_rows: sight.and_then(|sight| sight.most_rows(context, args.batch)),
            turns,
            pause: Arc::clone(pause),
            warmup: false,
        };
        let projector = Projector::load(path, Arc::clone(model), params)?;
        Ok(media::MediaReader::new(projector, fingerprint, args.batch))
    };
    load().inspect_err(|error| tracing::warn!("{}", error.message))
}

/// Returns the context size: as requested, limited by the model and, for embeddings of whole texts, by the outputs.
fn context_tokens(args: &Args, model: &Model, pooling: Option<Pooling>) -> u32 {
    let tokens = args.context.min(model.context_train());
    if !pooling.is_some_and(Pooling::takes_whole) {
        // llama.cpp pads a context's cells but not its batches, which would then be smaller than the context.
        return tokens.checked_next_multiple_of(256).unwrap_or(tokens);
    }
    let row = model.vocabulary().max(1) * size_of::<f32>();
    tokens.min(u32::try_from(MOST_OUTPUT_BYTES / row).unwrap_or(u32::MAX))
}

/// Returns the chat template to use instead of the model's own.
pub(crate) fn read_template(args: &Args) -> Result<Option<String>, Error> {
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|error| {
            let shown = path.display();
            let message = format!("the chat template {shown} cannot be read: {error}");
            Error::new(Code::ConfigInvalid, message)
        })
    };
    args.chat_template.as_ref().map(read).transpose()
}
