"""Scores of embeddings for the tests of the cohort-evidence model: speakers that cluster, scales that differ."""

import numpy as np

from evenscore import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix


def embeddings(n_speakers, per_speaker, seed, dim=8, name="s"):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_speakers, dim)) + 1.5 * np.sign(rng.normal(size=(n_speakers, 1)))
    speakers = np.repeat(np.arange(n_speakers), per_speaker)
    noise = rng.normal(size=(len(speakers), dim)) * np.linspace(0.2, 1.4, dim)
    return centers[speakers] + noise, [f"{name}{s}" for s in speakers]


def sides(n_speakers, tests, seed, name="s"):
    """Return enrolments (one a speaker) and tests with their speakers."""
    vectors, speakers = embeddings(n_speakers, tests + 1, seed, name=name)
    first = np.arange(len(vectors)) % (tests + 1) == 0
    names = np.array(speakers, dtype=object)
    return (vectors[first], names[first]), (vectors[~first], names[~first])


def ids(side, count):
    return [f"{side}{at}" for at in range(count)]


def product(left, right):
    return left @ right.T / 3.0


def training(n_speakers=14, tests=3, seed=0, phrase=""):
    """Return a labelled matrix that is its own cohort."""
    (E, e), (T, t) = sides(n_speakers, tests, seed)
    rows, columns = ids(f"ce{phrase}-", len(E)), ids(f"ct{phrase}-", len(T))
    labels = Labels.from_speakers(e.tolist(), t.tolist(), enroll_ids=rows, test_ids=columns)
    return LabelledBlocks.own_cohort(ScoreMatrix(product(E, T), rows, columns), labels, name=phrase)


def evaluation(cohort_seed=0, seed=1, n_cohort=14, n_trials=5, tests=3, own=False, dtype=float, missing=0):
    """Return blocks of other speakers (or, with ``own``, of the cohort's) against the cohort of `training`."""
    (CE, ce), (CT, ct) = sides(n_cohort, tests, cohort_seed)
    (E, e), (T, t) = sides(n_trials, 2, seed, name="s" if own else "new")
    rows, columns, cohort_rows, cohort_columns = (
        ids("e", len(E)),
        ids("t", len(T)),
        ids("ce-", len(CE)),
        ids("ct-", len(CT)),
    )
    S_e, S_t = product(E, CT), product(CE, T)
    rng = np.random.default_rng(5)
    for block in (S_e, S_t)[: 2 if missing else 0]:
        block.reshape(-1)[rng.choice(block.size, missing, replace=False)] = np.nan
    return ScoreBlocks(
        ScoreMatrix(product(E, T).astype(dtype), rows, columns),
        enroll=ScoreMatrix(S_e.astype(dtype), rows, cohort_columns, missing="nan"),
        test=ScoreMatrix(S_t.astype(dtype), cohort_rows, columns, missing="nan"),
        cohort=ScoreMatrix(product(CE, CT).astype(dtype), cohort_rows, cohort_columns),
        enroll_speakers=e.tolist(),
        test_speakers=t.tolist(),
        cohort_enroll_speakers=ce.tolist(),
        cohort_test_speakers=ct.tolist(),
    )
