//! What a person has allowed beyond once, and until when.

use super::{Act, Collections, Scope, acts_later, visible};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How long a folder or a chat is granted at most.
pub const FOLDER_SECONDS: u64 = 8 * 60 * 60;
/// As many as a person can look through. The oldest gives way.
const MOST: usize = 200;

/// One thing that was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// That of the question that it answered, which is spent.
    pub id: String,
    pub what: GrantCoverage,
    /// Where it holds. `None`: in every chat.
    pub chat: Option<String>,
    /// Seconds; `None`: until it is revoked.
    pub until: Option<u64>,
    pub since: u64,
}

/// What a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "covers", rename_all = "snake_case")]
pub enum GrantCoverage {
    /// Commands that start in this folder, without the network. They can change files that something runs later, too: the rules of a
    /// sandbox for a folder hold for all that is in it.
    Commands {
        folder: PathBuf,
    },
    Reading {
        folder: PathBuf,
    },
    /// Files of this folder, but for those that something runs later.
    Writing {
        folder: PathBuf,
    },
    Searching {
        provider: String,
    },
    /// Pages whose address is known.
    KnownPages,
    Documents {
        collections: Collections,
    },
    Command {
        line: String,
        folder: PathBuf,
        network: bool,
    },
    /// A tool with any arguments, as long as its server describes it as it did.
    Tool {
        server: String,
        name: String,
        definition: String,
    },
}

/// All that was allowed. Those of other chats are kept and do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    list: Vec<Grant>,
    /// The chat that acts now.
    chat: Option<String>,
}

impl Grants {
    /// Those that were stored, for a chat.
    pub fn new(list: Vec<Grant>, chat: &str) -> Self {
        Self {
            list,
            chat: Some(chat.to_owned()),
        }
    }

    pub fn list(&self) -> &[Grant] {
        &self.list
    }

    pub(super) fn add(&mut self, act: &Act, scope: Scope, chat: &str, now: u64, id: &str) {
        let mut coverages = coverages(act).into_iter();
        let Some((_, what)) = coverages.find(|(of, _)| *of == scope) else {
            return;
        };
        let forever = scope == Scope::Exact;
        let chat = (!forever).then(|| chat.to_owned());
        self.list
            .retain(|grant| grant.what != what || grant.chat != chat);
        self.list.push(Grant {
            id: id.to_owned(),
            what,
            chat,
            until: (!forever).then(|| now.saturating_add(FOLDER_SECONDS)),
            since: now,
        });
        let excess = self.list.len().saturating_sub(MOST);
        self.list.drain(..excess);
    }

    pub(super) fn cover(&self, act: &Act, now: u64) -> bool {
        let coverages = coverages(act);
        let holds = |grant: &&Grant| {
            // A clock that went back must not make a grant longer.
            grant
                .until
                .is_none_or(|until| (grant.since..until).contains(&now))
                && (grant.chat.is_none() || grant.chat == self.chat)
        };
        self.list
            .iter()
            .filter(holds)
            .any(|grant| coverages.iter().any(|(_, what)| *what == grant.what))
    }
}

/// Returns what an act can be covered by beyond once, each with the scope of the answer that allows it.
pub(super) fn coverages(act: &Act) -> Vec<(Scope, GrantCoverage)> {
    match act.clone() {
        Act::Command {
            line,
            folder,
            network,
        } => {
            let all = GrantCoverage::Commands {
                folder: folder.clone(),
            };
            let this = GrantCoverage::Command {
                line,
                folder,
                network,
            };
            // What leaves the machine may say something else each time.
            let all = (!network).then_some((Scope::Folder, all));
            all.into_iter().chain([(Scope::Exact, this)]).collect()
        }
        Act::Read { folder, .. } => vec![(Scope::Folder, GrantCoverage::Reading { folder })],
        Act::Write { change, .. } if acts_later(&change.path) => Vec::new(),
        Act::Write { folder, .. } => vec![(Scope::Folder, GrantCoverage::Writing { folder })],
        Act::Search { provider, .. } => {
            vec![(Scope::Chat, GrantCoverage::Searching { provider })]
        }
        Act::Page { known: true, .. } => vec![(Scope::Chat, GrantCoverage::KnownPages)],
        Act::Page { known: false, .. } => Vec::new(),
        Act::Documents { collections, .. } => {
            vec![(Scope::Chat, GrantCoverage::Documents { collections })]
        }
        Act::Tool {
            server,
            name,
            definition,
            ..
        } => {
            let tool = GrantCoverage::Tool {
                server,
                name,
                definition,
            };
            vec![(Scope::Chat, tool)]
        }
    }
}

impl GrantCoverage {
    /// What is allowed, in words for a person.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Commands { .. } => "Run all commands",
            Self::Reading { .. } => "Read files",
            Self::Writing { .. } => "Change files",
            Self::Searching { .. } => "Search the web",
            Self::KnownPages => "Open pages with a known address",
            Self::Documents { .. } => "Search documents",
            Self::Command { network: false, .. } => "Run this command",
            Self::Command { network: true, .. } => "Run this command with access to the network",
            Self::Tool { .. } => "Use this tool",
        }
    }

    /// The command, the tool or whom it is for, with invisible characters made visible.
    pub fn subject(&self) -> Option<String> {
        let subject = match self {
            Self::Commands { .. }
            | Self::Reading { .. }
            | Self::Writing { .. }
            | Self::KnownPages => return None,
            Self::Searching { provider } => provider.clone(),
            Self::Documents { collections } => collections.to_string(),
            Self::Command { line, .. } => line.clone(),
            Self::Tool { server, name, .. } => format!("{name} of {server}"),
        };
        Some(visible(&subject))
    }

    /// Where it holds, if it has a place.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Commands { folder }
            | Self::Reading { folder }
            | Self::Writing { folder }
            | Self::Command { folder, .. } => Some(folder),
            _ => None,
        }
    }
}
