//! A small safe face on llama.cpp: the only code that calls it.
//!
//! `llama-cpp-2` serves for the backend and the log. Model and context stand on
//! `llama-cpp-sys-2` directly, because the wrapper keeps its pointers private and offers no abort callback,
//! threadpool or evaluation callback, and because its context borrows the model, which a worker cannot store.

#![expect(unsafe_code, reason = "the FFI boundary to llama.cpp")]

mod backend;
mod batch;
mod chat;
mod constraint;
mod context;
mod draft;
mod encoding;
mod interrupt;
mod model;
mod owned_pointer;
mod paged;
mod parser;
mod positions;
mod probabilities;
mod projector;
mod sampler;
mod sampling;
mod sequence_tokens;
mod shim;
mod threadpool;

pub(crate) use backend::{Backend, take_error};
pub(crate) use batch::Batch;
pub(crate) use chat::{ChatTemplate, Prompt};
pub(crate) use constraint::schema_grammar;
pub(crate) use context::{Context, ContextParams, DecodeOutcome, RowPositions, Sequence};
pub(crate) use draft::DraftModel;
pub(crate) use interrupt::Interrupt;
pub(crate) use model::{CpuWeights, ExpertsUsed, Model, Pooling, Weights};
pub(crate) use paged::{PagingMode, PagingOptions, PagingReport, model_files};
pub(crate) use parser::{AnswerParser, Message, ToolCall};
pub(crate) use positions::{SequenceEnd, common_prefix, stand_ins, undivided};
pub(crate) use probabilities::{LogProbability, count_likelier_tokens, log_probabilities};
pub(crate) use projector::{Chunk, Chunks, Medium, MediumChunk, Projector, ProjectorParams};
pub(crate) use sampler::Sampler;
pub(crate) use sampling::{Dry, Mirostat, Sampling};
pub(crate) use sequence_tokens::SequenceTokens;

/// A token's number in the model's vocabulary.
pub(crate) type Token = llama_cpp_sys_2::llama_token;
