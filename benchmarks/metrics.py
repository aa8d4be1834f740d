"""EER, Cllr, minCllr and minDCF, against llreval (PYLLR) on the same scores, each in a process of its own.

Claims: 10 million scores take at most half the time of llreval, and at most 6 x the memory of the scores (the scores
themselves and the interpreter not counted); 100 million scores run in bounded memory. Also: the speaker bootstrap,
against evaluating each replicate from scratch.

    python benchmarks/metrics.py [--scores 10000000] [--repeat 3] [--large]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time

import numpy as np


def simulated(n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """One target in ten; drawn in parts, so that making the scores does not set the peak of memory."""
    rng = np.random.default_rng(0)
    labels, scores = np.empty(n, np.int8), np.empty(n, dtype)
    for start in range(0, n, 1_000_000):
        part = slice(start, min(n, start + 1_000_000))
        labels[part] = rng.random(labels[part].size) < 0.1
        scores[part] = rng.normal(6.0 * labels[part] - 3.0, 2.0)
    return scores, labels


def evenscore_metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    from evenscore import evaluate

    result = evaluate(scores, labels, normalize=False)
    return {name: result[name] for name in ("eer", "cllr", "min_cllr", "min_dcf")}


def llreval_metrics(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    from llreval.cllr import cllr, min_cllr
    from llreval.pav_rocch import PAV, ROCCH

    pav = PAV(scores, labels)
    hull = ROCCH(pav)
    cost = float(hull.Bayes_error_rate(np.array([np.log(0.01 / 0.99)]))[0])
    values = {"eer": hull.EER(), "cllr": cllr(scores[labels == 1], scores[labels == 0]), "min_cllr": min_cllr(pav)}
    return {name: float(value) for name, value in values.items()} | {"min_dcf": cost}


def measure(program: str, n: int, dtype: str, repeat: int) -> None:
    """Run in a process of its own; print time, peak of memory above what was there before, and the values."""
    task = {"evenscore": evenscore_metrics, "llreval": llreval_metrics}[program]
    scores, labels = simulated(n, dtype)
    task(scores[:1000], labels[:1000])  # imports and compilation
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        values = task(scores, labels)
        times.append(time.perf_counter() - start)
    extra = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(json.dumps({"seconds": min(times), "memory": extra / scores.nbytes, "values": values}))


def in_process(program: str, n: int, dtype: str, repeat: int) -> dict:
    command = [
        sys.executable,
        __file__,
        "--only",
        program,
        "--scores",
        str(n),
        "--dtype",
        dtype,
        "--repeat",
        str(repeat),
    ]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def compare_programs(n: int, repeat: int) -> None:
    ours = in_process("evenscore", n, "float64", repeat)
    print(f"evenscore, {n} scores: {ours['seconds']:.3f} s, memory {ours['memory']:.2f} x the scores, beside them")
    if importlib.util.find_spec("llreval") is None:
        print("llreval is not installed, so there is no ratio; pip install 'evenscore[bench]'")
        return
    theirs = in_process("llreval", n, "float64", repeat)
    print(
        f"llreval,   {n} scores: {theirs['seconds']:.3f} s, {theirs['memory']:.2f} x the scores in memory beside them"
    )
    worst = max(abs(ours["values"][name] - theirs["values"][name]) for name in ours["values"])
    print(f"llreval / evenscore: {theirs['seconds'] / ours['seconds']:.1f} x the time; largest difference {worst:.1e}")


def bootstrap_against_scratch(speakers: int = 200, sessions: int = 5, replicates: int = 100) -> None:
    from evenscore import bootstrap, evaluate

    rng = np.random.default_rng(0)
    side = np.repeat(np.arange(speakers), sessions)
    enroll, test = np.repeat(side, side.size), np.tile(side, side.size)
    labels = enroll == test
    scores = rng.normal(3.0 * labels, 1.0)
    bootstrap(scores[:5000], labels[:5000], enroll_speakers=enroll[:5000], test_speakers=test[:5000], replicates=2)
    start = time.perf_counter()
    bootstrap(scores, labels, enroll_speakers=enroll, test_speakers=test, replicates=replicates)
    ours = (time.perf_counter() - start) / replicates
    draw = rng.multinomial(speakers, np.full(speakers, 1 / speakers))
    start = time.perf_counter()
    times = np.where(enroll == test, draw[enroll], draw[enroll] * draw[test])
    evaluate(np.repeat(scores, times), np.repeat(labels, times))
    scratch = time.perf_counter() - start
    print(
        f"bootstrap of {labels.size} trials: {1e3 * ours:.1f} ms a replicate, {1e3 * scratch:.1f} ms by copying and "
        f"sorting: {scratch / ours:.1f} x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--only", help="measure one program in this process")
    parser.add_argument("--large", action="store_true", help="also 100 million float32 scores")
    arguments = parser.parse_args()
    if arguments.only:
        measure(arguments.only, arguments.scores, arguments.dtype, arguments.repeat)
        return
    compare_programs(arguments.scores, arguments.repeat)
    if arguments.large:
        large = in_process("evenscore", 100_000_000, "float32", 1)
        print(f"evenscore, 100000000 float32 scores: {large['seconds']:.2f} s, {large['memory']:.2f} x the scores")
    bootstrap_against_scratch()


if __name__ == "__main__":
    main()
