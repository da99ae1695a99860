//! `tierbar-worker`: one model, one process. Loads a GGUF with llama.cpp and serves it over a Unix socket.
//!
//! It prints the progress and result of the load (`core::worker::Handshake`). It ends with its parent, when stdin closes, and
//! on SIGTERM, once the conversations in memory are written.

mod generate;
mod llama;
mod loading;
mod media;
mod pause;
mod platform;
mod request;
mod saved_contexts;
mod saved_state;
mod serve;
mod states;
mod swap;
#[cfg(test)]
mod testing;
mod text;
mod trial;
mod trims;
mod turns;

use clap::Parser;
use generate::{Controls, Generations};
use llama::{Backend, ChatTemplate, Context};
use pause::Pause;
use serve::Engine;
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, mpsc},
};
use tierbar_core::{
    Code, Error,
    budget::{MICRO_BATCH, SLOTS},
    config::KvCache,
    run::Approximation,
    sampling::ModelSampling,
    worker::{Handshake, PROTOCOL, WorkerReady},
};
use tokio::net::UnixListener;
use trims::TrimRequests;

/// The number of requests that may wait.
const QUEUE: usize = 64;
/// The niceness: other programs come first.
const NICE: u8 = 5;
#[derive(Debug, Parser)]
#[command(
    name = "tierbar-worker",
    version,
    about = "Serve one GGUF model over a Unix socket"
)]
struct Args {
    /// GGUF file
    #[arg(long)]
    model: PathBuf,
    /// Socket to listen on; must not exist
    #[arg(long)]
    socket: PathBuf,
    /// Model name in answers [default: the file name without .gguf]
    #[arg(long)]
    id: Option<String>,
    /// Context in tokens, limited by the model's training context
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    context: u32,
    /// Requests to answer at the same time; they share the context
    #[arg(long, default_value_t = SLOTS, value_parser = clap::value_parser!(u16).range(1..=64))]
    slots: u16,
    /// Cell type of the KV cache: f16, q8_0 or q4_0
    #[arg(long, default_value = "f16")]
    kv_cache: KvCache,
    /// Compute threads, at most one per core; 0 uses the fast cores and leaves one core free
    #[arg(long, default_value_t = 0)]
    threads: u16,
    /// Maximum tokens per evaluation, for all requests together
    #[arg(long, default_value_t = MICRO_BATCH, value_parser = clap::value_parser!(u32).range(64..=8192))]
    batch: u32,
    /// Predict tokens from earlier text (prompt lookup)
    #[arg(long, conflicts_with = "draft_model")]
    lookup: bool,
    /// Smaller GGUF model with the same vocabulary, to predict tokens that earlier text does not
    #[arg(long)]
    draft_model: Option<PathBuf>,
    /// Folder of saved contexts; without it, none can be saved
    #[arg(long)]
    contexts: Option<PathBuf>,
    /// Folder to keep conversations in at SIGTERM, if it exists
    #[arg(long, requires = "swapped_mib")]
    swapped: Option<PathBuf>,
    /// Maximum size of the kept conversations, in MiB
    #[arg(long)]
    swapped_mib: Option<u32>,
    /// Media projector ("mmproj" GGUF) of the model, required for images and audio
    #[arg(long)]
    projector: Option<PathBuf>,
    /// Jinja chat template to use instead of the model's own
    #[arg(long)]
    chat_template: Option<PathBuf>,
    /// Number of last layers to place on the GPU, and nothing else [default: the whole model, if there is a GPU]
    #[arg(long)]
    gpu_layers: Option<u32>,
    /// Only test whether the projector loads
    #[arg(long, hide = true, requires = "projector")]
    try_projector: bool,
    /// Keep all CPU weights in the file mapping, instead of copies in a faster layout
    #[arg(long)]
    mapped: bool,
    /// Keep this many MiB of a mixture's experts in memory, and read the others from the file when the router chooses them
    #[arg(long, requires = "mapped")]
    expert_cache_mib: Option<u32>,
    /// Have the system read a mixture's experts from the file when the router chooses them, and keep what it likes
    #[arg(long, requires = "mapped", conflicts_with = "expert_cache_mib")]
    announce_experts: bool,
    /// Keep this many MiB of a dense model's layers in memory, and read the others from the file for every token
    #[arg(long, requires = "mapped", conflicts_with_all = ["expert_cache_mib", "announce_experts", "experts_on_cpu"])]
    layer_cache_mib: Option<u32>,
    /// Keep a mixture's experts off the GPU
    #[arg(long, requires = "mapped")]
    experts_on_cpu: bool,
    /// Have the GPU compute prompts with experts that are off it, a layer's at a time
    #[arg(long, requires = "experts_on_cpu")]
    gpu_prompts: bool,
    /// Answer with experts that are in memory in place of others, which changes answers: off, substitute or drop
    #[arg(long, default_value = "off", requires = "expert_cache_mib")]
    approximate: Approximation,
    /// Experts that a token uses, fewer than the model's, which changes answers
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    experts_used: Option<u32>,
    /// Think before answering, unless a request says otherwise
    #[arg(long)]
    thinking: bool,
    /// Sampling where a request does not say, as JSON: {"answer": {"temperature": 0.7}, "thinking": {}}
    #[arg(long, value_parser = parse_sampling)]
    sampling: Option<ModelSampling>,
    /// File to record the router's choices in
    #[arg(long, hide = true)]
    expert_trace: Option<PathBuf>,
}

