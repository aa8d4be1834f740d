from .embeddings import score_chunks as score_chunks
