//! A saved context as it lies in a store that others can read: encrypted here, with a key that the store never has.
//!
//! | part | bytes |
//! |---|---|
//! | header | magic (8), salt of the passphrase (16), salt of this file (16), length of the description (u32, little-endian) |
//! | description | [`ContextDescription`] as JSON, with its tag (16) |
//! | pieces | 256 KiB of the file, the last one fewer, each with its tag (16) |
//!
//! The key is Argon2id of the passphrase (RFC 9106, its second recommendation: 64 MiB, 3 passes, 4 lanes), then HMAC-SHA-256 of that with
//! the salt of the file. The pieces are AES-256-GCM with their number and whether they are the last as nonce, and the header
//! as associated data: the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015). So pieces cannot be changed,
//! reordered, left out or cut off at the end unnoticed, nor put into another file.

use crate::ContextDescription;
use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::HEXLOWER;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use std::io::{self, Read, Write};
use tierbar_core::{Code, Error};

const MAGIC: [u8; 8] = *b"TIERSEA1";
const HEADER: usize = 8 + 16 + 16 + 4;
const TAG: usize = 16;
const PIECE: usize = 256 << 10;
/// A description has some hundreds of bytes.
const LONGEST_DESCRIPTION: usize = 4096;

/// Makes keys of the same passphrase differ between stores.
pub type Salt = [u8; 16];

/// The key of one store.
#[derive(Debug, Clone)]
pub struct StoreKey {
    salt: Salt,
    master: hmac::Key,
}

impl StoreKey {
    /// Takes about a tenth of a second and 64 MiB, on purpose.
    ///
    /// # Errors
    /// [`Code::Internal`] if the memory is not there.
    pub fn derive(passphrase: &SecretString, salt: Salt) -> Result<Self, Error> {
        Self::derive_with(passphrase, salt, (64 << 10, 3))
    }

    /// `cost`: KiB of memory, and passes over it.
    fn derive_with(
        passphrase: &SecretString,
        salt: Salt,
        (memory, passes): (u32, u32),
    ) -> Result<Self, Error> {
        let mut master = Zeroizing::new([0; 32]);
        Params::new(memory, passes, 4, Some(master.len()))
            .map(|params| Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
            .and_then(|argon2| {
                let passphrase = passphrase.expose_secret().as_bytes();
                argon2.hash_password_into(passphrase, &salt, &mut *master)
            })
            .map_err(|error| {
                Error::new(
                    Code::Internal,
                    format!("cannot derive a key from the passphrase: {error}"),
                )
            })?;
        let master = hmac::Key::new(hmac::HMAC_SHA256, &*master);
        Ok(Self { salt, master })
    }

    /// # Errors
    /// [`Code::Internal`] if the system gives no random bytes.
    pub fn new_salt() -> Result<Salt, Error> {
        random_salt().map_err(|error| Error::new(Code::Internal, error.to_string()))
    }

    pub fn salt(&self) -> Salt {
        self.salt
    }

    /// By which a key is known to be the right one, without anything else of it.
    pub fn check(&self) -> String {
        self.tag("check", b"")
    }

    /// What the context of this name is called in the store: the same on every machine, and meaningless without the key.
    pub fn object(&self, name: &str) -> String {
        self.tag("name", name.as_bytes())
    }

    fn tag(&self, purpose: &str, about: &[u8]) -> String {
        HEXLOWER.encode(self.derived(purpose, about).as_ref())
    }

    fn derived(&self, purpose: &str, about: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.master);
        context.update(purpose.as_bytes());
        context.update(&[0]);
        context.update(about);
        context.sign()
    }

