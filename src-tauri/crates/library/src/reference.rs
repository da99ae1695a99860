//! What a user may ask for: `owner/repo[:quant]`, a file of a repository, a URL, a catalog id, an Ollama-style name.
