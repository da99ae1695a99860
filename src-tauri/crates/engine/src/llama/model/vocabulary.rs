//! A model's vocabulary: tokens of texts, texts of tokens, and the tokens that end an answer.

use super::Model;
use crate::{bad, llama::Token};
use llama_cpp_sys_2 as sys;
use tierbar_core::Error;

impl Model {
    pub(crate) fn vocabulary(&self) -> usize {
        // SAFETY: the vocabulary lives as long as the model.
        usize::try_from(unsafe { sys::llama_vocab_n_tokens(self.vocab()) }).unwrap_or(0)
    }

    pub(crate) fn is_end(&self, token: Token) -> bool {
        // SAFETY: the vocabulary lives as long as the model; any token value is accepted.
        unsafe { sys::llama_vocab_is_eog(self.vocab(), token) }
    }

    pub(crate) fn end_tokens(&self) -> &[Token] {
        // This takes some hundred thousand calls, so the result is cached.
        self.ends.get_or_init(|| {
            (0..Token::try_from(self.vocabulary()).unwrap_or(0))
                .filter(|&token| self.is_end(token))
                .collect()
        })
    }

    /// Tokens that the model must never choose.
    pub(crate) fn suppressed(&self) -> Vec<Token> {
        let mut count = 0;
        // SAFETY: the vocabulary lives as long as the model, and the list as long as the vocabulary.
        unsafe {
            let list = sys::llama_vocab_get_suppress_tokens(self.vocab(), &raw mut count);
            match usize::try_from(count) {
                Ok(count) if count > 0 && !list.is_null() => {
                    std::slice::from_raw_parts(list, count).to_vec()
                }
                _ => Vec::new(),
            }
        }
    }

    /// Tokenizes a text. With `special`, adds the model's BOS and EOS as configured, and parses control tokens in the text.
    pub(crate) fn tokenize(
        &self,
        text: &str,
        special: bool,
        parse_special: bool,
    ) -> Result<Vec<Token>, Error> {
        let too_long = || bad(format!("{} bytes of text cannot be tokenized", text.len()));
        let length = i32::try_from(text.len()).map_err(|_| too_long())?;
        // No tokenizer returns more tokens than bytes, plus BOS and EOS.
        let mut tokens = vec![0; text.len() + 2];
        let capacity = i32::try_from(tokens.len()).map_err(|_| too_long())?;
        // SAFETY: the text pointer is valid for `length` bytes, the output for `capacity` tokens.
        let count = unsafe {
            sys::llama_tokenize(
                self.vocab(),
                text.as_ptr().cast(),
                length,
                tokens.as_mut_ptr(),
                capacity,
                special,
                parse_special,
            )
        };
        tokens.truncate(usize::try_from(count).map_err(|_| too_long())?);
        Ok(tokens)
    }

    /// Appends the token's bytes, which may be partial UTF-8; with `special`, also the text of control tokens.
    pub(crate) fn append_piece(&self, token: Token, special: bool, out: &mut Vec<u8>) {
        let mut buffer = [0u8; 128];
        let write = |buffer: &mut [u8]| {
            let length = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
            // SAFETY: the buffer is writable for `length` bytes.
            unsafe {
                sys::llama_token_to_piece(
                    self.vocab(),
                    token,
                    buffer.as_mut_ptr().cast(),
                    length,
                    0,
                    special,
                )
            }
        };
        let written = write(&mut buffer);
        if let Ok(length) = usize::try_from(written) {
            out.extend_from_slice(&buffer[..length]);
        } else {
            let mut long = vec![0u8; usize::try_from(written.unsigned_abs()).unwrap_or(0)];
            let length = usize::try_from(write(&mut long)).unwrap_or(0);
            out.extend_from_slice(&long[..length]);
        }
    }

    /// Returns the tokens of a query and a document for a model without a template for them, as llama-server puts them
    /// together: `[BOS] query [EOS] [SEP] document [EOS]`, without those that the vocabulary does not add.
    pub(crate) fn pair(&self, query: &[Token], document: &[Token]) -> Vec<Token> {
        let vocab = self.vocab();
        // SAFETY: the vocabulary lives as long as the model.
        let (begin, end, separator) = unsafe {
            let separator = sys::llama_vocab_sep(vocab);
            let end = sys::llama_vocab_eos(vocab);
            let end = if end < 0 { separator } else { end };
            let added = |token, adds: bool| Some(token).filter(|_| adds);
            (
                added(
                    sys::llama_vocab_bos(vocab),
                    sys::llama_vocab_get_add_bos(vocab),
                ),
                added(end, sys::llama_vocab_get_add_eos(vocab)),
                added(separator, sys::llama_vocab_get_add_sep(vocab)),
            )
        };
        let query = begin.into_iter().chain(query.iter().copied());
        let document = separator.into_iter().chain(document.iter().copied());
        query.chain(end).chain(document).chain(end).collect()
    }
}
