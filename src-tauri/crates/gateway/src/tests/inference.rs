//! From a request in OpenAI's form to its answer.

mod ask;
mod auto;
mod chain;
mod clouds_anthropic;
mod dispatch;
mod metrics;
