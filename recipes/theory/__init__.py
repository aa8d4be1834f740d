"""What the theory says of score normalization, shown on drawn embeddings: ``python -m recipes.theory``."""
