"""Single trials of a verifier, and training of PLDA, beside the same in plain NumPy with one BLAS thread.

NumPy does what a service would write by hand: no ids, no checks. Bars: a trial takes at most 2 x NumPy, in one thread
(CPU time, the best of several) and in 16 threads at once (wall time of a trial, 50th and 99th percentile); PLDA at most
1 / 1.5 of NumPy. Threads that never pause wait for each other: with 16 of them, no mean can be below 16 trials' time.

    python benchmarks/online.py [--cohort 5000] [--dim 192] [--repeat 15] [--threads 16]
"""

from __future__ import annotations

import argparse
import threading
import time

import numpy as np
from threadpoolctl import threadpool_limits

from evenscore import Embeddings, ScoreModel, Verifier
from evenscore.calibrate import LogisticCalibration
from evenscore.scoring import fit_plda

MODEL = ScoreModel(mu=[0.0, 0.6], alpha=[[0.05], [0.05]], beta=[[0.05], [0.05]], sigma2=[0.01, 0.01])


def best_time(task, repeat, calls):
    """Return the least CPU time of a call."""
    times = []
    for _ in range(repeat + 1):
        start = time.process_time()
        [task() for _ in range(calls)]
        times.append((time.process_time() - start) / calls)
    return min(times[1:])


def percentiles(task, threads, calls):
    """Return the 50th and 99th percentile of the wall time of a call, from several threads at once."""
    times, begin = [], threading.Barrier(threads)

    def run():
        begin.wait()
        for _ in range(calls):
            start = time.perf_counter()
            task()
            times.append(time.perf_counter() - start)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return np.percentile(times, [50, 99])


def plain_em(vectors, codes, iterations):
    """Return between and within after so many iterations of EM."""
    sizes = np.bincount(codes)
    means = np.stack([vectors[codes == code].mean(axis=0) for code in range(len(sizes))])
    inner = vectors - means[codes]
    scatter, mu = inner.T @ inner, means.mean(axis=0)
    W, B = scatter / (len(vectors) - len(sizes)), np.cov(means.T) + 1e-3 * np.eye(vectors.shape[1])
    for _ in range(iterations):
        inverse_W, inverse_B = np.linalg.inv(W), np.linalg.inv(B)
        between, within, y = np.zeros_like(B), scatter.copy(), np.empty_like(means)
        for n in np.unique(sizes):
            own = sizes == n
            C = np.linalg.inv(inverse_B + n * inverse_W)
            y[own] = (means[own] - mu) @ (n * inverse_W @ C)
            rest = means[own] - mu - y[own]
            between += own.sum() * C
            within += n * (rest.T @ rest + own.sum() * C)
        between, mu = between + len(y) * np.cov(y.T, bias=True), mu + y.mean(axis=0)
        B, W = between / len(sizes), within / len(vectors)
    return B, W


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("cohort", 5000), ("dim", 192), ("repeat", 15), ("threads", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    a = parser.parse_args()
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(a.cohort, a.dim)).astype(np.float32)
    ready = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    ann, take = rng.normal(size=(2, a.dim)).astype(np.float32)
    weights, top = rng.normal(size=(2, 2, a.cohort)), min(300, a.cohort // 5)
    cohort = Embeddings(range(a.cohort), vectors)

    def highest(row):
        row = np.partition(row, len(row) - top)[-top:]
        return row.mean(), row.std()

    def plain_as():
        left, right = ann / np.sqrt(ann @ ann), take / np.sqrt(take @ take)
        (m_e, s_e), (m_t, s_t), score = highest(ready @ left), highest(ready @ right), left @ right
        return -5.0 + 2.0 * 0.5 * ((score - m_e) / s_e + (score - m_t) / s_t)

    def plain_lgsm():
        left, right = ann / np.sqrt(ann @ ann), take / np.sqrt(take @ take)
        p0, p1 = weights[0] @ (ready @ left) + weights[1] @ (ready @ right)
        return 0.3 + 2.0 * (left @ right - p0) ** 2 - 3.0 * (left @ right - p1) ** 2

    calibration = LogisticCalibration(weights=[2.0], offset=-5.0)
    by_as = Verifier(cohort=cohort, method="as", top_k=top, calibration=calibration)
    by_lgsm = Verifier(cohort=cohort, method="lgsm", model=MODEL)
    codes = np.repeat(np.arange(150), rng.integers(2, 11, 150))
    takes = 0.7 * rng.normal(size=(150, a.dim))[codes] + rng.normal(size=(len(codes), a.dim))
    how = {"length_normalize": False, "tol": 0, "max_iter": 20}
    ours = {"AS": lambda: by_as.llr(ann, take), "LGSM": lambda: by_lgsm.llr(ann, take)}
    ours["PLDA"] = lambda: fit_plda(takes, codes, **how)
    plain = {"AS": plain_as, "LGSM": plain_lgsm, "PLDA": lambda: plain_em(takes, codes, 20)}
    for name, task in ours.items():
        calls = 1 if name == "PLDA" else 20
        mine = best_time(task, a.repeat, calls)
        with threadpool_limits(1):
            numpy = best_time(plain[name], a.repeat, calls)
        print(f"{name:14s} {1e6 * mine:10.0f} us, NumPy {1e6 * numpy:10.0f} us: {mine / numpy:.2f} x", flush=True)
    for name in ("AS", "LGSM"):
        both = []
        for _ in range(3):  # in turns
            with threadpool_limits(1):
                both.append([percentiles(plain[name], a.threads, 100), None])
            both[-1][1] = percentiles(ours[name], a.threads, 100)
        numpy, mine = 1e3 * np.median(both, axis=0)
        for at, what in enumerate(("p50", "p99")):
            ratio = f"{mine[at]:8.2f} ms, NumPy {numpy[at]:8.2f} ms: {mine[at] / numpy[at]:.2f} x"
            print(f"{name} x {a.threads} {what:4s}{ratio}", flush=True)


if __name__ == "__main__":
    main()
