"""Write crossed_effects.json: maximum-likelihood variance components of crossed designs, by statsmodels.

Run by hand with statsmodels and pandas installed (they are not needed otherwise):
    python tests/model/golden/make_crossed_effects.py
"""

import json
from pathlib import Path

import numpy as np

DESIGNS = [  # seed, rows, columns, mean, sd of rows, of columns, of the residual
    (1, 12, 9, 2.0, 1.0, 0.7, 1.5),
    (2, 20, 6, -5.0, 0.4, 2.0, 1.0),
    (3, 8, 15, 100.0, 3.0, 1.0, 2.0),
]


def fit(scores):
    import pandas as pd
    import statsmodels.formula.api as smf

    rows, columns = np.indices(scores.shape)
    table = pd.DataFrame({"score": scores.ravel(), "row": rows.ravel(), "column": columns.ravel(), "all": 1})
    parts = {"row": "0 + C(row)", "column": "0 + C(column)"}
    model = smf.mixedlm("score ~ 1", table, groups="all", vc_formula=parts)
    best = None
    for method in ("lbfgs", "powell", "nm"):
        result = model.fit(reml=False, method=method, maxiter=5000)
        if best is None or result.llf > best.llf:
            best = result
    names = model.exog_vc.names
    components = dict(zip(names, best.vcomp, strict=True))
    return {
        "mean": float(best.fe_params.iloc[0]),
        "row": float(components["row"]),
        "column": float(components["column"]),
        "residual": float(best.scale),
        "log_likelihood": float(best.llf),
    }


if __name__ == "__main__":
    import statsmodels

    designs = []
    for seed, n_rows, n_columns, mean, row, column, residual in DESIGNS:
        rng = np.random.default_rng(seed)
        scores = mean + row * rng.normal(size=(n_rows, 1)) + column * rng.normal(size=(1, n_columns))
        scores = (scores + residual * rng.normal(size=(n_rows, n_columns))).round(6)
        designs.append({"scores": scores.tolist(), "expected": fit(scores)})
    out = {
        "made_by": f"statsmodels {statsmodels.__version__} MixedLM, crossed variance components, reml=False",
        "script": "make_crossed_effects.py",
        "designs": designs,
    }
    Path(__file__).with_name("crossed_effects.json").write_text(json.dumps(out, indent=1) + "\n")
