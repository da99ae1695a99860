//! Fields that our own engine cannot follow: refused before anything is loaded. A tier that another program serves gets them as they
//! came, since its server may know them.

use super::{CHAT, EMBEDDINGS, Inference, TEXT, content::Content};
use serde_json::Value;
use tierbar_core::{
    Error, TierId,
    fields::{self, Table},
    status::{EngineKind, TierStatus},
};

/// # Errors
/// `BadRequest` naming the field, if the tier's engine is ours.
pub(crate) fn check(
    inference: &Inference,
    tier: &TierId,
    path: &str,
    content: &Content,
) -> Result<(), Error> {
    let Value::Object(request) = content.fields() else {
        return Ok(());
    };
    let tables = tables(path);
    if tables.is_empty() {
        return Ok(());
    }
    let tiers = inference.tiers.snapshot();
    let ours = |status: &TierStatus| status.id == *tier && status.engine == EngineKind::Embedded;
    match tiers.iter().any(ours) {
        true => fields::check(tables, request),
        false => Ok(()),
    }
}

fn tables(path: &str) -> &'static [&'static Table] {
    use fields::{CHAT_ADDITIONS, COMPLETION_ADDITIONS, COMPLETIONS, GENERATION_ADDITIONS};
    match path {
        CHAT => &[&fields::CHAT, &GENERATION_ADDITIONS, &CHAT_ADDITIONS],
        TEXT => &[&COMPLETIONS, &GENERATION_ADDITIONS, &COMPLETION_ADDITIONS],
        EMBEDDINGS => &[&fields::EMBEDDINGS],
        _ => &[],
    }
}
