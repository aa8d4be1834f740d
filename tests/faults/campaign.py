"""Stop commands at every system call that changes files, start them again, and compare what is there with a calm run.

`make faults` does all of it; ``python tests/faults/campaign.py --every 20`` a twentieth. `shim.c` is loaded before any
library, so that calls of NumPy, HDF5 and polars are met, too. A fault is one of

=======  ========================================================================================================
SIGKILL  the process ends before the call, or in the middle of a write
ENOSPC   the disk is full from this call on
EIO      this call fails
EINTR    this call is interrupted, which must not be noticed
SHORT    this call writes only half of what it should, and says so, which must not be noticed either
SECOND   this call waits until a second run of the same command has ended: one may be told to wait, none is harmed
=======  ========================================================================================================

Every fault is injected by itself. What it leaves is often the same as what another one has left; then the command is
not run again, as it can but do the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from faults.bench import FAULTS, SHIM, Bench, Run, load_as, load_program, with_shim  # noqa: E402
from faults.jobs import JOBS, Job, make_inputs  # noqa: E402
from faults.states import State, after_fault, contents, differences, state  # noqa: E402

AT_A_TIME = 2  #: processes


@dataclass
class Tried:
    """What was found by one fault at the calls of one job."""

    job: str
    fault: str
    points: int = 0
    gone_on: int = 0  #: different states from which the command was run again
    told: int = 0  #: runs that were told to wait for another one
    failures: list[str] = field(default_factory=list)


class Trial:
    """A job with what it makes when nothing disturbs it."""

    def __init__(self, bench: Bench, name: str, job: Job) -> None:
        self.bench, self.name, self.job = bench, name, job
        self.saved: Path | None = None
        self.gone_on: dict[Any, list[str]] = {}  #: what was wrong after another run from each state
        bench.restore(None)
        if job.before:
            self._calm(job.before)
            self.saved = bench.folder.with_name(f"{bench.folder.name} {name}")
            shutil.copytree(bench.out, self.saved)
        self.before = contents(bench.out)
        self.calls = self._calm(job.arguments).calls
        self.wanted = contents(bench.out)

    def _calm(self, arguments: tuple[str, ...]) -> Run:
        run = self.bench.run(arguments)
        if run.code:
            raise RuntimeError(f"{self.name}: the calm run failed: {run.said}")
        load_as(run)
        return run

    def strike(self, fault: str, every: int) -> Tried:
        """Meet a fault at each call, and judge what is there after it and after another run."""
        tried = Tried(self.name, fault)
        every *= self.job.every
        known = len(self.gone_on)
        for call in range(1 + sum(map(ord, self.name + fault)) % every, self.calls[fault] + 1, every):
            self.bench.restore(self.saved)
            struck = self.bench.run(self.job.arguments, fault, call)
            tried.points += 1
            tried.told += struck.second is not None and 2 in (struck.code, struck.second.code)
            found = contents(self.bench.out)
            states = {"found": found, "before": self.before, "wanted": self.wanted}
            where = f"{self.name}, {fault} at call {call} of {self.calls[fault]}"
            for problem in [*after_fault(fault, struck, **states), *self._after_all(found)]:
                tried.failures.append(f"{where}: {problem}")
        tried.gone_on = len(self.gone_on) - known
        return tried

    def _after_all(self, found: State) -> list[str]:
        """Return what is wrong after another run from this state."""
        if found == self.wanted:
            return []
        key = frozenset(state(self.bench.out).items())
        if key not in self.gone_on:
            self.gone_on[key] = list(self._run_again())
        return self.gone_on[key]

    def _run_again(self) -> Iterator[str]:
        again = self.bench.run((*self.job.arguments, *(["--resume"] if self.job.resume else [])))
        if again.code:
            yield f"cannot go on, exit code {again.code}: {again.said.strip()[-300:]}"
            return
        found = contents(self.bench.out)
        if found != self.wanted:
            yield f"other bytes after another run: {differences(found, self.wanted)}"


def tried(task: tuple[str, list[str], int, Path]) -> list[Tried]:
    """Try a job with each fault, in a process that has loaded what the jobs before it needed."""
    name, faults, every, inputs = task
    with tempfile.TemporaryDirectory(prefix=f"{name} ", dir=inputs.parent) as folder:
        bench = Bench(Path(folder) / "bench")
        shutil.copytree(inputs, bench.folder)
        try:
            trial = Trial(bench, name, JOBS[name])
        except RuntimeError as error:
            return [Tried(name, "calm", failures=[str(error)])]
        return [trial.strike(fault, every) for fault in faults]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th point")
    parser.add_argument("--jobs", default=",".join(JOBS), help="names between commas")
    parser.add_argument("--faults", default=",".join(FAULTS), help="names between commas")
    parser.add_argument("--processes", type=int, default=AT_A_TIME, help="so many at a time")
    chosen = parser.parse_args()
    if SHIM not in os.environ:
        return with_shim(__file__, sys.argv[1:])
    start, total, failures = time.monotonic(), Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="evenscore-faults-") as folder:
        inputs = Path(os.path.realpath(folder)) / "inputs"
        inputs.mkdir()
        names = chosen.jobs.split(",")
        load_program({JOBS[name].arguments[0] for name in names})
        processes = multiprocessing.get_context("fork")
        tasks = [(name, chosen.faults.split(","), chosen.every, inputs) for name in names]
        maker = processes.Process(target=make_inputs, args=(inputs,))  # as it starts threads, which no fork would have
        maker.start()
        maker.join()
        with processes.Pool(chosen.processes) as pool:
            for found in pool.imap_unordered(tried, tasks):
                points = {one.fault: one.points for one in found}
                total.update(points)
                wrong = [failure for one in found for failure in one.failures]
                failures += wrong
                gone_on, told = (sum(getattr(one, name) for one in found) for name in ("gone_on", "told"))
                say(
                    "\n".join([f"{found[0].job}: {points}, went on from {gone_on} states, {told} told to wait", *wrong])
                )
    say(f"{dict(total)}, {time.monotonic() - start:.0f} s")
    say(f"{total.total()} faults, {len(failures)} failures")
    return int(bool(failures))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
