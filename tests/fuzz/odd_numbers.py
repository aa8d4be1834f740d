"""Numbers that no system gives: huge, tiny, equal, far from 0; every method works with them, or says what is wrong.

They come in memory and in files that are read in pieces, as scores, vectors and parameters of models. A warning, an
exception that is not ours, a message of a library on standard error, and NaN where all scores were accepted are
findings.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evenscore import (
    Cosine,
    DotProduct,
    Embeddings,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    adapt_score_model,
    as_table,
    bootstrap,
    compare,
    compiled,
    evaluate,
    fit_norm,
    fit_plda,
    normalize,
    open_scores,
    score_embeddings,
    write,
)
from evenscore.calibrate import calibrated, quality_measures
from evenscore.calibrate.registry import CALIBRATIONS
from evenscore.calibrate.tables import fit_fusion, fused, stack_systems, systems_of
from evenscore.files.models import load_calibration, load_evidence, load_model, load_plda, load_trained
from evenscore.metrics import dev_pav, ece_curve, summarize_table
from evenscore.norms import METHODS
from evenscore.online import Verifier
from evenscore.plda import adapt_plda
from evenscore.scoring import Transformed, embedding_quality, fit_transform, score_lazily

__all__ = ["use_odd_numbers"]

SCALES = (0.0, 1e-320, 1e-160, 1e-100, 1e-30, 1e-20, 1e-12, 1e-8, 1.0, 1e4, 1e8, 1e12, 1e18, 1e29, 1e38, 1e160, 1e300)
PARAMETERS = (
    *(1e60, -1e60, 1e-60, 1e30, -1e30, 1e-30, 5e-324, 1e-310, -0.0, 0, 1, -1, 2.5, 1e12, 1e-12, 1e8, 1e-8, 1e-100),
    *(1e61, 1e100, 1e308, 10**400, -(10**400), 10**29, True, None, "inf", "nan", [], [1e30]),
)  #: in model files
SPEAKERS = [f"s{n % 6}" for n in range(12)]
ENROLL, TEST = [f"e{n}" for n in range(6)], [f"t{n}" for n in range(12)]
GOLDEN = Path(__file__).resolve().parent.parent / "files" / "golden" / "records"


def odd_scores(rng: random.Random, shape: tuple[int, int]) -> np.ndarray:
    """Return scores of one scale around another number, some of them of another scale."""
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    with np.errstate(over="ignore", invalid="ignore"):  # these numbers are ours
        scores = numbers.normal(size=shape) * _scale(rng) + rng.choice((0.0, 0.0, 1.0, -1.0)) * _scale(rng)
        if rng.random() < 0.3:  # a row or a column of its own
            at = numbers.integers(shape[0]), numbers.integers(shape[1])
            scores[at[0] if rng.random() < 0.5 else (slice(None), at[1])] *= _scale(rng)
        if rng.random() < 0.3:
            scores[numbers.integers(shape[0]), numbers.integers(shape[1])] = _scale(rng)
        if rng.random() < 0.2:
            scores = np.round(scores)
        return scores.astype(rng.choice((np.float32, np.float64)))


def _scale(rng: random.Random) -> float:
    return 1.0 if rng.random() < 0.5 else rng.choice(SCALES)


def accepted_scores(rng: random.Random, shape: tuple[int, int], largest: float = 1e30) -> np.ndarray:
    """Return odd scores that the door lets in, most of the time, so that what stands behind it is tried."""
    scores = odd_scores(rng, shape)
    return scores if rng.random() < 0.1 else np.clip(np.nan_to_num(scores, nan=1.0), -largest, largest)


def in_pieces(rng: random.Random, matrix: ScoreMatrix, folder: Path) -> Any:
    """Return scores that are read in pieces, from a file, a Dask array or memory."""
    form = rng.choice(("npy", "zarr", "parquet", "dask", "array"))
    if form == "parquet":
        write(matrix.to_trials(), folder / "odd.parquet")
        return open_scores(folder / "odd.parquet")
    if form == "zarr":
        write(matrix, folder / "odd.zarr")
        table = open_scores(folder / "odd.zarr")
    elif form == "npy":
        np.save(folder / "odd.npy", matrix.scores)
        for side, ids in (("enroll", ENROLL), ("test", TEST)):
            (folder / f"odd.{side}_ids").write_text("\n".join(ids) + "\n")
        table = open_scores(folder / "odd.npy")
    else:
        scores: Any = np.array(matrix.scores)
        if rng.random() < 0.1:
            scores[rng.randrange(6), rng.randrange(12)] = rng.choice((np.inf, -np.inf, 1e31))
        if form == "dask":
            import dask.array

            scores = dask.array.from_array(scores, chunks=(4, 5))
        table = as_table(scores, matrix.enroll_ids, matrix.test_ids)
    return table.in_tiles(rng.choice((40, 200, 1e6)), rng.choice(((1, 12), (4, 5), (6, 12))))


def known(scores: Any, what: str) -> Any:
    """Refuse NaN in what was made of scores that were all accepted."""
    if np.isnan(np.asarray(scores)).any():
        raise AssertionError(f"{what} has NaN")
    return scores


def odd_matrix(rng: random.Random) -> ScoreMatrix:
    """Return a matrix of odd scores with speakers."""
    return ScoreMatrix(accepted_scores(rng, (6, 12)), ENROLL, TEST).with_speakers(SPEAKERS[:6], SPEAKERS)


def key_of(matrix: ScoreMatrix) -> Labels:
    """Return who is whom."""
    return Labels.from_speakers(SPEAKERS[:6], SPEAKERS, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)


def trained_options(rng: random.Random, method: str) -> dict[str, Any]:
    """Return options of a norm."""
    if method == "lgsm":
        return {"max_iter": 20, "dim": rng.choice((0, 1, 2))}
    if method in ("as", "at", "az"):
        return {"top_k": rng.choice((1, 2, 5)), "select": rng.choice(("own", "cross")), "excess": "clip"} | floor(rng)
    return {} if method in ("raw", "evidence") else floor(rng)


def floor(rng: random.Random) -> dict[str, Any]:
    """Return what to do with cohort scores that are all the same."""
    return rng.choice(({}, {"std_floor": rng.choice((1e-30, 1e-5))}, {"zero_std": "one"}))


def normalize_and_calibrate(rng: random.Random, folder: Path) -> None:
    """Train and use a norm and a calibration on odd scores in memory, and evaluate what comes out."""
    matrix = odd_matrix(rng)
    part = LabelledBlocks.own_cohort(matrix, key_of(matrix))
    method = rng.choice(sorted(METHODS))
    fitted = fit_norm(method, [part], **trained_options(rng, method))
    trials = part.labelled(fitted.normalizer.normalize(part.blocks))
    known(trials.scores, method)
    judge(rng, trials)
    calibrate(rng, trials)


def calibrate(rng: random.Random, trials: TrialList) -> None:
    """Fit a calibration, and use it on other scores."""
    kind = rng.choice(sorted(CALIBRATIONS))
    calibration = CALIBRATIONS[kind]
    labels = () if kind == "unsupervised" else (trials.labels,)
    shares = {"target_outliers": rng.choice((0.0, 1e-5)), "nontarget_outliers": rng.choice((0.0, 1e-30))}
    fitted: Any = calibration.fit(trials.scores, *labels, **(shares if kind == "saturating" else {}))
    others = accepted_scores(rng, (3, 4))
    known(fitted(trials.scores), kind)
    if np.isfinite(others).all():
        known(fitted(others), kind)


def judge(rng: random.Random, trials: TrialList) -> None:
    """Measure trials."""
    found = evaluate(trials)
    known([found.eer, found.min_cllr], "an evaluation")
    if rng.random() < 0.2:
        bootstrap(trials, enroll_speakers=SPEAKERS[:6], test_speakers=SPEAKERS, replicates=10)
        ece_curve(trials)
        dev_pav(trials)


def normalize_in_pieces(rng: random.Random, folder: Path) -> None:
    """Train, normalize, measure and calibrate with scores that are read in pieces."""
    matrix = odd_matrix(rng)
    table, labels = in_pieces(rng, matrix, folder), key_of(matrix)
    method = rng.choice(sorted(METHODS))
    options = trained_options(rng, method)
    if table.listed:
        part = LabelledBlocks.own_cohort(matrix, labels)
        blocks = part.blocks.replace(
            trials=table.with_speakers(
                dict(zip(ENROLL, SPEAKERS, strict=False)), dict(zip(TEST, SPEAKERS, strict=True))
            )
        )
        found = fit_norm(method, [part], **options).normalize(blocks)
    else:
        part = LabelledBlocks.own_cohort(table, labels)
        found = fit_norm(method, [part], **options).normalize(part.blocks)
    known(found.in_memory().scores, method)
    summary = summarize_table(found, labels)
    summary.evaluate()
    kind = rng.choice(sorted(set(CALIBRATIONS) - {"unsupervised"}))
    fitted = CALIBRATIONS[kind].fit(
        summary, **({"target_outliers": 0.01, "nontarget_outliers": 0.0} if kind == "saturating" else {})
    )
    for place in found.places():
        known(calibrated(found, fitted).read(place).scores, kind)


def fuse(rng: random.Random, folder: Path) -> None:
    """Fuse systems and quality measures, in memory and in pieces."""
    systems = [odd_matrix(rng) for _ in range(rng.choice((1, 2, 3)))]
    labels = key_of(systems[0])
    options = {"l2": rng.choice((0.0, 1e-5, 1e-30, 1e30))}
    if rng.random() < 0.5:
        stack = stack_systems([as_table(np.array(one.scores), ENROLL, TEST).in_tiles(200, (4, 5)) for one in systems])
        summaries = [summarize_table(one, labels) for one in systems_of(stack)]
        fusion = fit_fusion(stack, labels, summaries, **options)
        known(fused(stack, fusion).in_memory().scores, "fused scores")
        return
    trials = [one.to_trials(labels) for one in systems]
    scores = np.stack([np.asarray(one.scores, dtype=np.float64) for one in trials], axis=1)
    quality = quality_measures(ScoreBlocks(systems[0], enroll=systems[0], test=systems[-1]), enroll=None)
    names = rng.choice((["min:mu"], ["log:sigma_e"], ["ratio:sigma", "diff:mu"], ["sigma"]))
    columns = np.stack(list(quality.columns(trials[0], names).values()), axis=1)
    fusion = LogisticCalibration.fit(scores, trials[0].labels, quality=columns, **options)
    known(fusion(scores, quality=columns), "fused scores")


def score_vectors(rng: random.Random, folder: Path) -> None:
    """Score odd vectors, with and without a cohort, a PLDA model, a transform, in memory and in pieces."""
    one, cohort = odd_vectors(rng, "e"), odd_vectors(rng, "c")
    method = rng.choice((None, *(name for name in sorted(METHODS) if name not in ("raw", "evidence", "lgsm"))))
    options = {} if method is None else {"cohort": cohort, "method": method} | trained_options(rng, method)
    scorer = odd_scorer(rng, cohort)
    if rng.random() < 0.5:
        known(score_embeddings(one, one, scorer=scorer, **options).scores, "scores of vectors")
        return
    table = score_lazily(one, one, scorer=scorer, **options)
    known(table.in_memory().scores, "scores of vectors")
    if method is None:
        fit_norm("lgsm", [LabelledBlocks.own_cohort(table)], max_iter=10, dim=1)
    else:
        known(
            list(embedding_quality(one, one, table, scorer=scorer, cohort=cohort).columns(table).values()), "a measure"
        )


def odd_vectors(rng: random.Random, prefix: str) -> Embeddings:
    """Return vectors that the door lets in, most of the time."""
    return Embeddings([f"{prefix}{n}" for n in range(12)], accepted_scores(rng, (12, 4), 1e12), SPEAKERS)


def odd_scorer(rng: random.Random, cohort: Embeddings) -> Any:
    """Return a scorer, trained on odd vectors if it is."""
    kind = rng.choice(("cosine", "dot", "mean", "plda", "plda", "adapted", "transform"))
    if kind in ("plda", "adapted"):
        steps = {"length_normalize": rng.random() < 0.5, "whiten": rng.random() < 0.3, "max_iter": 5}
        how = {"method": rng.choice(("em", "moments")), "shrinkage": rng.choice((0, 0.1, "auto"))}
        plda = fit_plda(cohort, **steps, **how).model
        return (
            adapt_plda(plda, odd_vectors(rng, "n"), method=rng.choice(("kaldi", "coral+")))
            if kind == "adapted"
            else plda
        )
    if kind == "transform":
        return Transformed(
            fit_transform(cohort, ["center", rng.choice(("lda:2", "whiten", "wccn"))], shrinkage=0.1).transform
        )
    if kind == "mean":
        return rng.choice((Cosine, DotProduct))(mean=cohort.vectors.mean(axis=0, dtype=np.float64))
    return {"cosine": Cosine(), "dot": DotProduct()}[kind]


def verify(rng: random.Random, folder: Path) -> None:
    """Verify odd vectors one by one."""
    cohort = odd_vectors(rng, "c")
    method = rng.choice(("z", "t", "s", "as", "at", "zt", "tz", "lgsm"))
    options: dict[str, Any] = trained_options(rng, method)
    if method == "lgsm":
        options = {"model": odd_model(rng)}
    calibration = rng.choice(
        (None, LogisticCalibration(weights=[rng.choice((1.0, 1e30))], quality_weights=[], offset=0.0))
    )
    verifier = Verifier(odd_scorer(rng, cohort), cohort=cohort, method=method, calibration=calibration, **options)
    for enroll, test in zip(accepted_scores(rng, (2, 4), 1e12), accepted_scores(rng, (2, 4), 1e12), strict=True):
        known(verifier.normalized(enroll, test), "a verified trial")
        if verifier.is_llr:
            known(verifier.llr(enroll, test), "a verified trial")


def odd_model(rng: random.Random) -> ScoreModel:
    """Return a score model of odd parameters."""

    def some(*shape: int) -> Any:
        return np.array(
            [rng.choice((1.0, -0.5, 1e30, 1e-30, 1e15, 1e-320, 0.0)) for _ in range(int(np.prod(shape)))]
        ).reshape(shape)

    return ScoreModel(mu=some(2), alpha=some(2, 1), beta=some(2, 1), sigma2=np.maximum(some(2) ** 2, 1e-60))


def adapt(rng: random.Random, folder: Path) -> None:
    """Adapt a score model to odd trials without labels."""
    training, trials = two_classes(rng), two_classes(rng)
    if rng.random() < 0.3:
        trials = ScoreMatrix(np.tile(accepted_scores(rng, (6, 12)), (2, 2)), range(12), range(24))
    model = (
        odd_model(rng)
        if rng.random() < 0.3
        else fit_norm("lgsm", [LabelledBlocks.own_cohort(training)], max_iter=5, dim=1).model
    )
    found = adapt_score_model(
        model, trials, prior=rng.choice((0.1, 0.5)), change=rng.choice(("all", "affine")), max_iter=10
    )
    known(found.model.mu, "the means of an adapted model")


def two_classes(rng: random.Random) -> ScoreMatrix:
    """Return scores of two classes that are far apart, of an odd scale and far from 0."""
    numbers, scale = np.random.default_rng(rng.randrange(1 << 32)), 10.0 ** rng.randint(-28, 26)
    codes = np.arange(12), np.arange(24) % 12
    spread = numbers.normal(size=(12, 24)) + rng.choice((4, 8)) * (codes[0][:, None] == codes[1])
    spread += numbers.normal(size=12)[:, None] + rng.choice((0.0, 100.0, -1e4))
    ids = [[f"s{code}" for code in side] for side in codes]
    return ScoreMatrix(spread * scale, range(12), range(24)).with_speakers(*ids)


def compare_in_small(rng: random.Random, folder: Path) -> None:
    """Compare a few methods on odd scores."""
    training, evaluation = ([LabelledBlocks.own_cohort(odd_matrix(rng))] for _ in range(2))
    methods = rng.sample(["z", "zt", "as:top_k=3", "lgsm:dim=1:max_iter=10", "t"], 1)
    calibration = rng.choice(("logistic", "saturating", "gaussian", "pav"))
    compare(training, evaluation, methods, calibration=calibration, bootstrap=5, folds=3, allow_overlap=True)


@cache
def records() -> dict[str, Any]:
    """Return a sound record of every kind."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}


