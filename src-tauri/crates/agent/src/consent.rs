//! What the agent may do, and with whose consent. Pure: acts, grants and the time come in, a decision goes out.
//!
//! An [`Act`] is carried out only as [`PermittedAct`], which nothing but this module makes: because a general
//! permission or a grant covers the act, or because a person answered its [`Question`]. A model, page, file or tool
//! produces acts and text, and neither is an answer: an [`Answer`] names the question's id, which the host draws at
//! random and shows to the person alone.

mod act;
mod grants;
mod read_only;
mod visible;

pub use act::{Act, Change, Collections, Digest, WebAddress};
pub use grants::{FOLDER_SECONDS, Grant, GrantCoverage, Grants};
pub use read_only::read_only;
pub use tierbar_chats::agent::{
    ConsentAct as Kind, ConsentAnswer as Answer, ConsentQuestion as Question, ConsentScope as Scope,
};
pub use visible::visible;

use serde::{Deserialize, Serialize};
use std::path::Path;
use visible::VisibleText;

/// The longest text that a person can be asked about, in characters. What cannot be read cannot be agreed to.
pub const SHOWN_CHARACTERS: usize = 20_000;

/// What is allowed without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct General {
    /// Reading files of the folder and the documents, and commands of which it is certain that they only read.
    pub reading: bool,
    /// Sending words to the search provider.
    pub search: bool,
    /// Reading pages whose address the person or the search provider has given.
    pub known_pages: bool,
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReply {
    #[error("this is not the question that is open")]
    AnotherQuestion,
    #[error("this cannot be allowed in that scope")]
    Scope,
}

/// An act that may be carried out. Only this module makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittedAct {
    act: Act,
    reads_only: bool,
}

impl PermittedAct {
    pub fn act(&self) -> &Act {
        &self.act
    }

    /// Whether the act needed no consent because it only reads. Its command then runs without rights to write.
    pub fn reads_only(&self) -> bool {
        self.reads_only
    }
}

/// What becomes of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allowed(PermittedAct),
    Ask(PendingAct),
    /// Never possible, with the reason for the model.
    Refused(String),
}

/// An act whose question is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAct {
    act: Act,
    question: Question,
}

/// Decides about an act. `id` becomes the question's, and must not be guessable; `now` is in seconds.
pub fn decide(act: Act, general: General, grants: &Grants, now: u64, id: String) -> Decision {
    if let Some(reason) = act.never() {
        return Decision::Refused(reason);
    }
    let reads_only = act.only_reads();
    let general = match &act {
        Act::Command { .. } | Act::Read { .. } | Act::Documents { .. } => {
            general.reading && reads_only
        }
        Act::Search { .. } => general.search,
        Act::Page { known, .. } => general.known_pages && *known,
        Act::Write { .. } | Act::Tool { .. } => false,
    };
    if general || grants.cover(&act, now) {
        let reads_only = general && reads_only;
        return Decision::Allowed(PermittedAct { act, reads_only });
    }
    match act.question(id) {
        Ok(question) => Decision::Ask(PendingAct { act, question }),
        Err(reason) => Decision::Refused(reason),
    }
}

impl PendingAct {
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Applies a person's answer. `None` if it refuses. A scope beyond once becomes a grant.
    ///
    /// # Errors
    /// [`InvalidReply`]; the question stays open.
    pub fn answer(
        &self,
        answer: &Answer,
        chat: &str,
        grants: &mut Grants,
        now: u64,
    ) -> Result<Option<PermittedAct>, InvalidReply> {
        if answer.id != self.question.id {
            return Err(InvalidReply::AnotherQuestion);
        }
        let Some(scope) = answer.allow else {
            return Ok(None);
        };
        if !self.question.scopes.contains(&scope) {
            return Err(InvalidReply::Scope);
        }
        grants.add(&self.act, scope, chat, now, &self.question.id);
        Ok(Some(PermittedAct {
            act: self.act.clone(),
            reads_only: false,
        }))
    }
}

/// Whether a file is run by something later, or steers what is run, so that each change of it is shown.
pub(crate) fn acts_later(path: &Path) -> bool {
    let hidden = |part: &std::ffi::OsStr| part.as_encoded_bytes().starts_with(b".");
    path.iter().any(hidden)
}

#[cfg(test)]
mod tests;
