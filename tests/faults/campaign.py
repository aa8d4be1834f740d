"""Stop commands at every system call that changes files, start them again, and compare what is there with a calm run.

`make faults` does all of it; ``python tests/faults/campaign.py --every 20`` a twentieth. `shim.c` is loaded before any
library, so that calls of NumPy, HDF5 and polars are met, too. This process loads the program once, and each run is a
fork of it. A fault is one of

=======  ============================================================================================
SIGKILL  the process ends before the call, or in the middle of a write
ENOSPC   the disk is full from this call on
EIO      this call fails
EINTR    this call is interrupted, which must not be noticed
=======  ============================================================================================
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import functools
import gc
import json
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FAULTS = {"SIGKILL": -signal.SIGKILL, "ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR}
PATIENCE = 60  # seconds for a run that takes less than one
SHIM = "EVENSCORE_FAULTS_SHIM"

CHUNKS = ("--memory-limit", "1GB")
NORMALIZE = f"normalize --method s --trials trials.zarr --enroll enroll.zarr --test test.zarr {' '.join(CHUNKS)} -o"
VECTORS = ("--enroll", "enroll-x.npz", "--test", "test-x.npz")
SIDES = ("--train", "cohort.{0}", "--trials", "trials.{0}", "--enroll", "enroll.{0}", "--test", "test.{0}")


@dataclass(frozen=True)
class Job:
    """A command whose output goes below ``out``, and perhaps one that has written something else there before."""

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    resume: bool = False

    @classmethod
    def of(cls, line: str, before: str = "", *, resume: bool = False) -> Job:
        return cls(tuple(line.split()), tuple(before.split()), resume)


def comparing(ending: str, *more: str) -> str:
    sides = " ".join(SIDES).format(ending)
    return " ".join(["compare", sides, "--speakers utt2spk --methods s --bootstrap 20 -o out/cmp", *more])


JOBS = {
    "fit": Job.of("fit --scores cohort.npz --enroll-speakers utt2spk --max-iter 3 --starts 1 -o out/m.json"),
    "simulate": Job.of("simulate --speakers 3 --cohort-speakers 2 -o out/sim"),
    "simulate again": Job.of("simulate --speakers 3 -o out/sim", "simulate --speakers 3 --seed 1 -o out/sim"),
    "convert to npz": Job.of("convert trials.npz out/o.npz", "convert cohort.npz out/o.npz"),
    "convert to npy": Job.of("convert test-x.npz out/o.npy"),
    "convert to hdf5": Job.of("convert trials.npz out/o.h5", "convert cohort.npz out/o.h5"),
    "convert to text": Job.of("convert trials.npz out/o.csv.gz"),
    "convert to parquet": Job.of("convert trials.npz out/o.parquet", "convert cohort.npz out/o.parquet"),
    "convert to zarr": Job.of("convert trials.npz out/o.zarr"),
    "convert over zarr": Job.of("convert trials.npz out/o.zarr", "convert cohort.npz out/o.zarr"),
    "normalize to zarr": Job.of(f"{NORMALIZE} out/o.zarr", resume=True),
    "normalize over zarr": Job.of(f"{NORMALIZE} out/o.zarr", "convert cohort.npz out/o.zarr", resume=True),
    "normalize to parquet": Job.of(f"{NORMALIZE} out/o.parquet", resume=True),
    "score to zarr": Job.of(f"score {' '.join((*VECTORS, *CHUNKS))} -o out/o.zarr", resume=True),
    "calibrate to zarr": Job.of(f"calibrate trials.zarr --load c.json {' '.join(CHUNKS)} -o out/o.zarr", resume=True),
    "compare": Job.of(comparing("npz")),
    "compare in chunks": Job.of(comparing("zarr", *CHUNKS)),
    "compare over another": Job.of(comparing("npz"), comparing("npz", "--calibration", "gaussian")),
}


def make_inputs(folder: Path) -> None:
    """Write tiny scores and embeddings, in one block and in small chunks."""
    import numpy as np

    from evenscore import Embeddings, ScoreModel, simulate_blocks, write
    from evenscore.calibrate import LogisticCalibration
    from evenscore.files import write_table
    from evenscore.files.models import save_calibration

    model = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9], [0.7]], beta=[[0.8], [0.6]], sigma2=[1.0, 1.5])
    who = [[f"{group}{n // each}" for n in range(6 * each)] for group in ("new", "dev") for each in (1, 2)]
    blocks, _ = simulate_blocks(model, *who, seed=3)
    speakers: dict[str, str] = {}
    for name in ("trials", "enroll", "test", "cohort"):
        table = getattr(blocks, name)
        write(table, folder / f"{name}.npz")
        write_table(table.in_tiles(100.0, (3, 6)), folder / f"{name}.zarr")
    for side, ids in (("enroll", blocks.trials.enroll_ids), ("test", blocks.trials.test_ids)):
        write(Embeddings(ids, np.random.default_rng(0).normal(size=(len(ids), 4))), folder / f"{side}-x.npz")
    for table, names in ((blocks.trials, who[:2]), (blocks.cohort, who[2:])):
        for ids, spoken in zip((table.enroll_ids, table.test_ids), names, strict=True):
            speakers |= dict(zip(ids, spoken, strict=True))
    write(speakers, folder / "utt2spk", format="utt2spk")
    save_calibration(LogisticCalibration(weights=[2.0], quality_weights=[], offset=0.5), folder / "c.json")


@dataclass
class Run:
    """How a run ended."""

    code: int
    said: str  #: on standard error
    calls: int  #: that could have failed
    removing: bool  #: whether the call that failed removes something


class Bench:
    """A folder with inputs, in which commands run with faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.shim = ctypes.CDLL(os.environ[SHIM])

    def run(self, arguments: tuple[str, ...], fault: str = "SIGKILL", call: int = 0) -> Run:
        """Run a command in a fork of this process."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            self._in_child(arguments, fault, call, writer)
        os.close(writer)
        with open(reader) as pipe:
            told = pipe.read().split()
        _, status = os.waitpid(child, 0)
        calls, removing = map(int, told) if told else (0, 0)
        said = (self.folder / "stderr").read_text(errors="replace")
        return Run(os.waitstatus_to_exitcode(status), said, calls, bool(removing))

    def _in_child(self, arguments: tuple[str, ...], fault: str, call: int, writer: int) -> None:
        code = 70
        try:
            signal.alarm(PATIENCE)
            os.chdir(self.folder)
            for stream, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
            sys.argv = ["evenscore", *arguments]
            from evenscore.cli.app import main

            self.shim.faults_arm(os.fsencode(self.out), ctypes.c_long(call), FAULTS[fault])
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            sys.stdout.flush()
            os.write(writer, f"{self.shim.faults_seen()} {self.shim.faults_removing()}".encode())
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def restore(self, state: Path | None) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        if state is None:
            self.out.mkdir()
        else:
            shutil.copytree(state, self.out)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in all files, without what tells the time; folders that are empty count, too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file():
            found[name] = plain(path.name, path.read_bytes())
        elif not any(path.iterdir()):
            found[f"{name}/"] = b""
    return found


def plain(name: str, data: bytes) -> bytes:
    """Leave out what differs from run to run: times, and which methods were there already."""
    if name in ("results.json", "record.json"):
        values = json.loads(data)
        values.pop("run", None)
        values.pop("seconds", None)
        return json.dumps(values).encode()
    if name == "report.html":
        rows = rb"<tr>(?:(?!</tr>).)*(?:Finished|Took|Taken from an earlier run)(?:(?!</tr>).)*</tr>"
        return re.sub(rb">\s*[\d.]+ s\s*<", b"", re.sub(rb"(?s)\s*" + rows, b"", data))
    return data


def units(found: dict[str, bytes]) -> dict[str, Any]:
    """Return what appears under a final name as a whole: files and stores, but nothing hidden or marked as partial."""
    grouped: dict[str, Any] = {}
    for name, data in found.items():
        parts = name.split("/")
        store = next((at for at, part in enumerate(parts) if part.endswith((".zarr", ".parquet"))), len(parts) - 1)
        if name.endswith("/") or any(is_working_name(part) for part in parts[: store + 1]):
            continue
        grouped.setdefault("/".join(parts[: store + 1]), {})[name] = data
    return grouped


def is_working_name(part: str) -> bool:
    return part.startswith(".") or part.endswith(".partial")


@dataclass
class Tally:
    """What was found."""

    points: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def check(self, good: bool, where: str, what: str) -> bool:
        if not good:
            self.failures.append(f"{where}: {what}")
        return good


def try_job(bench: Bench, name: str, job: Job, faults: list[str], every: int, tally: Tally, saved: Path) -> None:
    """Run a job calmly, then with each fault at each call, and judge what is there after it and after another run."""
    state = None
    if job.before:
        bench.restore(None)
        assert bench.run(job.before).code == 0, bench.run(job.before).said
        state = saved / f"{name} before"
        shutil.copytree(bench.out, state)
    bench.restore(state)
    before = contents(bench.out)
    for fault in faults:
        bench.restore(state)
        calm = bench.run(job.arguments, fault)
        if not tally.check(calm.code == 0, name, f"the calm run failed: {calm.said}"):
            return
        wanted = contents(bench.out)
        first = 1 + hash_of(name, fault) % every
        for call in range(first, calm.calls + 1, every):
            bench.restore(state)
            where = f"{name}, {fault} at call {call} of {calm.calls}"
            struck = bench.run(job.arguments, fault, call)
            tally.points[f"{name} {fault}"] += 1
            for problem in [*after_fault(bench, job, fault, struck, before, wanted), *after_all(bench, job, wanted)]:
                tally.check(False, where, problem)


def hash_of(*words: str) -> int:
    return sum(map(ord, "".join(words)))


def after_fault(
    bench: Bench, job: Job, fault: str, struck: Run, before: dict[str, bytes], wanted: dict[str, bytes]
) -> Iterator[str]:
    """Yield what is wrong with the state that a fault has left."""
    found = contents(bench.out)
    if fault == "SIGKILL":
        if struck.code != -signal.SIGKILL and found != wanted:
            yield f"it was not killed, and ended with {struck.code}: {struck.said}"
    elif fault == "EINTR" or struck.code == 0:
        if struck.code or (found != wanted and not struck.removing):
            yield f"exit code {struck.code}, {differences(found, wanted)}: {struck.said}"
    else:
        line = struck.said.strip().splitlines()[-1:]
        if struck.code != 2 or not line or not line[0].startswith("error: ") or "Traceback" in struck.said:
            yield f"exit code {struck.code}: {struck.said}"
        left = [
            name
            for name in found
            if any(part.startswith(".") and part.endswith((".part", ".old")) for part in name.split("/"))
        ]
        if left and not struck.removing and not any(".partial/" in name for name in left):
            yield f"left behind: {left[:3]}"
    earlier, later = units(before), units(wanted)
    for name, unit in units(found).items():
        if unit not in (earlier.get(name), later.get(name)):
            yield f"half-written: {name}"
    for name in earlier:
        if name in later and name not in units(found) and not name.endswith("/record.json"):  # which goes on purpose
            yield f"nothing is left under the name {name}"


def after_all(bench: Bench, job: Job, wanted: dict[str, bytes]) -> Iterator[str]:
    """Run again, and yield what is wrong with the result."""
    again = bench.run((*job.arguments, *(["--resume"] if job.resume else [])))
    if again.code:
        yield f"cannot go on, exit code {again.code}: {again.said.strip()[-300:]}"
        return
    found = contents(bench.out)
    if found != wanted:
        yield f"other bytes after another run: {differences(found, wanted)}"


def differences(found: dict[str, bytes], wanted: dict[str, bytes]) -> str:
    names = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    kinds = [f"{'changed' if n in found and n in wanted else 'left' if n in found else 'missing'} {n}" for n in names]
    return f"{len(kinds)} files ({', '.join(kinds[:3])})"


def with_shim(arguments: list[str]) -> int:
    """Compile the shim, and start this program anew with it."""
    with tempfile.TemporaryDirectory(prefix="evenscore-faults-") as folder:
        library = Path(folder) / "shim.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "shim.c", "-ldl"], check=True)
        quiet = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "COLUMNS": "200", "POLARS_MAX_THREADS": "1"}
        environment = {**os.environ, **quiet, SHIM: str(library), "LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, __file__, *arguments], env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th point")
    parser.add_argument("--jobs", default=",".join(JOBS), help="names between commas")
    parser.add_argument("--faults", default=",".join(FAULTS), help="names between commas")
    chosen = parser.parse_args()
    if SHIM not in os.environ:
        return with_shim(sys.argv[1:])
    start, tally = time.monotonic(), Tally()
    with tempfile.TemporaryDirectory(prefix="evenscore-faults-") as folder:
        top = Path(os.path.realpath(folder))
        bench = Bench(top / "bench")
        bench.folder.mkdir()
        maker = os.fork()  # as it starts threads, which no fork would have
        if not maker:
            make_inputs(bench.folder)
            os._exit(0)
        assert os.waitpid(maker, 0)[1] == 0
        import_all(reports="compare" in chosen.jobs)
        for name in chosen.jobs.split(","):
            before = len(tally.failures)
            try_job(bench, name, JOBS[name], chosen.faults.split(","), chosen.every, tally, top)
            points = {fault: tally.points[f"{name} {fault}"] for fault in chosen.faults.split(",")}
            say(f"{name}: {points}, failures: {len(tally.failures) - before}")
    for failure in tally.failures:
        say(failure)
    total = sum(tally.points.values())
    say(f"{total} faults, {len(tally.failures)} failures, {time.monotonic() - start:.0f} s")
    return int(bool(tally.failures))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def import_all(*, reports: bool) -> None:
    """Load what the commands need, and make their parsers, once; nothing of it starts threads."""
    from importlib import import_module

    import typer.main

    import evenscore
    from evenscore.cli.app import COMMANDS, app

    for name in ("zarr", "polars", "h5py", *(("scipy.stats", "scipy.optimize", "jinja2") if reports else ())):
        import_module(name)
    for found in pkgutil.walk_packages(evenscore.__path__, "evenscore."):
        drawing = found.name.startswith(("evenscore.plot", "evenscore.report", "evenscore.comparison"))
        if "kernel" not in found.name and not found.name.endswith("__main__") and (reports or not drawing):
            import_module(found.name)
    if reports:
        import_module("evenscore.report.page")._plotly()
    with suppress(ImportError):
        import_module("typer._adapters")  # which newer releases load when options are read
    gc.freeze()
    typer.main.get_command = functools.cache(typer.main.get_command)
    commands = typer.main.get_command(app)
    for name in COMMANDS:
        commands.get_command(None, name)


if __name__ == "__main__":
    sys.exit(main())
