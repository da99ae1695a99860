//! What the agent can do.

use super::{
    Kind, Question, SHOWN_CHARACTERS, Scope, VisibleText, grants::coverages, read_only, visible,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, path::PathBuf, sync::Arc};
use tierbar_core::address::is_public;
use url::{Host, Url};

/// One thing that the agent wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A line of shell that starts in the folder and may write there.
    Command {
        line: String,
        folder: PathBuf,
        network: bool,
    },
    /// Reading a file or listing a folder.
    Read {
        folder: PathBuf,
        path: PathBuf,
        /// From 1.
        from_line: usize,
    },
    /// Creating or changing a file.
    Write { folder: PathBuf, change: Change },
    Search {
        words: String,
        /// Who gets the words, such as `duckduckgo.com`.
        provider: String,
    },
    /// Reading a page of the web.
    Page {
        address: WebAddress,
        /// Whether the person or the search provider has given the address. Any other could carry what the model has read to a
        /// server.
        known: bool,
    },
    /// Looking for passages in the user's documents.
    Documents {
        words: String,
        collections: Collections,
    },
    /// A tool of another program, over MCP.
    Tool {
        server: String,
        name: String,
        /// Stands for the description and the parameters that the server has given: another text once it has changed them.
        definition: String,
        arguments: Value,
    },
}

/// The documents that a chat may look into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collections {
    All,
    /// Those of these collections.
    Named(Vec<String>),
}

impl fmt::Display for Collections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all documents"),
            Self::Named(names) => write!(f, "documents of {}", names.join(", ")),
        }
    }
}

/// The SHA-256 of a file's content.
pub type Digest = [u8; 32];

/// A new content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the folder.
    pub path: PathBuf,
    /// Of the content that is replaced. `None`: the file is new.
    pub before: Option<Digest>,
    pub after: Arc<[u8]>,
    /// From one to the other.
    pub diff: String,
}

/// An address of a public server, as it is requested and shown: a name in another script stands in its ASCII form, so that no letter
/// looks like another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress(Url);

impl WebAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong, for the model: no http or https address, one with a password, or one inside this machine or network. A name may
    /// still lead inside; the connection checks that.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let url =
            Url::parse(text).map_err(|error| format!("{text} is not a valid address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{} is not a web scheme", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a name or a password in it".to_owned());
        }
        let is_public = match url.host() {
            Some(Host::Domain(name)) => is_public_name(name),
            Some(Host::Ipv4(ip)) => is_public(ip.into()),
            // What looks like an address of the Internet may be one of this network inside, so none is taken.
            Some(Host::Ipv6(_)) | None => false,
        };
        if is_public {
            Ok(Self(url))
        } else {
            Err(format!(
                "{} is inside this machine or network, and pages there are not opened",
                url.host_str().unwrap_or("the server")
            ))
        }
    }

    pub fn url(&self) -> &Url {
        &self.0
    }
}

fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let inside = [
        "localhost",
        "local",
        "internal",
        "lan",
        "home.arpa",
        "intranet",
        "corp",
    ];
    // A name without a dot is one of this network.
    name.contains('.')
        && !inside
            .iter()
            .any(|last| name.ends_with(&format!(".{last}")))
}

impl Act {
    /// Why this is not possible even with consent.
    pub(super) fn never(&self) -> Option<String> {
        match self {
            Self::Command { line, .. } if line.trim().is_empty() => {
                Some("the command is empty".to_owned())
            }
            Self::Command { line, .. } if line.contains('\0') => {
                Some("the command has a NUL byte".to_owned())
            }
            Self::Search { words, .. } | Self::Documents { words, .. }
                if words.trim().is_empty() =>
            {
                Some("there is nothing to search for".to_owned())
            }
            _ => None,
        }
    }

    /// Returns what only the same act has, without the content of a file.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Write { folder, change } => {
                format!(
                    "{folder:?} {:?} {:?} {}",
                    change.path, change.before, change.diff
                )
            }
            act => format!("{act:?}"),
        }
    }

    /// Whether it is certain that the act changes nothing and reveals nothing.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Command { line, network, .. } => !network && read_only(line).is_some(),
            Self::Read { .. } | Self::Documents { .. } => true,
            _ => false,
        }
    }

    /// The question for the user, or why there can be none.
    pub(super) fn question(&self, id: String) -> Result<Question, String> {
        let (act, title, what) = match self {
            Self::Command { line, network, .. } => {
                let title = match network {
                    true => "Run this command with access to the network?",
                    false => "Run this command?",
                };
                (Kind::Command, title, line.clone())
            }
            Self::Read { path, .. } => (Kind::Read, "Read this file?", path.display().to_string()),
            Self::Write { change, .. } => {
                let title = match change.before {
                    None => "Create this file?",
                    Some(_) => "Change this file?",
                };
                (Kind::Write, title, change.path.display().to_string())
            }
            Self::Search { words, provider } => {
                let what = format!("{words}\n({provider} sees these words)");
                (Kind::Search, "Search the web?", what)
            }
            Self::Page { address, .. } => (Kind::Page, "Open this page?", address.0.to_string()),
            Self::Documents { words, collections } => {
                let what = format!("{words}\n(in {collections})");
                (Kind::Documents, "Search your documents?", what)
            }
            Self::Tool {
                server,
                name,
                arguments,
                ..
            } => {
                let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
                let what = format!("{name} of {server}\n{arguments}");
                (Kind::Tool, "Use this tool?", what)
            }
        };
        let (diff, folder) = match self {
            Self::Write { folder, change } => (Some(change.diff.as_str()), Some(folder)),
            Self::Command { folder, .. } | Self::Read { folder, .. } => (None, Some(folder)),
            _ => (None, None),
        };
        let text = diff.unwrap_or(&what);
        let mut shown = VisibleText::default();
        let what = shown.add(&what);
        let diff = diff.map(|diff| shown.add(diff));
        let length = what.chars().count() + diff.as_ref().map_or(0, |diff| diff.chars().count());
        if length > SHOWN_CHARACTERS {
            let smaller = match self {
                Self::Write { .. } => {
                    "write the beginning of the file, and add the rest with edit_file, in several steps"
                }
                _ => "use smaller steps",
            };
            return Err(format!(
                "this is too long to be read before it is allowed: {length} characters, and at most {SHOWN_CHARACTERS} can be shown; {smaller}"
            ));
        }
        Ok(Question {
            id,
            act,
            title: title.to_owned(),
            summary: shown.summary(text),
            what,
            diff,
            folder: folder.map(|folder| visible(&folder.display().to_string())),
            scopes: self.scopes(),
        })
    }

    /// What can be allowed at once.
    fn scopes(&self) -> Vec<Scope> {
        let wider = coverages(self).into_iter().map(|(scope, _)| scope);
        [Scope::Once].into_iter().chain(wider).collect()
    }
}
