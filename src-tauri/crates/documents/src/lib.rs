//! Documents as passages: what a file is, its text with headings and pages, where it is cut, which passages answer a question, and
//! what a model is asked about them. All of it is pure, but for `tierbar-extract`, the process that reads a file.

pub mod answer;
pub mod charset;
pub mod chunks;
pub mod extraction;
mod kind;
pub mod markup;
pub mod pictured;
pub mod plan;
mod platform;
pub mod rank;
mod read;
mod text;

pub use kind::{is_readable, kind, plain_text, text_kind};
pub use platform::{limit_this_process, memory::CountingAllocator};
pub use read::{Block, Facts, LONGEST_TEXT, MOST_PICTURES, Part, Picture, Refusal, read};
