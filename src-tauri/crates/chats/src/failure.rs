//! Why a turn failed, as it is stored with its message.

use serde::{Deserialize, Serialize};
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
        let error = Error::new(code(&self.code), self.message.clone());
        match &self.hint {
            Some(hint) => error.hint(hint.clone()),
            None => error,
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
