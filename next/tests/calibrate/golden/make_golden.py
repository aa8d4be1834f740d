"""Make the golden values of the calibrations with scikit-learn.

Run it in an environment of its own, which needs nothing of evenscore:

    python -m venv /tmp/golden && /tmp/golden/bin/pip install "scikit-learn<1.6" && \
        /tmp/golden/bin/python tests/calibrate/golden/make_golden.py

It writes scikit-learn.json next to itself.
"""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture


def logistic(scores, labels, p_target, l2):
    """Class weights make the prior; standardized inputs make the penalty; subtracting logit(p) makes the LLR."""
    mean, std = scores.mean(axis=0), scores.std(axis=0)
    weight = np.where(labels == 1, p_target / np.sum(labels == 1), (1 - p_target) / np.sum(labels == 0))
    model = LogisticRegression(
        C=1 / l2 if l2 else np.inf, penalty="l2", solver="newton-cholesky", tol=1e-14, max_iter=1000
    )
    model.fit((scores - mean) / std, labels, sample_weight=weight)
    slopes = model.coef_[0] / std
    offset = model.intercept_[0] - slopes @ mean - np.log(p_target / (1 - p_target))
    return {"p_target": p_target, "l2": l2, "weights": slopes.tolist(), "offset": float(offset)}


def main():
    rng = np.random.default_rng(20140616)
    labels = np.repeat([1, 0], [60, 340])
    first = rng.normal(2.0 * labels - 1.0, 1.0)
    second = 0.5 * first + rng.normal(1.5 * labels, 1.2) + 3.0
    systems = np.stack((first, second), axis=1)
    posterior = IsotonicRegression().fit_transform(np.round(first, 1), labels)
    mixture = GaussianMixture(2, tol=1e-12, max_iter=20000, reg_covar=0.0, means_init=[[-3.0], [3.0]])
    unlabelled = np.concatenate((rng.normal(-3, 1.0, 500), rng.normal(2.0, 1.5, 120)))
    mixture.fit(unlabelled[:, None])
    golden = {
        "made_by": {"scikit-learn": sklearn.__version__, "numpy": np.__version__},
        "script": "tests/calibrate/golden/make_golden.py",
        "labels": labels.tolist(),
        "systems": systems.tolist(),
        "one_system": [logistic(systems[:, :1], labels, p, l2) for p, l2 in ((0.5, 0.0), (0.01, 0.0), (0.1, 0.02))],
        "two_systems": [logistic(systems, labels, p, l2) for p, l2 in ((0.5, 0.0), (0.01, 0.0), (0.1, 0.02))],
        "isotonic_posterior": posterior.tolist(),
        "unlabelled": unlabelled.tolist(),
        "mixture": {
            "mean": mixture.means_[:, 0].tolist(),
            "variance": mixture.covariances_[:, 0, 0].tolist(),
            "p_target": float(mixture.weights_[1]),
        },
    }
    (Path(__file__).parent / "scikit-learn.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
