"""Make ``lir.json`` anew, in an environment of its own: ``pip install lir==1.3.1``, then ``python make_lir.py``."""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from lir.algorithms.bayeserror import elub
from lir.algorithms.isotonic_regression import IsotonicCalibrator
from lir.metrics.devpav import devpav
from lir.plotting.expected_calibration_error import calculate_ece
from lir.util import logodds_to_odds

PRIORS = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99]
MADE = {  # trials of a class, mean and deviation of the LLRs, what they are multiplied with, and what is added
    "calibrated": (120, 2.0, 2.0, 1.0, 0.0),
    "overconfident": (90, 2.0, 2.0, 2.5, 0.0),
    "shy": (60, 3.0, 2.4, 0.4, 0.0),
    "shifted": (50, 1.5, 1.7, 1.0, 2.0),
    "few": (6, 2.0, 2.0, 1.0, 0.0),
}


def measured(llr, labels):
    """Return the figures of natural-log LLRs."""
    llr = np.round(llr, 3)
    log10 = llr / np.log(10)
    calibrated = logodds_to_odds(IsotonicCalibrator().fit_transform(log10.copy(), labels))
    return {
        "llr": llr.tolist(),
        "labels": labels.tolist(),
        "elub_log10": [float(bound) for bound in elub(log10.copy(), labels)],
        "dev_pav": float(devpav(log10.copy(), labels)),
        "priors": PRIORS,
        "ece": calculate_ece(10.0**log10, labels, np.array(PRIORS)).tolist(),
        "ece_pav": calculate_ece(calibrated, labels, np.array(PRIORS)).tolist(),
    }


def main():
    rng = np.random.default_rng(7)
    cases = {}
    for name, (size, mean, deviation, gain, offset) in MADE.items():
        labels = np.arange(2 * size) % 2
        cases[name] = measured(gain * rng.normal(np.where(labels, mean, -mean), deviation) + offset, labels)
    labels = np.arange(80) % 2
    cases["ties"] = measured(np.round(rng.normal(np.where(labels, 1.0, -1.0), 1.4)), labels)
    cases["backwards"] = measured(-rng.normal(np.where(labels, 1.0, -1.0), 1.4), labels)
    made_by = {"lir": version("lir"), "numpy": np.__version__, "scikit-learn": version("scikit-learn")}
    record = {"made_by": made_by, "script": "tests/metrics/golden/forensic/make_lir.py", "cases": cases}
    (Path(__file__).parent / "lir.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
