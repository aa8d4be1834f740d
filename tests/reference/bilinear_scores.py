"""Bilinear scores and their sums, pair by pair and straight from the definition."""

import math

import numpy as np

from evenscore.model.sums import ClassSums


def dense_scores(source):
    """s_ij = left_i . right_j + left_offset_i + right_offset_j, each rounded once."""
    scores = np.empty(source.shape)
    for i, u in enumerate(source.left.astype(float)):
        for j, v in enumerate(source.right.astype(float)):
            terms = [a * b for a, b in zip(u, v, strict=True)]
            scores[i, j] = math.fsum([*terms, source.left_offset[i], source.right_offset[j]])
    return scores


def dense_class_sums(scores, key, center) -> ClassSums:
    """Sums of the scores of each class, by masks."""
    values = scores - center
    classes = [key == h for h in (0, 1)]
    return ClassSums(
        center=center,
        rows=np.array([np.where(mask, values, 0).sum(axis=1) for mask in classes]),
        columns=np.array([np.where(mask, values, 0).sum(axis=0) for mask in classes]),
        squares=np.array([(values[mask] ** 2).sum() for mask in classes]),
        row_counts=np.array([mask.sum(axis=1) for mask in classes], dtype=float),
        column_counts=np.array([mask.sum(axis=0) for mask in classes], dtype=float),
    )
