"""Scores of vectors that are centred without their own two speakers, pair by pair and straight from the definition."""

import numpy as np


def left_out_scores(enroll, test, background, measure):
    """Centre each pair on the background vectors that are by neither of its speakers, then score it."""
    scores = np.empty((len(enroll), len(test)))
    for i in range(len(enroll)):
        for j in range(len(test)):
            out = _of_same_speaker(enroll, i, background) | _of_same_speaker(test, j, background)
            center = background.vectors[~out].astype(float).mean(axis=0)
            x, y = enroll.vectors[i] - center, test.vectors[j] - center
            scores[i, j] = x @ y
            if measure == "cosine":
                scores[i, j] /= np.linalg.norm(x) * np.linalg.norm(y)
    return scores


def _of_same_speaker(side, at, background):
    """Tell which vectors of the background are by the speaker of a row; who it is, its speaker or else its id tells."""
    speaker = None if side.speakers is None else side.speakers[at]
    known = np.full(len(background), None) if background.speakers is None else background.speakers
    if speaker is not None and speaker in known:
        return known == speaker
    same = background.ids == side.ids[at]
    if same.any() and known[same][0] is not None:
        return known == known[same][0]
    return same
