"""Programs over the public functions of evenscore; they come with its source, not with its package.

``python -m recipes.paper`` is the paper's experiment from speech to its figure and tables, ``python -m recipes.theory``
runs its theory on drawn embeddings, and ``python -m recipes.choose_cohort`` picks a cohort for your trials.
"""
