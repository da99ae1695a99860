//! What a model file is and what it costs, as read from its header.

use crate::{
    run::{KvCache, MICRO_BATCH, SLOTS},
    sampling::Sampling,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A model's name in the API: its file name without `.gguf`.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(transparent)]
pub struct ModelId(pub String);

impl ModelId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model's file, as what is measured of it names it.
#[derive(Debug, Clone, Copy)]
pub struct FileIdentity<'a> {
    pub model: &'a ModelId,
    pub size_bytes: u64,
    /// When it was changed last, in seconds since 1970, if that is known.
    pub modified: Option<u64>,
    /// The sha256 of the file in lower-case hex, if it is known.
    pub sha256: Option<&'a str>,
}

impl FileIdentity<'_> {
    /// Whether both name the same file: by the hash if both are known, else by name, size and time. Of two models with the same shape,
    /// one may have taken the other's name.
    pub fn is_same(self, other: FileIdentity<'_>) -> bool {
        match (self.sha256, other.sha256) {
            (Some(one), Some(other)) => one == other,
            _ => {
                self.model == other.model
                    && self.size_bytes == other.size_bytes
                    && self.modified == other.modified
            }
        }
    }
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// It generates text.
    #[default]
    Chat,
    /// It turns a text into a vector.
    Embedding,
    /// It scores how well a document answers a query.
    Reranking,
}

/// A model's bytes by class and the shapes that the memory plan needs. All sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ModelAccount {
    /// `general.architecture`, such as `llama` or `gemma3`.
    pub architecture: String,
    /// What the header says that it is for.
    #[serde(default)]
    #[schema(required = true)]
    pub kind: ModelKind,
    /// `general.name`, if the file has one.
    pub name: Option<String>,
    /// The file's quantization, such as `Q4_K_M`.
    pub quant: String,
    pub file_bytes: u64,
    /// The number of files; more than one for a split model.
    pub parts: u32,
    /// All tensors of no other class; a token reads all of them.
    pub dense_bytes: u64,
    /// The table of input embeddings. A token reads one row, or all of it where it is the output layer too.
    pub embedding_bytes: u64,
    /// Gemma's embeddings per layer, of which a token reads one row.
    pub per_layer_embedding_bytes: u64,
    /// Tensors of a mixture of experts, of which a token reads a few.
    pub expert_bytes: u64,
    /// Of `dense_bytes`, the feed-forward matrices of a dense model's layers, most of its weights.
    #[serde(default)]
    pub feed_forward_bytes: u64,
    /// Of the experts, or of these matrices, those of the layer that has most; 0 if that is not known.
    #[serde(default)]
    pub largest_layer_bytes: u64,
    pub parameters: u64,
    /// The input embeddings are the output layer too.
    pub tied_output: bool,
    pub layers: u32,
    /// Query heads, and heads that keep keys and values, of the layer that has most.
    pub heads: u32,
    pub kv_heads: u32,
    /// Experts of a layer, and those of them that a token reads; 0 in a dense model.
    pub experts: u32,
    pub experts_used: u32,
    /// Width of the residual stream.
    pub embedding: u32,
    pub vocabulary: u32,
    /// Context the model was trained for, in tokens.
    pub context_train: u32,
    pub kv: KvAccount,
    /// Whether the file carries a chat template.
    pub chat_template: bool,
    /// Whether that template supports thinking, and tools.
    pub thinking: bool,
    pub tools: bool,
    /// How its maker would have tokens chosen, as far as the file says.
    #[serde(default)]
    pub sampling: Sampling,
}

impl ModelAccount {
    /// Embeddings of which a token reads one row. The input's are not among them where they are the output layer too.
    pub fn row_read_bytes(&self) -> u64 {
        let input = match self.tied_output {
            true => 0,
            false => self.embedding_bytes,
        };
        input.saturating_add(self.per_layer_embedding_bytes)
    }
}

/// What a sequence costs in the KV cache, in elements; [`KvCache`] turns elements into bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KvAccount {
    /// K and V elements per token over all full-attention layers.
    pub full_elements_per_token: u64,
    /// K and V elements per cell over all sliding-window layers.
    pub sliding_elements_per_cell: u64,
    /// Sliding window in tokens; 0 if no layer slides.
    pub window: u32,
    /// State of recurrent layers, per sequence, whatever the context.
    pub state_bytes: u64,
}

impl KvAccount {
    /// Returns whether the model cannot go back to every earlier position, because of a sliding window or recurrent layers.
    pub fn forgets(&self) -> bool {
        self.window > 0 || self.state_bytes > 0
    }

    /// Bytes of a worker's cache for `context` tokens, which its [`SLOTS`] share.
    ///
    /// Sliding layers hold `pad256(min(context, SLOTS × window + batch))` cells, with batches of [`MICRO_BATCH`], as llama.cpp's
    /// `llama-kv-cache-iswa.cpp` allocates them; the context itself is padded to 256. Each slot has a recurrent state.
    pub fn bytes(&self, context: u32, kv: KvCache) -> u64 {
        self.bytes_in_batches(context, kv, MICRO_BATCH)
    }

    /// The same where the worker evaluates `batch` tokens at a time.
    pub fn bytes_in_batches(&self, context: u32, kv: KvCache, batch: u32) -> u64 {
        let pad = |cells: u64| cells.div_ceil(256) * 256;
        let full = pad(u64::from(context));
        let windows = self.window.saturating_mul(SLOTS.into());
        let sliding = pad(context.min(windows.saturating_add(batch)).into());
        let of_full = self.full_elements_per_token.saturating_mul(full);
        let of_sliding = self.sliding_elements_per_cell.saturating_mul(sliding);
        let elements = of_full.saturating_add(of_sliding);
        let states = self.state_bytes.saturating_mul(SLOTS.into());
        kv.bytes(elements).saturating_add(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Gemma 3 270M: 3 full and 15 sliding layers, 1 KV head of 256, window 512.
    const GEMMA_270M: KvAccount = KvAccount {
        full_elements_per_token: 3 * 2 * 256,
        sliding_elements_per_cell: 15 * 2 * 256,
        window: 512,
        state_bytes: 0,
    };

    #[test]
    fn a_sliding_window_stops_growing_with_the_context() {
        // Two slots' windows and a micro-batch.
        let sliding = 1536 * 15 * 2 * 256 * 2;
        assert_eq!(GEMMA_270M.bytes(4096, KvCache::F16), 4096 * 3072 + sliding);
        assert_eq!(
            GEMMA_270M.bytes(32768, KvCache::F16),
            32768 * 3072 + sliding
        );
    }

    #[test]
    fn a_file_is_known_by_its_hash_or_name_size_and_time() {
        let (small, moved) = (ModelId("small".to_owned()), ModelId("moved".to_owned()));
        let file = |model, size_bytes, modified, sha256| FileIdentity {
            model,
            size_bytes,
            modified: Some(modified),
            sha256,
        };
        let known = file(&small, 100, 7, Some("ab"));
        for (other, is_same) in [
            (file(&moved, 100, 8, Some("ab")), true),
            (file(&small, 100, 7, Some("cd")), false),
            // Not hashed yet.
            (file(&small, 100, 7, None), true),
            (file(&small, 101, 7, None), false),
            (file(&small, 100, 8, None), false),
            (file(&moved, 100, 7, None), false),
        ] {
            assert_eq!(known.is_same(other), is_same, "{other:?}");
        }
    }

    #[test]
    fn a_quantized_cache_counts_its_block_scales() {
        assert_eq!(KvCache::Q8_0.bytes(32), 34);
        assert_eq!(KvCache::Q4_0.bytes(32), 18);
    }
}
