//! Which secrets there are, and where else than in the store each may lie.

use crate::Environment;
use std::{fmt, path::PathBuf, str::FromStr};
use tierbar_core::{Code, Error, TierId, config::server_of};

/// A secret that Tierbar knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// The access token for the model hub.
    HuggingFace,
    /// The key of Brave's search, for agents.
    BraveSearch,
    /// What webhooks are signed with.
    Webhooks,
    /// The secret of the access key for the bucket of saved contexts.
    ContextStore,
    /// What saved contexts are encrypted with before they are uploaded.
    ContextPassphrase,
    /// The key of a server that a tier's endpoint names: its host, with its port if that is given. It belongs to the
    /// server and not to the tier, so that it goes to no other.
    Server(String),
    /// The key of a program that serves tools over MCP: `mcp-` and the server's name.
    McpServer(String),
}

/// What the name of the key of an MCP server begins with.
const MCP: &str = "mcp-";

impl Name {
    /// That of a program that serves tools, by the server's name in the configuration.
    pub fn of_mcp_server(server: &str) -> Self {
        Self::McpServer(format!("{MCP}{server}"))
    }

    /// That of the server at a URL. Without a dot in its name it has its port, so that it is the name of nothing else.
    pub fn of_server(url: &str) -> Self {
        let (scheme, server) = server_of(url).unwrap_or(("", url));
        let server = server.to_ascii_lowercase();
        Self::Server(match scheme {
            _ if server.contains(['.', ':']) => server,
            "https" => server + ":443",
            _ => server + ":80",
        })
    }

    /// Its name in the API and in the store.
    pub fn as_str(&self) -> &str {
        match self {
            Self::HuggingFace => "hugging-face",
            Self::BraveSearch => "brave-search",
            Self::Webhooks => "webhooks",
            Self::ContextStore => "context-store",
            Self::ContextPassphrase => "context-passphrase",
            Self::Server(name) | Self::McpServer(name) => name,
        }
    }

    /// Environment variables that carry it; the first that is set counts.
    pub fn variables(&self) -> &'static [&'static str] {
        match self {
            Self::HuggingFace => &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"],
            Self::BraveSearch => &["BRAVE_API_KEY"],
            _ => &[],
        }
    }

    /// The file in which the program that it belongs to keeps it. The rules of `huggingface_hub`'s `constants.py`.
    pub(crate) fn own_file(&self, environment: &Environment) -> Option<PathBuf> {
        let set = |variable: &str| {
            let value = environment(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let folder = |variable: &str| {
            let path = set(variable)?;
            match path.strip_prefix("~") {
                Ok(rest) => Some(set("HOME")?.join(rest)),
                Err(_) => Some(path),
            }
        };
        if *self != Self::HuggingFace {
            return None;
        }
        folder("HF_TOKEN_PATH").or_else(|| {
            folder("HF_HOME")
                .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
                .or_else(|| folder("HOME").map(|home| home.join(".cache/huggingface")))
                .map(|home| home.join("token"))
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Name {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let named = [
            Self::HuggingFace,
            Self::BraveSearch,
            Self::Webhooks,
            Self::ContextStore,
            Self::ContextPassphrase,
        ];
        if let Some(named) = named.into_iter().find(|name| name.as_str() == text) {
            return Ok(named);
        }
        let plain =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
        // A token has neither, should it have been put in the wrong place.
        let server = text.contains(['.', ':']) && text.len() <= 255 && text.bytes().all(plain);
        if server {
            return Ok(Self::of_server(text));
        }
        if let Some(server) = text.strip_prefix(MCP)
            && let Ok(server) = TierId::new(server)
        {
            return Ok(Self::of_mcp_server(server.as_str()));
        }
        // The text is not repeated: it may be the secret itself, put in the wrong place.
        Err(
            Error::new(Code::NotFound, "there is no secret with this name").hint(
                "use hugging-face, brave-search, webhooks, context-store, context-passphrase, mcp- and the name of an MCP server, or the server of an endpoint, such as api.example.com",
            ),
        )
    }
}
