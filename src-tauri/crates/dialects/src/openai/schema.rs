//! The requests that are relayed as they came and their answers, by the names of their schemas. What the relay itself reads of a
//! request is in `inference/content.rs`.

tierbar_http::written!(
    ChatCompletion,
    ChatRequest,
    Embeddings,
    EmbeddingsRequest,
    KeepAlive,
    Model,
    Models,
    RerankRequest,
    Reranked,
    TextCompletion,
    TextRequest,
);
