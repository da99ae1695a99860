//! A media projector: turns images and sound into rows that take the place of tokens.

use super::{
    Token, backend::take_error, context::RowPositions, encoding::EncoderState, model::Model,
    owned_pointer::OwnedPointer,
};
use crate::{bad, pause::Pause, turns::Turns};
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr,
    sync::{Arc, atomic::AtomicBool},
};
use tierbar_core::{Code, Error};

#[derive(Debug)]
pub(crate) struct Projector {
    raw: OwnedPointer<sys::mtmd_context>,
    /// The placeholder of an image or sound in a prompt. It is random per process, so that no client can write it.
    marker: CString,
    /// Locked while encoding, because the result is in the projector.
    one: Mutex<()>,
    /// The library holds a pointer to it.
    pub(crate) encoding: Arc<EncoderState>,
    model: Arc<Model>,
}

// SAFETY: preparing is documented as safe from several threads, and encoding is done under the mutex.
unsafe impl Sync for Projector {}

#[derive(Debug, Clone)]
pub(crate) struct ProjectorParams {
    pub(crate) threads: u16,
    pub(crate) gpu: bool,
    /// The most rows of an image: larger ones are scaled down. `None` for the projector's own limit.
    pub(crate) most_rows: Option<u32>,
    /// Shared with the contexts on the same threads.
    pub(crate) turns: Arc<Turns>,
    pub(crate) pause: Arc<Pause>,
    /// Whether to build its graphs at load.
    pub(crate) warmup: bool,
}

/// A decoded image or sound.
#[derive(Debug)]
pub(crate) struct Medium(OwnedPointer<sys::mtmd_bitmap>);

/// A prompt, cut into text and media.
#[derive(Debug)]
pub(crate) struct Chunks(OwnedPointer<sys::mtmd_input_chunks>);

/// One of [`Chunks`].
#[derive(Debug)]
pub(crate) enum Chunk<'a> {
    Text(&'a [Token]),
    Medium(MediumChunk<'a>),
}

#[derive(Debug)]
pub(crate) struct MediumChunk<'a> {
    raw: &'a sys::mtmd_input_chunk,
    /// The identity of its medium.
    pub(crate) id: String,
    pub(crate) rows: usize,
    /// Its rows attend to each other, so they must be evaluated in one batch.
    pub(crate) whole: bool,
}

