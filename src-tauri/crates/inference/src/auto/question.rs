//! One question to the fast tier's model.
//!
//! It calls the worker itself, with a lease of its own: it is not an answer to a client, so it is counted neither in the metrics nor in the
//! model's speed, and the choice of a tier, of which it is a part, comes before [`Inference::ask`] asks one.

use crate::{CHAT, Inference, content::Content, send::send};
use http::HeaderMap;
use tierbar_core::{Code, Error, TierId, json, lease::Purpose};
use tierbar_routing::classifier::{Opinion, question};

/// An answer of a few tokens with their alternatives has some ten KiB.
const ANSWER_LIMIT: usize = 1 << 20;

/// Returns the model's opinion of the text. Holds a lease meanwhile.
///
/// # Errors
/// Those of a lease; `WorkerCrashed` if the answer does not come or is none.
pub(super) async fn ask(
    inference: &Inference,
    tier: &TierId,
    text: &str,
) -> Result<Opinion, Error> {
    let none = |why: String| {
        let message = format!("{tier} did not classify the request: {why}");
        Error::new(Code::WorkerCrashed, message)
    };
    let lease = inference.tiers.lease_for(tier, Purpose::Brief).await?;
    let (content, _) = Content::of(question(text))?;
    let (headers, remote) = (HeaderMap::new(), &inference.remote);
    let posted = send(lease.endpoint(), CHAT, content, &headers, remote, None);
    let mut upstream = posted.await.map_err(|broken| none(broken.to_string()))?;
    let answer = upstream.whole(ANSWER_LIMIT).await;
    let answer = answer.map_err(|broken| none(broken.to_string()))?;
    let answer = json::read(&answer).map_err(|error| none(error.to_string()))?;
    Opinion::of(&answer).ok_or_else(|| none("an unexpected answer".to_owned()))
}
