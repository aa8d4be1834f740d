"""Experiments that show what the theory says and what the methods do, written with the public functions alone."""
