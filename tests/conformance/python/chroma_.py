from cells import *
from chromadb.utils.embedding_functions import OllamaEmbeddingFunction


def embeddings(tier):
    """A chunk that is longer than the context is cut, as Ollama does it: an error would end the collection."""
    return OllamaEmbeddingFunction(url=URL, model_name=tier, timeout=SECONDS)([STORY, QUESTION])[1]


run("chromadb-client")