fn parse_sampling(json: &str) -> Result<ModelSampling, String> {
    let sampling: ModelSampling = serde_json::from_str(json).map_err(|error| error.to_string())?;
    for of in [&sampling.answer, &sampling.thinking] {
        of.check()
            .map_err(|(key, wrong)| format!("{key}: {wrong}"))?;
    }
    Ok(sampling)
}

fn main() -> ExitCode {
    let args = Args::parse();
    // Before there are threads, which inherit their priority.
    platform::give_way(NICE);
    end_with_parent(args.socket.clone());
    if let (true, Some(projector)) = (args.try_projector, &args.projector) {
        return trial::run_trial(&args, projector);
    }
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            announce(&Handshake::Failed(error));
            ExitCode::FAILURE
        }
    }
}

/// Removes the socket and ends the process at once, without running destructors.
fn exit(socket: &Path) -> ! {
    let _absent = fs::remove_file(socket);
    platform::exit_now(0)
}

/// Ends the process when stdin closes, even during a load: a killed host cannot send a signal.
fn end_with_parent(socket: PathBuf) {
    std::thread::spawn(move || {
        let _closed = io::copy(&mut io::stdin().lock(), &mut io::sink());
        exit(&socket);
    });
}

/// Prints a line for the parent. A parent that has ended is detected by stdin.
fn announce(handshake: &Handshake) {
    if let Ok(line) = serde_json::to_string(handshake) {
        let mut stdout = io::stdout().lock();
        let _gone = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }
}

/// Loads, listens, announces, and serves until a signal.
fn serve(args: &Args) -> Result<(), Error> {
    // llama.cpp aborts on some headers, so our own reader validates them first, in all parts of a split model.
    let account = tierbar_gguf::read(&args.model)?;
    let backend =
        Backend::init().map_err(|error| internal_error("llama.cpp did not start", &error))?;
    let weights = loading::placed_weights(args, &account)?;
    let model = Arc::new(loading::load_model(args, &account, weights)?);
    let threads = platform::compute_threads(args.threads);
    let pooling = model.pooling();
    let params = loading::context_params(args, &model, weights, threads);
    let context = Context::new(Arc::clone(&model), params, None)?;
    let drafter = loading::load_drafter(args, weights, params, &model, &context)?;
    let given = loading::read_template(args)?;
    let template = ChatTemplate::new(Arc::clone(&model), given.as_deref())?;
    let stem = args.model.file_stem().map_or_else(
        || "model".into(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    let id = args.id.clone().unwrap_or(stem);
    let (saved_contexts, swap) = states::open_states(args, &model, given.as_deref(), &id)?;
    let (jobs, queue) = mpsc::sync_channel(QUEUE);
    let generations = Arc::new(Generations::default());
    let pause = Arc::new(Pause::default());
    let trims = Arc::new(TrimRequests::default());
    let engine = Engine {
        template,
        pooling,
        jobs,
        id,
        path: args.model.display().to_string(),
        // llama.cpp rounds up, beyond what an encoder has positions for.
        context_tokens: if pooling.is_some() {
            params.tokens
        } else {
            context.capacity()
        },
        slots: args.slots,
        batch: args.batch,
        thinking: args.thinking,
        sampling: args.sampling.unwrap_or_default(),
        interrupt: context.interrupt(),
        threads,
        memory: context.memory(),
        generations: Arc::clone(&generations),
        model: Arc::clone(&model),
        saved_contexts,
        swap: swap.clone(),
        trims: Arc::clone(&trims),
        pause: Arc::clone(&pause),
        media: loading::open_media_reader(args, &model, threads, context.turns(), &pause),
    };
    let ready = WorkerReady {
        protocol: PROTOCOL,
        pid: std::process::id(),
        context_tokens: engine.context_tokens,
        memory: engine.memory,
    };
    std::thread::Builder::new()
        .name("engine".into())
        .spawn(move || match pooling {
            Some(pooling) => {
                generate::run_pooled(&model, pooling, context, &pause, &queue, &generations);
            }
            None => {
                let controls = Controls {
                    pause: &pause,
                    trims: &trims,
                    swap: swap.as_deref(),
                };
                generate::run_generations(&model, context, drafter, &queue, &generations, controls);
            }
        })
        .map_err(|error| internal_error("the engine thread did not start", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| internal_error("the async runtime did not start", &error))?;
    runtime.block_on(listen(args, ready, Arc::new(engine)))?;
    drop(backend);
    Ok(())
}

async fn listen(args: &Args, ready: WorkerReady, engine: Arc<Engine>) -> Result<(), Error> {
    let failed = |error: io::Error| {
        internal_error(
            &format!("cannot listen on {}", args.socket.display()),
            &error,
        )
    };
    let listener = UnixListener::bind(&args.socket).map_err(failed)?;
    fs::set_permissions(&args.socket, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(failed)?;
    announce(&Handshake::Ready(ready));
    let serving = axum::serve(listener, serve::router(Arc::clone(&engine)));
    tokio::select! {
        served = serving => return served.map_err(failed),
        _ = terminate.recv() => {}
    }
    if engine.end().is_some() {
        // The engine thread ends the process once all is written.
        tokio::time::sleep(swap::TIMEOUT).await;
        tracing::warn!("not all conversations were written in time");
    }
    exit(&args.socket)
}

/// The error for a request that is wrong, or that this model cannot follow.
fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
}

fn internal_error(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::TierFailed, format!("{what}: {error}"))
}
