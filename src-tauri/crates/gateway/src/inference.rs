//! From a request in OpenAI's dialect to its answer: which tier answers, the lease, the call of its worker, and the stream that is
//! relayed while it is counted.

pub(crate) mod auto;
pub(crate) mod calls;
pub(crate) mod chain;
pub(crate) mod clouds;
pub(crate) mod hints;
pub(crate) mod models;
pub(crate) mod owed;
mod prompts;
pub(crate) mod relay;
pub(crate) mod route;
pub(crate) mod speed;
mod tap;
pub(crate) mod upstream;
pub(crate) mod wire;

pub(crate) const CHAT: &str = "/v1/chat/completions";
/// Counts the tokens of a chat; spoken between the gateway and Tierbar's worker alone.
pub(crate) const TOKENS: &str = "/v1/chat/tokens";
pub(crate) const TEXT: &str = "/v1/completions";
pub(crate) const EMBEDDINGS: &str = "/v1/embeddings";
