//! Why a turn failed, as it is stored with its message.

use serde::{Deserialize, Serialize};
use std::fmt;
use tierbar_core::{Code, Error};

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TurnFailure {
    pub code: String,
    pub message: String,
    #[schema(required = true)]
    pub hint: Option<String>,
}

impl TurnFailure {
    /// Returns the error without its figures.
    pub fn to_error(&self) -> Error {
        Error {
            hint: self.hint.clone(),
            ..Error::new(code(&self.code), self.message.clone())
        }
    }
}

impl fmt::Display for TurnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl From<&Error> for TurnFailure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        }
    }
}

/// Returns a code by its name; `Internal` for one that this version does not know.
pub(crate) fn code(name: &str) -> Code {
    serde_json::from_value(name.into()).unwrap_or(Code::Internal)
}
