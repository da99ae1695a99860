//! The closed list of secrets, and where else than in the store each may lie.

use crate::Environment;
use std::{fmt, path::PathBuf, str::FromStr};
use tierbar_core::{Code, Error};

/// A secret that Tierbar knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// The access token for the model hub.
    HuggingFace,
}

impl Name {
    pub const ALL: [Self; 1] = [Self::HuggingFace];

    /// Its name in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HuggingFace => "hugging-face",
        }
    }

    /// Environment variables that carry it; the first that is set counts.
    #[must_use]
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::HuggingFace => &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"],
        }
    }

    /// The file in which the program that it belongs to keeps it. The rules of `huggingface_hub`'s `constants.py`.
    pub(crate) fn own_file(self, environment: &Environment) -> Option<PathBuf> {
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
        match self {
            Self::HuggingFace => folder("HF_TOKEN_PATH").or_else(|| {
                folder("HF_HOME")
                    .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
                    .or_else(|| folder("HOME").map(|home| home.join(".cache/huggingface")))
                    .map(|home| home.join("token"))
            }),
        }
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
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| {
                let known: Vec<_> = Self::ALL.iter().map(|name| name.as_str()).collect();
                // The text is not repeated: it may be the secret itself, put in the wrong place.
                Error::new(Code::NotFound, "there is no secret of that name")
                    .hint(format!("known are: {}", known.join(", ")))
            })
    }
}