impl Projector {
    /// # Errors
    /// [`Code::ModelInvalid`] for a file that does not fit the model.
    pub(crate) fn load(
        path: &Path,
        model: Arc<Model>,
        given: ProjectorParams,
    ) -> Result<Self, Error> {
        let invalid = |reason: &str| {
            let path = path.display();
            let message = format!("the projector {path} could not be loaded: {reason}");
            Error::new(Code::ModelInvalid, message)
                .hint("the file may be damaged or belong to another model; download it again")
        };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| invalid("its path contains a NUL byte"))?;
        let marker = format!("<__media_{}__>", uuid::Uuid::new_v4().simple());
        let marker = CString::new(marker).map_err(|_| invalid("its marker contains a NUL byte"))?;
        // SAFETY: sets a callback that may be called from any thread, and answers a plain struct of defaults.
        let mut params = unsafe {
            sys::mtmd_helper_log_set(Some(logged), ptr::null_mut());
            sys::mtmd_context_params_default()
        };
        params.use_gpu = given.gpu;
        params.n_threads = i32::from(given.threads);
        if let Some(rows) = given.most_rows {
            params.image_max_tokens = i32::try_from(rows).unwrap_or(i32::MAX);
        }
        params.media_marker = marker.as_ptr();
        params.print_timings = false;
        params.warmup = given.warmup;
        let encoding = Arc::new(EncoderState::new(given.gpu, given.turns, given.pause));
        params.cb_eval = Some(super::encoding::between_nodes);
        params.cb_eval_user_data = Arc::as_ptr(&encoding).cast_mut().cast();
        // SAFETY: path and marker are NUL-terminated and outlive the call, the model is live and held below, as is what the
        // callback is given.
        let raw = unsafe {
            let raw = sys::mtmd_init_from_file(name.as_ptr(), model.raw.as_ptr(), params);
            OwnedPointer::new(raw, sys::mtmd_free)
        };
        let raw = raw.ok_or_else(|| invalid(&take_error()))?;
        Ok(Self {
            raw,
            marker,
            one: Mutex::default(),
            encoding,
            model,
        })
    }

    pub(crate) fn marker(&self) -> &str {
        self.marker.to_str().unwrap_or_default()
    }

    pub(crate) fn sees(&self) -> bool {
        // SAFETY: the projector is live.
        unsafe { sys::mtmd_support_vision(self.raw.as_ptr()) }
    }

    pub(crate) fn hears(&self) -> bool {
        // SAFETY: the projector is live.
        unsafe { sys::mtmd_support_audio(self.raw.as_ptr()) }
    }

    /// Decodes a WAV or MP3 file, whose kind the caller has checked. Returns `None` if it is incomplete.
    pub(crate) fn sound(&self, file: &[u8], id: &str) -> Option<Medium> {
        // SAFETY: the projector is live, the file as long as is said; the options are a plain struct of defaults.
        let made = unsafe {
            let options = sys::mtmd_helper_init_opt_default();
            sys::mtmd_helper_bitmap_init_from_buf(
                self.raw.as_ptr(),
                file.as_ptr(),
                file.len(),
                false,
                options,
            )
        };
        Medium::new(made.bitmap, id)
    }

    /// Splits a prompt with a marker for each medium.
    pub(crate) fn cut(&self, prompt: &str, media: &[Medium]) -> Result<Chunks, Error> {
        // SAFETY: answers a list that we own.
        let chunks = unsafe {
            OwnedPointer::new(sys::mtmd_input_chunks_init(), sys::mtmd_input_chunks_free)
                .map(Chunks)
        };
        let chunks =
            chunks.ok_or_else(|| Error::new(Code::Internal, "not enough memory for the prompt"))?;
        let text = sys::mtmd_input_text {
            text: prompt.as_ptr().cast(),
            text_len: prompt.len(),
            add_special: true,
            parse_special: true,
        };
        let mut pointers: Vec<*const sys::mtmd_bitmap> = media
            .iter()
            .map(|one| one.0.as_ptr().cast_const())
            .collect();
        // SAFETY: the projector and the media are live; text and list are as long as is said.
        let status = unsafe {
            sys::mtmd_tokenize(
                self.raw.as_ptr(),
                chunks.0.as_ptr(),
                &raw const text,
                pointers.as_mut_ptr(),
                pointers.len(),
            )
        };
        match status {
            0 => Ok(chunks),
            1 => Err(bad("the chat template does not support images or audio")),
            _ => {
                let reason = take_error();
                Err(bad(format!(
                    "an image or audio part cannot be prepared: {reason}"
                )))
            }
        }
    }

    pub(crate) fn chunk<'a>(&self, chunks: &'a Chunks, index: usize) -> Option<Chunk<'a>> {
        // SAFETY: projector and list are live; what is read of a chunk lives as long as the list.
        unsafe {
            if index >= sys::mtmd_input_chunks_size(chunks.0.as_ptr()) {
                return None;
            }
            let raw = sys::mtmd_input_chunks_get(chunks.0.as_ptr(), index);
            if sys::mtmd_input_chunk_get_type(raw) == sys::MTMD_INPUT_CHUNK_TYPE_TEXT {
                let mut length = 0;
                let tokens = sys::mtmd_input_chunk_get_tokens_text(raw, &raw mut length);
                return Some(Chunk::Text(if length == 0 {
                    &[]
                } else {
                    std::slice::from_raw_parts(tokens, length)
                }));
            }
            let id = sys::mtmd_input_chunk_get_id(raw);
            Some(Chunk::Medium(MediumChunk {
                raw: &*raw,
                id: if id.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(id).to_string_lossy().into_owned()
                },
                rows: sys::mtmd_input_chunk_get_n_tokens(raw),
                whole: sys::mtmd_decode_use_non_causal(self.raw.as_ptr(), raw),
            }))
        }
    }

    /// Returns the positions of a chunk's rows if it starts at that position, and the position of what follows.
    pub(crate) fn places(&self, chunk: &MediumChunk<'_>, start: i32) -> (Vec<RowPositions>, i32) {
        // SAFETY: the projector and the chunk are live; only an image's chunk has an image, and as many rows as it.
        unsafe {
            let image = sys::mtmd_input_chunk_get_tokens_image(chunk.raw);
            let after = start + sys::mtmd_input_chunk_get_n_pos(chunk.raw);
            let place = |row: usize| {
                if image.is_null() || !sys::mtmd_decode_use_mrope(self.raw.as_ptr()) {
                    return [start.saturating_add(i32::try_from(row).unwrap_or(i32::MAX)); 4];
                }
                let place = sys::mtmd_image_tokens_get_decoder_pos(image, start, row);
                [place.t, place.y, place.x, place.z]
                    .map(|position| i32::try_from(position).unwrap_or(i32::MAX))
            };
            ((0..chunk.rows).map(place).collect(), after)
        }
    }

    /// Returns the rows of a chunk, one after another. Takes seconds for an image on a CPU.
    ///
    /// # Errors
    /// [`Code::Cancelled`] soon after `gone` is set.
    pub(crate) fn encode(
        &self,
        chunk: &MediumChunk<'_>,
        gone: &Arc<AtomicBool>,
    ) -> Result<Vec<f32>, Error> {
        let _one = self.one.lock();
        let status = self.encoding.run(gone, || {
            // SAFETY: the projector and the chunk are live, and no other thread encodes.
            unsafe { sys::mtmd_encode_chunk(self.raw.as_ptr(), chunk.raw) }
        })?;
        if status != 0 {
            let message = format!("the projector failed: {}", take_error());
            return Err(Error::new(Code::Internal, message));
        }
        let floats = chunk.rows * self.model.input_width();
        // SAFETY: the result is as long as the chunk's rows, and stays until the next is encoded.
        let rows = unsafe {
            std::slice::from_raw_parts(sys::mtmd_get_output_embd(self.raw.as_ptr()), floats)
        };
        Ok(rows.to_vec())
    }
}

