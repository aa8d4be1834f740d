"""The paper's experiment, from recordings to its figure and tables: ``python -m recipes.paper``."""
