//! Why a header cannot be used.

use std::{fmt::Display, io};
use tierbar_core::{Code, Error, own_lack};

#[derive(Debug)]
pub(crate) enum Fault {
    /// The file ends before what it announces: bytes missing of how many, as far as is known by then.
    Truncated { missing: u64, of: u64 },
    /// Not GGUF, or it contradicts itself.
    Invalid(String),
    /// Sound, but not for this engine; and what to do instead.
    Unsupported(String, String),
    /// Reading failed; the source may have put an [`Error`] of its own inside.
    Io(io::Error),
}

impl Fault {
    pub(crate) fn into_error(self, name: impl Display) -> Error {
        match self {
            Self::Truncated { missing, of } => Error::new(
                Code::ModelInvalid,
                format!("{missing} bytes of {of} of the model {name} are missing: the file is incomplete"),
            )
            .hint("download it again, let a download finish, or check its disk")
            .detail("missing_bytes", missing)
            .detail("expected_bytes", of),
            Self::Invalid(why) => Error::new(Code::ModelInvalid, format!("the model {name} is not usable: {why}"))
                .hint("download it again; the file must be a GGUF model"),
            Self::Unsupported(why, hint) => {
                Error::new(Code::ModelUnsupported, format!("the model {name} cannot be loaded: {why}")).hint(hint)
            }
            Self::Io(error) => error.downcast().unwrap_or_else(|error| {
                own_lack(&error).unwrap_or_else(|| {
                    Error::new(Code::Storage, format!("the model {name} cannot be read: {error}"))
                        .hint("check that its volume is connected")
                })
            }),
        }
    }
}

pub(crate) fn invalid<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Invalid(why.into()))
}

pub(crate) fn unsupported<T>(why: impl Into<String>, instead: &str) -> Result<T, Fault> {
    Err(Fault::Unsupported(why.into(), instead.to_owned()))
}
