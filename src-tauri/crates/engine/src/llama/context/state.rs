//! The state of a sequence: kept beside the context, or saved in a file and restored.

use super::{Context, Sequence};
use crate::llama::{Token, positions::SequenceEnd, take_error};
use llama_cpp_sys_2 as sys;
use std::{ffi::CString, os::unix::ffi::OsStrExt, path::Path};
use tierbar_core::{Code, Error};

/// llama.h's `LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY`, whose macro the bindings do not have.
const PARTIAL_ONLY: sys::llama_state_seq_flags = 1;

impl Context {
    /// Returns the part of the sequence's state that later tokens overwrite: sliding windows and recurrent states. It has some
    /// bytes to some tens of MiB, depending on the model.
    pub(crate) fn passing_state(&mut self, sequence: Sequence) -> Vec<u8> {
        let flags = PARTIAL_ONLY;
        // SAFETY: the context is live, and the buffer as long as is said.
        unsafe {
            let size = sys::llama_state_seq_get_size_ext(self.raw.as_ptr(), sequence as i32, flags);
            let mut state = vec![0; size];
            let written = sys::llama_state_seq_get_data_ext(
                self.raw.as_ptr(),
                state.as_mut_ptr(),
                size,
                sequence as i32,
                flags,
            );
            state.truncate(written);
            state
        }
    }

    /// Restores what [`Self::passing_state`] returned when the sequence ended there; its other layers must still have all
    /// of it. If that fails, returns `false` and empties the sequence.
    pub(crate) fn restore_passing_state(
        &mut self,
        sequence: Sequence,
        state: &[u8],
        end: SequenceEnd,
    ) -> bool {
        // SAFETY: the context is live; the state is one of its own, of the length that is said.
        let restored = unsafe {
            let read = sys::llama_state_seq_set_data_ext(
                self.raw.as_ptr(),
                state.as_ptr(),
                state.len(),
                sequence as i32,
                PARTIAL_ONLY,
            );
            read == state.len()
                && sys::llama_memory_seq_rm(self.memory_handle(), sequence as i32, end.next, -1)
        };
        let whole = restored && self.last(sequence) == end.last;
        if !whole {
            self.clear(sequence);
        }
        whole
    }

    /// Returns the bytes that [`Self::save`] writes.
    pub(crate) fn state_bytes(&mut self, sequence: Sequence) -> u64 {
        // SAFETY: the context is live.
        let bytes = unsafe { sys::llama_state_seq_get_size(self.raw.as_ptr(), sequence as i32) };
        bytes as u64
    }

    /// Writes the sequence, which has these tokens, to a file, layer by layer. Returns the file's length.
    ///
    /// # Errors
    /// [`Code::Storage`] if it could not be written.
    pub(crate) fn save(
        &mut self,
        sequence: Sequence,
        path: &Path,
        tokens: &[Token],
    ) -> Result<u64, Error> {
        let written = c_path(path).map_or(0, |name| {
            // SAFETY: the context is live, the path NUL-terminated, the tokens as many as is said.
            unsafe {
                sys::llama_state_seq_save_file(
                    self.raw.as_ptr(),
                    name.as_ptr(),
                    sequence as i32,
                    tokens.as_ptr(),
                    tokens.len(),
                )
            }
        });
        if written > 0 {
            return Ok(written as u64);
        }
        let reason = take_error();
        let message = format!("{} could not be written: {reason}", path.display());
        Err(Error::new(Code::Storage, message).hint("check the free space on the disk"))
    }

    /// Fills a sequence from a complete file that [`Self::save`] wrote for these tokens. After an error, its contents are
    /// undefined.
    ///
    /// # Errors
    /// [`Code::ContextMismatch`] with llama.cpp's reason.
    pub(crate) fn restore(
        &mut self,
        sequence: Sequence,
        path: &Path,
        tokens: &[Token],
    ) -> Result<(), Error> {
        let mut found = vec![0; tokens.len()];
        let mut count = 0;
        let read = c_path(path).map_or(0, |name| {
            // SAFETY: the context is live, the path NUL-terminated, the output as long as is said.
            unsafe {
                sys::llama_state_seq_load_file(
                    self.raw.as_ptr(),
                    name.as_ptr(),
                    sequence as i32,
                    found.as_mut_ptr(),
                    found.len(),
                    &raw mut count,
                )
            }
        });
        if read > 0 && found == tokens && self.last(sequence) == SequenceEnd::of(tokens).last {
            return Ok(());
        }
        let reason = take_error();
        let message = format!("llama.cpp did not restore {}: {reason}", path.display());
        Err(Error::new(Code::ContextMismatch, message).hint("save the conversation again"))
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}
