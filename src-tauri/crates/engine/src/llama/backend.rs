//! llama.cpp's process-wide state: its backends and its log.

use llama_cpp_2::{LogOptions, llama_backend::LlamaBackend, send_logs_to_tracing};
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::fmt;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, filter::LevelFilter, layer::Context as LayerContext, prelude::*};

/// Proof that llama.cpp is initialised.
#[derive(Debug)]
pub(crate) struct Backend(
    /// Held for its Drop.
    LlamaBackend,
);

impl Backend {
    /// Initialises llama.cpp and sends its log, and ours, to stderr.
    pub(crate) fn init() -> Result<Self, String> {
        let stderr = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false);
        tracing_subscriber::registry()
            .with(stderr.with_filter(LevelFilter::WARN))
            .with(FirstError)
            .init();
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init()
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// Loads something while devices of a type copy the weights they get, instead of using them in the file's mapping.
pub(crate) fn copying<T>(devices: sys::ggml_backend_dev_type, load: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn tierbar_copy_weights(devices: sys::ggml_backend_dev_type);
        fn tierbar_map_weights();
    }
    // SAFETY: the process loads its models one after another.
    unsafe { tierbar_copy_weights(devices) };
    let loaded = load();
    // SAFETY: as above.
    unsafe { tierbar_map_weights() };
    loaded
}

/// The first error in llama.cpp's log, the only place where it reports a reason.
static FIRST_ERROR: Mutex<String> = Mutex::new(String::new());

/// Takes the first error line since the last call, without its function prefix; empty without one.
pub(crate) fn take_error() -> String {
    std::mem::take(&mut FIRST_ERROR.lock())
}

struct FirstError;

impl<S: Subscriber> Layer<S> for FirstError {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        if *event.metadata().level() != Level::ERROR {
            return;
        }
        let mut line = LogMessage(String::new());
        event.record(&mut line);
        let text = line.0.trim();
        // The first of a chain of errors names the cause; "failed to load model" follows it.
        let mut first = FIRST_ERROR.lock();
        if !text.is_empty() && first.is_empty() {
            *first = text
                .split_once(": ")
                .map_or(text, |(_, reason)| reason)
                .to_owned();
        }
    }
}

struct LogMessage(String);

impl Visit for LogMessage {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.0);
        }
    }
}