    fn cipher(&self, header: [u8; HEADER]) -> io::Result<Cipher> {
        let key = self.derived("file", &header[24..40]);
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref())
            .map_err(|_| invalid("the key has another length"))?;
        Ok(Cipher {
            key: LessSafeKey::new(key),
            header,
            piece: 0,
        })
    }

    /// Encrypts a file of `saved.bytes` bytes.
    ///
    /// # Errors
    /// What reading and writing give; `UnexpectedEof` if the file is shorter, `InvalidData` if it is longer.
    pub fn seal(
        &self,
        saved: &ContextDescription,
        file: &mut impl Read,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut description = serde_json::to_vec(saved)?;
        if description.len() > LONGEST_DESCRIPTION {
            return Err(invalid("the description is too long"));
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..24].copy_from_slice(&self.salt);
        header[24..40].copy_from_slice(&random_salt()?);
        let length = u32::try_from(description.len()).map_err(io::Error::other)?;
        header[40..].copy_from_slice(&length.to_le_bytes());
        out.write_all(&header)?;
        let mut cipher = self.cipher(header)?;
        cipher.seal(&mut description, false)?;
        out.write_all(&description)?;
        let (mut left, mut piece) = (saved.bytes, Vec::with_capacity(PIECE + TAG));
        while left > 0 {
            piece.clear();
            let most = left.min(PIECE as u64);
            let read = Read::by_ref(file).take(most).read_to_end(&mut piece)?;
            if read as u64 != most {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= most;
            cipher.seal(&mut piece, left == 0)?;
            out.write_all(&piece)?;
        }
        if file.read(&mut [0])? > 0 {
            return Err(invalid("the file has grown"));
        }
        Ok(())
    }

    /// Reads the header and the description of what [`Self::seal`] wrote.
    ///
    /// # Errors
    /// [`Code::Corrupt`] if it is nothing of the kind, was changed, or is of another key; [`Code::Unreachable`] if reading
    /// fails.
    pub fn open<R: Read>(&self, mut from: R) -> Result<SealedContext<R>, Error> {
        let mut header = [0; HEADER];
        fill(&mut from, &mut header)?;
        if header[..8] != MAGIC {
            return Err(corrupt("is not a context that Tierbar uploaded"));
        }
        if header[8..24] != self.salt {
            return Err(corrupt("was encrypted for another store"));
        }
        let [.., a, b, c, d] = header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > LONGEST_DESCRIPTION {
            return Err(corrupt("was changed"));
        }
        let mut description = vec![0; length + TAG];
        fill(&mut from, &mut description)?;
        let mut cipher = self
            .cipher(header)
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        cipher.open(&mut description, false)?;
        let saved = serde_json::from_slice(&description)
            .map_err(|_| corrupt("was uploaded by another version of Tierbar"))?;
        Ok(SealedContext {
            saved,
            from,
            cipher,
            before: (HEADER + length + TAG) as u64,
        })
    }

    /// The most bytes that [`Self::open`] reads.
    pub const OPENING: u64 = (HEADER + LONGEST_DESCRIPTION + TAG) as u64;
}

/// An encrypted context whose description has been read, and is that of its key's owner.
#[derive(Debug)]
pub struct SealedContext<R> {
    saved: ContextDescription,
    from: R,
    cipher: Cipher,
    before: u64,
}

impl<R: Read> SealedContext<R> {
    pub fn saved(&self) -> &ContextDescription {
        &self.saved
    }

    /// Of the whole, encrypted.
    pub fn bytes(&self) -> u64 {
        let pieces = self.saved.bytes.div_ceil(PIECE as u64);
        let tags = pieces.saturating_mul(TAG as u64);
        self.before
            .saturating_add(self.saved.bytes)
            .saturating_add(tags)
    }

    /// Decrypts the file. What is written before an error is that of the key's owner, but not all of it.
    ///
    /// # Errors
    /// [`Code::Corrupt`] if it was changed, cut, or has more after its end; [`Code::Storage`] if it cannot be written.
    pub fn unseal(mut self, out: &mut impl Write) -> Result<(), Error> {
        let (mut left, mut piece) = (self.saved.bytes, Vec::with_capacity(PIECE + TAG));
        while left > 0 {
            let most = left.min(PIECE as u64);
            left -= most;
            piece.resize(usize::try_from(most).unwrap_or(PIECE) + TAG, 0);
            fill(&mut self.from, &mut piece)?;
            self.cipher.open(&mut piece, left == 0)?;
            out.write_all(&piece).map_err(|error| {
                Error::new(Code::Storage, format!("cannot write the context: {error}"))
            })?;
        }
        match self.from.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(corrupt("is longer than it was when it was uploaded")),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

#[derive(Debug)]
struct Cipher {
    key: LessSafeKey,
    header: [u8; HEADER],
    /// The number of the next piece.
    piece: u32,
}

impl Cipher {
    /// Each is used once, since each file has a key of its own.
    fn nonce(&mut self, last: bool) -> io::Result<Nonce> {
        let mut nonce = [0; NONCE_LEN];
        nonce[7..11].copy_from_slice(&self.piece.to_be_bytes());
        nonce[11] = last.into();
        self.piece = self
            .piece
            .checked_add(1)
            .ok_or_else(|| invalid("the context is too long"))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn seal(&mut self, piece: &mut Vec<u8>, last: bool) -> io::Result<()> {
        let nonce = self.nonce(last)?;
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(&self.header), piece)
            .map_err(|_| invalid("the piece is too long"))
    }

    fn open(&mut self, piece: &mut Vec<u8>, last: bool) -> Result<(), Error> {
        let changed = || corrupt("was changed");
        let nonce = self.nonce(last).map_err(|_| changed())?;
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(&self.header), piece)
            .map_err(|_| changed())?;
        let length = opened.len();
        piece.truncate(length);
        Ok(())
    }
}

fn random_salt() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}

