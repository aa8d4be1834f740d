"""A campaign of spoilt inputs against everything that takes input: ``python tests/fuzz/campaign.py`` (``make fuzz``).

Each subject runs in a process with a limit of memory; an input that ends the process, takes more than ten seconds,
writes to standard error, or raises anything but an error of ours is a finding. An input follows from the subject, the
seed and a number, so that ``--subject NAME --seed S --first N --inputs 1`` tries it again; findings are also kept as
files. Temporary files go where ``TMPDIR`` says; in memory (tmpfs) they cost least.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from compiled_loops import prepare_share  # noqa: E402
from evenscore import EvenscoreError  # noqa: E402
from evenscore.files.panics import hide_panics  # noqa: E402

SECONDS = 10.0  #: of processor time that an input may take
WAIT = 60.0  #: seconds on a clock after which a process that tries the same input is given up, as it may wait for ever
MEMORY = 2_000_000_000  #: bytes that a process may take for its inputs
_A_MINUTE = 800  #: inputs of the first round for each minute; each next round is four times as large
_KEPT = 20  #: findings of a subject and a round whose files are kept


def main() -> int:
    """Run the campaign, or, as a process of it, one subject."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subject", action="append", help="only these; all if none is named")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all inputs; the time if not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, help="how many for each subject; else until the time is over")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="where findings are kept")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        work(given.subject[0], given.seed, given.first, given.inputs, given.worker)
        return 0
    print(f"seed {given.seed}", flush=True)
    prepare_share(0, 1)  # loops that are not compiled yet would be the time of some input
    tried, found, seconds = campaign(given)
    for name, count in tried.items():
        print(f"{name}: {count} inputs, {found[name]} findings, {count / seconds[name]:.0f} inputs/s")
    print(f"in all {sum(tried.values())} inputs, {sum(found.values())} findings, seed {given.seed}")
    return 1 if sum(found.values()) else 0


