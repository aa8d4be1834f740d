"""What one process compiles and what the next one loads from the cache give the same bits.

A run that is continued, and workers beside the process that compiled, promise the same bytes.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import numpy as np
from evenscore.model.normalize_kernels import llr_matrix, weigh_columns, weigh_rows
from evenscore.model.sum_kernels import sum_rows

rng = np.random.default_rng(0)
found = []
for m, n in ((5, 7), (12, 36), (61, 77)):
    scores = 3 * rng.normal(size=(m, n))
    rows, columns, shifts = np.zeros(m), np.zeros(n), [np.empty((m, 2)), np.empty((n, 2))]
    found += [np.array(sum_rows(scores, scores[0, 0], 0, m, rows, columns)), rows, columns]
    weigh_rows(scores, 0.3, rng.normal(size=(2, n)), 0, m, shifts[0])
    weigh_columns(scores, 0.3, rng.normal(size=(2, m)), 0, n, shifts[1])
    llrs = np.empty((m, n))
    how = shifts[0], np.ascontiguousarray(shifts[1].T), np.array([0.3, 0.7]), 0.2
    llr_matrix(scores, *how, 0, m, llrs, np.zeros(m, dtype=bool))
    found += [*shifts, llrs]
print(*(hashlib.sha256(part.tobytes()).hexdigest() for part in found))
"""


@pytest.mark.slow  # it compiles with an empty cache each time
def test_compiled_and_loaded_loops_give_the_same_bits(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiled, loaded = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert list(tmp_path.glob("cache/**/*.nbc"))
    assert compiled == loaded