def odd_record(value: Any, rng: random.Random, share: float) -> Any:
    """Return a record in which some numbers are replaced by odd ones."""
    if isinstance(value, dict):
        return {
            name: item if name in ("version", "info") else odd_record(item, rng, share) for name, item in value.items()
        }
    if isinstance(value, list):
        found = [odd_record(item, rng, share) for item in value]
        square = len(value) == 2 and all(isinstance(row, list) and len(row) == 2 for row in found)
        return (
            [[found[0][0], found[0][1]], [found[0][1], found[1][1]]] if square and value[0][1] == value[1][0] else found
        )
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return rng.choice(PARAMETERS) if number and rng.random() < share else value


def use_model_file(rng: random.Random, folder: Path) -> None:
    """Load a model file with odd parameters, and use what it holds on odd scores."""
    name = rng.choice(sorted(records()))
    path = folder / "model.json"
    path.write_text(json.dumps(odd_record(records()[name], rng, rng.choice((0.1, 0.3, 1.0)))))
    matrix = odd_matrix(rng)
    if name.startswith("calibration"):
        calibration: Any = load_calibration(path)
        known(calibration(matrix.scores), name)
    elif name.startswith("score_model"):
        blocks = LabelledBlocks.own_cohort(matrix).blocks
        known(normalize(blocks, "lgsm", model=load_model(path)).scores, name)
    elif name.startswith("evidence"):
        known(normalize(LabelledBlocks.own_cohort(matrix).blocks, "evidence", model=load_evidence(path)).scores, name)
    elif name.startswith("plda"):
        plda = load_plda(path)
        one = Embeddings(range(12), accepted_scores(rng, (12, len(plda.projection.center)), 1e12))
        known(score_embeddings(one, one, scorer=plda).scores, name)
    else:
        load_trained(path)


WAYS: tuple[tuple[Callable[[random.Random, Path], None], int], ...] = (
    (normalize_and_calibrate, 10),
    (normalize_in_pieces, 6),
    (use_model_file, 6),
    (score_vectors, 5),
    (fuse, 3),
    (verify, 3),
    (adapt, 2),
    (compare_in_small, 1),
)  #: and how often each of them is tried


def use_odd_numbers(rng: random.Random, folder: Path) -> None:
    """Try one of the ways in which odd numbers come in, with compiled loops or without."""
    way = rng.choices([way for way, _ in WAYS], [weight for _, weight in WAYS])[0]
    usual, compiled.FEW = compiled.FEW, rng.choice((compiled.FEW, compiled.FEW, compiled.FEW, -1))
    try:
        with quiet_libraries():
            way(rng, folder)
    finally:
        compiled.FEW = usual


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Refuse messages on standard error that no Python program wrote, such as those of LAPACK."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as heard:
        os.dup2(heard.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
        heard.seek(0)
        said = heard.read().decode(errors="replace")
    if said.strip():
        raise AssertionError(f"a library said: {said[:300]!r}")
