//! Models that other apps keep: LM Studio, Ollama, the Hugging Face cache. Found and used in place, never changed.
