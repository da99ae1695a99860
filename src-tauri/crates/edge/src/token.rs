//! The token that opens the admin API: its file, and the comparison.

use super::random_text;
use std::{
    fmt,
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};
use subtle::ConstantTimeEq;
use tierbar_core::{Code, Error};

/// The content of `<data>/token`.
#[derive(Clone)]
pub struct Token {
    secret: String,
    path: PathBuf,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Token {
    /// Shorter ones, such as an empty file, could be guessed.
    const SHORTEST: usize = 16;

    /// Reads the file, or creates it (mode 0600) with 32 random bytes.
    ///
    /// # Errors
    /// `Storage` if the file cannot be read or created, or does not contain a valid token.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            let message = format!("cannot use the token file {}: {error}", path.display());
            Error::new(Code::Storage, message)
        };
        let secret = match fs::read_to_string(path) {
            Ok(text) => {
                fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
                text.trim().to_owned()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secret = random_text()?;
                create(path, &secret).map_err(failed)?;
                secret
            }
            Err(error) => return Err(failed(error)),
        };
        if secret.len() < Self::SHORTEST || !secret.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("{} does not hold a token", path.display());
            return Err(Error::new(Code::Storage, message)
                .hint("delete the file; a new token is created at the next start"));
        }
        Ok(Self {
            secret,
            path: path.to_owned(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.secret
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compares in constant time, so that the time does not reveal a correct prefix.
    pub fn is(&self, given: &str) -> bool {
        self.secret.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

fn create(path: &Path, secret: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{secret}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_created_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::open(&path).unwrap();
        assert_eq!(token.as_str().len(), 43);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(Token::open(&path).unwrap().as_str(), token.as_str());
        assert!(token.is(token.as_str()));
        assert!(!token.is(""));
    }

    #[test]
    fn a_readable_token_file_is_made_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "a-token-of-my-own-choice\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            Token::open(&path).unwrap().as_str(),
            "a-token-of-my-own-choice"
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn an_empty_token_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for content in ["", "short", "has a space in the middle of it"] {
            fs::write(&path, content).unwrap();
            assert_eq!(
                Token::open(&path).unwrap_err().code,
                Code::Storage,
                "{content:?}"
            );
        }
    }
}
