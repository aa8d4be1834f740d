"""Recipes from data to scores, written with the public functions of evenscore alone."""
