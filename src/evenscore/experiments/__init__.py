"""Experiments that show what the theory says and what the methods do; they use the public functions of evenscore only."""