impl Medium {
    /// Creates an image of `width` × `height` × 3 bytes: red, green, blue.
    pub(crate) fn picture(width: u32, height: u32, colours: &[u8], id: &str) -> Option<Self> {
        if colours.len() as u64 != u64::from(width) * u64::from(height) * 3 {
            return None;
        }
        // SAFETY: the colours are as many as the picture has.
        let raw = unsafe { sys::mtmd_bitmap_init(width, height, colours.as_ptr()) };
        Self::new(raw, id)
    }

    fn new(raw: *mut sys::mtmd_bitmap, id: &str) -> Option<Self> {
        // SAFETY: what both callers have made is ours; the text is copied.
        unsafe {
            let medium = OwnedPointer::new(raw, sys::mtmd_bitmap_free)?;
            sys::mtmd_bitmap_set_id(raw, CString::new(id).ok()?.as_ptr());
            Some(Self(medium))
        }
    }
}

/// Passes this library's log to ours; it is separate from llama.cpp's.
unsafe extern "C" fn logged(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: the library's messages are NUL-terminated.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    match level {
        sys::GGML_LOG_LEVEL_ERROR => tracing::error!("{text}"),
        sys::GGML_LOG_LEVEL_WARN => tracing::warn!("{text}"),
        _ => {}
    }
}