fn fill(from: &mut impl Read, into: &mut [u8]) -> Result<(), Error> {
    from.read_exact(into).map_err(|error| unreadable(&error))
}

fn unreadable(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return corrupt("is shorter than it was when it was uploaded");
    }
    Error::new(Code::Storage, format!("cannot read the context: {error}"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(crate) fn corrupt(what: &str) -> Error {
    Error::new(Code::Corrupt, format!("the context in the store {what}"))
        .hint("upload it again from a machine that still has it; nothing here was changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use tierbar_core::{ModelId, config::KvCache};

    /// As cheap as it can be: the cost is no subject here.
    fn key(passphrase: &str, salt: u8) -> StoreKey {
        StoreKey::derive_with(&passphrase.to_owned().into(), [salt; 16], (32, 1)).unwrap()
    }

    fn saved(bytes: u64) -> ContextDescription {
        let key = Key {
            model: "m".into(),
            template: "t".into(),
            kv_cache: KvCache::F16,
            engine: "e".into(),
        };
        ContextDescription {
            name: "book".into(),
            model: ModelId("small".into()),
            tokens: 3,
            bytes,
            created: 1,
            key,
            back: None,
            packed: None,
        }
    }

    fn sealed(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let saved = saved(bytes.len() as u64);
        key("secret", 1)
            .seal(&saved, &mut &*bytes, &mut out)
            .unwrap();
        out
    }

    fn unsealed(key: &StoreKey, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        key.open(sealed)?.unseal(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_is_sealed_comes_back_with_its_key_alone() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let whole = sealed(&bytes);
            let open = key("secret", 1).open(&*whole).unwrap();
            assert_eq!(open.saved(), &saved(length as u64));
            assert_eq!(open.bytes(), whole.len() as u64);
            assert!(unsealed(&key("secret", 1), &whole).unwrap() == bytes);
            for other in [key("Secret", 1), key("secret", 2)] {
                assert_eq!(unsealed(&other, &whole).unwrap_err().code, Code::Corrupt);
            }
        }
    }

    #[test]
    fn nothing_of_the_plaintext_shows() {
        let (one, other) = (sealed(&[7; 500]), sealed(&[7; 500]));
        assert_ne!(one, other);
        for word in [&b"book"[..], b"small", &[7; 8]] {
            assert!(!one.windows(word.len()).any(|window| window == word));
        }
        let name = key("secret", 1).object("book");
        assert_eq!(name, key("secret", 1).object("book"));
        assert_ne!(name, key("secret", 2).object("book"));
        assert_ne!(name, key("secret", 1).object("look"));
        assert_ne!(key("secret", 1).check(), key("other", 1).check());
    }

    #[test]
    fn every_change_is_noticed() {
        let whole = sealed(&vec![7; 2 * PIECE + 9]);
        let refused = |changed: &[u8]| {
            assert_eq!(
                unsealed(&key("secret", 1), changed).unwrap_err().code,
                Code::Corrupt
            );
        };
        for at in (0..HEADER + 300).chain((0..whole.len()).step_by(70_001)) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            refused(&changed);
        }
        let first = whole.len() - 2 * (PIECE + TAG) - 9 - TAG;
        let (second, third) = (first + PIECE + TAG, first + 2 * (PIECE + TAG));
        for length in [0, 7, HEADER, first, second, third, whole.len() - 1] {
            refused(&whole[..length]);
        }
        refused(&[&whole[..], &[0]].concat());
        // Two pieces in the other order.
        let swapped = [
            &whole[..first],
            &whole[second..third],
            &whole[first..second],
            &whole[third..],
        ];
        refused(&swapped.concat());
        // A piece of another file at its place.
        let other = sealed(&vec![7; 2 * PIECE + 9]);
        refused(&[&whole[..first], &other[first..second], &whole[second..]].concat());
    }

    #[test]
    fn a_file_of_another_length_is_not_sealed() {
        for length in [4, 6] {
            let mut out = Vec::new();
            let file = vec![1; length];
            let outcome = key("secret", 1).seal(&saved(5), &mut &*file, &mut out);
            outcome.unwrap_err();
        }
    }

    /// The whole of it once, at its real cost.
    #[test]
    fn the_cost_of_a_key_is_that_of_rfc_9106() {
        let key =
            StoreKey::derive(&"correct horse".to_owned().into(), *b"0123456789abcdef").unwrap();
        assert_eq!(key.check(), CHECK);
    }

    /// By another implementation, `argon2-cffi`; another value would lock out all who have uploaded something.
    const CHECK: &str = "e773ce956d9c111e50b16f8c62aa3032e18690025e577b8c7971e386f203cae4";
}