def campaign(given: argparse.Namespace) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return for each subject how many inputs were tried, how many findings there were, and how long it took."""
    from fuzz.subjects import SUBJECTS

    names = given.subject or sorted(SUBJECTS)
    weights = {name: SUBJECTS[name].weight for name in names}
    end = time.monotonic() + 60 * given.minutes
    tried, found, seconds = Counter[str](), Counter[str](), Counter[str]()
    for size in (int(_A_MINUTE * given.minutes) * 4**turn for turn in range(20)):
        for name, share in shares_of(weights, size, given.inputs).items():
            start = time.monotonic()
            outcomes = run_subject(name, given.seed, given.first + tried[name], share, given.findings)
            tried[name] += share
            found[name] += len(outcomes)
            seconds[name] += time.monotonic() - start  # type: ignore[assignment]
            for line in outcomes:
                print(f"FINDING {line}", flush=True)
            if not given.inputs and time.monotonic() > end:
                return tried, found, seconds
        if given.inputs:
            break
        print(f"{sum(tried.values())} inputs, {sum(found.values())} findings", flush=True)
    return tried, found, seconds


def shares_of(weights: dict[str, float], size: int, inputs: int | None) -> dict[str, int]:
    """Return how many inputs of a round each subject gets."""
    if inputs is not None:
        return dict.fromkeys(weights, inputs)
    return {name: max(int(size * weight / sum(weights.values())), 1) for name, weight in weights.items()}


def run_subject(name: str, seed: int, first: int, count: int, findings: Path) -> list[str]:
    """Try some inputs of a subject in a process of their own; a new one goes on where one was lost."""
    outcomes, end = [], first + count
    while first < end:
        number, lines, reason = run_process(name, seed, first, end)
        for at, line in lines:
            keep = len(outcomes) < _KEPT
            outcomes.append(kept(name, seed, at, line, findings) if keep else f"{name} input {at}: {line}")
        if reason:
            outcomes.append(kept(name, seed, number, reason, findings))
        elif number < end - 1:
            outcomes.append(f"{name} seed {seed}: the process ended at input {number}")
            break
        first = number + 1
    return outcomes


def run_process(name: str, seed: int, first: int, end: int) -> tuple[int, list[tuple[int, str]], str]:
    """Return the last input that a process has tried, what it told of each, and why it ended early, if it did."""
    with tempfile.TemporaryFile() as place:
        place.write(first.to_bytes(8, "little"))
        place.flush()
        command = [sys.executable, __file__, "--worker", str(place.fileno()), "--subject", name, "--seed", str(seed)]
        command += ["--first", str(first), "--inputs", str(end - first)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "pass_fds": (place.fileno(),)}
        with subprocess.Popen(command, text=True, **pipes) as process:
            assert process.stdout is not None
            number, told, reason = first, "", ""
            while True:
                ready, _, _ = select.select([process.stdout], [], [], WAIT)
                text = os.read(process.stdout.fileno(), 1 << 16).decode(errors="replace") if ready else None
                before, number = number, int.from_bytes(os.pread(place.fileno(), 8, 0), "little")
                told += text or ""
                if text is None and number == before:
                    reason = f"did nothing for {WAIT:.0f} s"
                    process.kill()
                if text == "" or reason:
                    break
            process.wait()
    if not reason and process.returncode:
        late = -process.returncode == signal.SIGPROF
        reason = f"took more than {SECONDS:.0f} s" if late else f"ended the process with {process.returncode}"
    lines = [line.partition(" ") for line in told.splitlines()]
    return number, [(int(at), line) for at, _, line in lines], reason


def kept(name: str, seed: int, number: int, reason: str, findings: Path) -> str:
    """Keep the files of an input and what it did, and return a line that tells of it."""
    place = findings / f"{name}-{seed}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    line = f"{name} seed {seed} input {number}: {reason}"
    (place / "finding.txt").write_text(line + "\n", encoding="utf-8", errors="backslashreplace")
    command = [sys.executable, __file__, "--worker", "-1", "--subject", name, "--seed", str(seed)]
    environment = {**os.environ, "EVENSCORE_FUZZ_KEEP": str(place.resolve())}
    with suppress(subprocess.TimeoutExpired):
        command += ["--first", str(number), "--inputs", "1"]
        subprocess.run(command, env=environment, capture_output=True, timeout=WAIT)
    return line


def work(name: str, seed: int, first: int, count: int, place: int) -> None:
    """Try inputs one after the other, each announced by its number in a file; what goes wrong is told in a line."""
    from fuzz.subjects import SUBJECTS, clean

    subject = SUBJECTS[name]
    hide_panics()  # as the command line does
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder, suppress(Exception):
        subject.attempt(random.Random(name), Path(folder))  # what is made and loaded once is nobody's time
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("error")
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder, tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)  # libraries write there past Python
        where = Path(os.environ.get("EVENSCORE_FUZZ_KEEP", folder))
        os.chdir(where)  # a command may write anywhere
        for number in range(first, first + count):
            if place >= 0:
                os.pwrite(place, number.to_bytes(8, "little"), 0)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            rng = random.Random(f"{name} {seed} {number}")
            told = outcome(subject, rng, where) or said(errors.fileno())
            if told:
                print(number, told, file=out, flush=True)
            if str(where) == folder:
                clean(where)


def outcome(subject: object, rng: random.Random, where: Path) -> str:
    """Return what is wrong with how an input was taken, '' if nothing is."""
    try:
        subject.attempt(rng, where)  # type: ignore[attr-defined]
    except EvenscoreError as error:
        return f"a message of several lines: {str(error)!r:.300}" if "\n" in str(error).strip() else ""
    except BaseException as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error}"[:600].replace("\n", " ")
        return f"{told!a} at {Path(at.filename).name}:{at.lineno}"
    return ""


def said(errors: int) -> str:
    """Return what was written to standard error, and forget it."""
    size = os.fstat(errors).st_size
    if not size:
        return ""
    text = os.pread(errors, 400, 0).decode(errors="replace")
    os.ftruncate(errors, 0)
    os.lseek(errors, 0, os.SEEK_SET)
    return f"wrote to standard error: {text!a}"


if __name__ == "__main__":
    sys.exit(main())
