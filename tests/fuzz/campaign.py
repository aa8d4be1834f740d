"""A campaign of spoilt inputs against everything that takes input: ``python tests/fuzz/campaign.py`` (``make fuzz``).

Each subject runs in a process with a limit of memory; an input that ends the process, takes more than ten seconds, or
raises anything but an error of ours is a finding. An input follows from the subject, the seed and a number, so that
``--subject NAME --seed S --first N --inputs 1`` tries it again; findings are also kept as files.
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

from evenscore import EvenscoreError  # noqa: E402

SECONDS = 10.0  #: of processor time that an input may take
WAIT = 180.0  #: seconds on a clock after which a process is given up, as it may wait for ever
MEMORY = 2_000_000_000  #: bytes that a process may take for its inputs
_BATCH = 2000  #: inputs that a subject gets before it is the next one's turn


def main() -> int:
    """Run the campaign, or, as a process of it, one subject."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subject", action="append", help="only these; all if none is named")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all inputs; the time if not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, help="how many for each subject; else until the time is over")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="where findings are kept")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.subject[0], given.seed, given.first, given.inputs)
        return 0
    from fuzz.subjects import SUBJECTS

    print(f"seed {given.seed}", flush=True)
    end = time.monotonic() + 60 * given.minutes
    tried: Counter[str] = Counter()
    found: Counter[str] = Counter()
    first = given.first
    while True:
        for name in given.subject or sorted(SUBJECTS):
            size = given.inputs or _BATCH
            outcomes = run_subject(name, given.seed, first, size, given.findings)
            tried += Counter({name: size})
            found += Counter({name: len(outcomes)})
            for line in outcomes:
                print(f"FINDING {line}", flush=True)
            if not given.inputs and time.monotonic() > end:
                break
        else:
            first += size
            if not given.inputs:
                continue
        break
    for name, count in tried.items():
        print(f"{name}: {count} inputs, {found[name]} findings")
    print(f"in all {sum(tried.values())} inputs, {sum(found.values())} findings, seed {given.seed}")
    return 1 if sum(found.values()) else 0


def run_subject(name: str, seed: int, first: int, count: int, findings: Path) -> list[str]:
    """Try some inputs of a subject in a process of their own; a new one goes on where one was lost."""
    outcomes, end = [], first + count
    while first < end:
        command = [sys.executable, __file__, "--worker", "--subject", name, "--seed", str(seed)]
        command += ["--first", str(first), "--inputs", str(end - first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            number, reason = first - 1, ""
            os.set_blocking(process.stdout.fileno(), False)
            rest = ""
            while True:
                ready, _, _ = select.select([process.stdout], [], [], WAIT)
                text = os.read(process.stdout.fileno(), 1 << 16).decode(errors="replace") if ready else None
                if text is None:
                    reason = f"did nothing for {WAIT:.0f} s"
                    process.kill()
                    break
                if not text:
                    break
                *lines, rest = (rest + text).split("\n")
                for line in lines:
                    if line.startswith("#"):
                        number = int(line[1:])
                    else:
                        outcomes.append(
                            f"{name} input {number}: {line}"
                            if len(outcomes) > 20
                            else kept(name, seed, number, line, findings)
                        )
            process.wait()
        if not reason and process.returncode:
            late = -process.returncode == signal.SIGPROF
            reason = f"took more than {SECONDS:.0f} s" if late else f"ended the process with {process.returncode}"
        if reason:
            outcomes.append(kept(name, seed, max(number, first), reason, findings))
        elif number < end - 1:
            outcomes.append(f"{name} seed {seed}: the process ended at input {number}")
            break
        first = max(number, first) + 1
    return outcomes


def kept(name: str, seed: int, number: int, reason: str, findings: Path) -> str:
    """Keep the files of an input and what it did, and return a line that tells of it."""
    place = findings / f"{name}-{seed}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    line = f"{name} seed {seed} input {number}: {reason}"
    (place / "finding.txt").write_text(line + "\n", encoding="utf-8", errors="backslashreplace")
    command = [sys.executable, __file__, "--worker", "--subject", name, "--seed", str(seed), "--first", str(number)]
    environment = {**os.environ, "EVENSCORE_FUZZ_KEEP": str(place.resolve())}
    with suppress(subprocess.TimeoutExpired):
        subprocess.run([*command, "--inputs", "1"], env=environment, capture_output=True, timeout=WAIT)
    return line


def work(name: str, seed: int, first: int, count: int) -> None:
    """Try inputs one after the other, each announced by its number; what goes wrong is told in a line."""
    from fuzz.subjects import SUBJECTS, clean

    subject = SUBJECTS[name]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("error")
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder:
        where = Path(os.environ.get("EVENSCORE_FUZZ_KEEP", folder))
        os.chdir(where)  # a command may write anywhere
        for number in range(first, first + count):
            print(f"#{number}", file=out, flush=True)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                subject.attempt(random.Random(f"{name} {seed} {number}"), where)
            except EvenscoreError as error:
                if "\n" in str(error).strip():
                    print(f"a message of several lines: {str(error)!r:.300}", file=out, flush=True)
            except BaseException as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                told = f"{type(error).__name__}: {error}"[:600].replace("\n", " ")
                print(f"{told!a} at {Path(at.filename).name}:{at.lineno}", file=out, flush=True)
            if str(where) == folder:
                clean(where)


if __name__ == "__main__":
    sys.exit(main())
