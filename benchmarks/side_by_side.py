"""Time the same work in the first edition ("old") and in this program, in turns.

A benchmark has a function ``prepare(folder, small)`` that returns its tasks by name, and calls `main`. Each program has
a process of its own, which imports its evenscore, prepares once, and then runs a task whenever it is asked. The
processes take turns, so that a busy moment of the machine meets both; CPU time suffers less from other work than wall
time. On a virtual machine the first use of a page may cost 20 x a later one (0.5 s for the 256 MB of 8000 x 8000
scores, where AS-norm takes 0.15 s), so memory is touched and released before each task; a median of CPU time far above
the best says that some runs got new pages all the same. Data in files are made once, by ``make(folder, small)``, in the
old program. A task that one program cannot do yet is reported, and does not end the run.

    python benchmarks/norms.py [--small] [--repeat 5] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"old": ROOT / ".first-edition" / "src", "new": ROOT / "src"}
FIRST_EDITION = "761788ee469dbe556a1a6eb4d9904491ed2edf0a"  # the last commit that has it

Task = Callable[[], object]
Prepare = Callable[[Path, bool], dict[str, Task]]
Make = Callable[[Path, bool], None]


def unpack_first_edition() -> None:
    """Take the first edition out of the history, once."""
    if not SOURCES["old"].exists():
        archive = subprocess.run(["git", "archive", FIRST_EDITION, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        SOURCES["old"].parent.mkdir(exist_ok=True)
        subprocess.run(["tar", "-x", "-C", str(SOURCES["old"].parent)], input=archive.stdout, check=True)


def is_new() -> bool:
    """Tell whether the imported evenscore is this program."""
    import evenscore

    return SOURCES["new"] in Path(evenscore.__file__).resolve().parents


def run_command(command: list[str], folder: Path) -> resource.struct_rusage:
    """Run a command and return the resources of it and its children."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"exit code {process.returncode}: {errors.read().strip()[-300:]}")
    return used


def run_evenscore(line: str, folder: Path) -> resource.struct_rusage:
    """Run a command line of the program whose process this is."""
    return run_command([sys.executable, "-m", "evenscore", *line.split()], folder)


def peak_megabytes() -> float:
    """Return the peak memory of this process; getrusage would count that of the process that started it, too."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def touch_memory() -> None:
    """Use 3 GB once and release them, so that neither program is the first to use these pages of the machine."""
    len(b"\1" * (3 << 30))


def measure(task: Task) -> dict[str, float]:
    """Return wall and CPU seconds and peak memory: of this process, or of the command if the task ran one."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this task
    wall, cpu = time.perf_counter(), time.process_time()
    result = task()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if isinstance(result, resource.struct_rusage):
        return {"wall": wall, "cpu": result.ru_utime + result.ru_stime, "peak": result.ru_maxrss / 1024}
    return {"wall": wall, "cpu": cpu, "peak": peak_megabytes()}


def answer_requests(prepare: Prepare, folder: Path, small: bool) -> None:
    """Run the tasks whose names come on standard input, and answer each with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a task prints is no answer
    try:
        tasks = prepare(folder, small)
    except Exception as error:  # the new program is not complete
        tasks, failed = {}, f"{type(error).__name__}: {error}"
    print(json.dumps(list(tasks)), file=answers, flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            found = measure(tasks[name]) if tasks else {"error": failed}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), file=answers, flush=True)


class Program:
    """One of the two programs, in a process that has prepared its data."""

    def __init__(self, edition: str, arguments: list[str]) -> None:
        self.process = start(edition, [*arguments, "--child"])
        self.names: list[str] = json.loads(self.process.stdout.readline())

    def run(self, name: str) -> dict[str, float | str]:
        print(name, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline() or '{"error": "the process ended"}')

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def start(edition: str, arguments: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES[edition])}
    command = [sys.executable, str(Path(sys.argv[0]).resolve()), *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def compare(name: str, programs: dict[str, Program], repeat: int) -> dict[str, dict[str, float]]:
    """Run a task in each program, once to warm up and then in turns; print and return the best times of each."""
    runs: dict[str, list[dict[str, float]]] = {edition: [] for edition in programs}
    for turn in range(repeat + 1):
        for edition in list(runs):
            found = programs[edition].run(name)
            if "error" in found:
                print(f"{name:28} {edition}  cannot: {found['error']}")
                del runs[edition]
            elif turn:
                runs[edition].append(found)
    best = {
        edition: {key: min(run[key] for run in found) for key in ("wall", "cpu")} for edition, found in runs.items()
    }
    for edition, found in runs.items():
        median = {key: statistics.median(run[key] for run in found) for key in ("wall", "cpu")}
        wall, cpu = (f"{key} {best[edition][key]:7.3f} s (median {median[key]:7.3f})" for key in ("wall", "cpu"))
        print(f"{name:28} {edition}  {wall}  {cpu}  peak {max(run['peak'] for run in found):6.0f} MB")
    if len(best) == 2:
        ratios = {key: best["new"][key] / best["old"][key] for key in ("wall", "cpu")}
        print(f"{name:28} new / old: wall {ratios['wall']:.2f}, cpu {ratios['cpu']:.2f}")
    sys.stdout.flush()
    return best


def main(prepare: Prepare, make: Make | None = None, repeat: int = 5, baseline: str | Mapping[str, str] = "") -> None:
    """Run a benchmark, or, in a process of its own, the part of one of the programs.

    ``baseline`` is the task of the same program with which all others are compared besides, or that of each.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="sizes that only show that it runs")
    parser.add_argument("--repeat", type=int, help=f"measured runs of each task (default {repeat}, 2 if small)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these tasks")
    parser.add_argument("--editions", nargs="+", choices=SOURCES, default=list(SOURCES), help="by default both")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.make and make:
        make(a.folder, a.small)
    elif a.child:
        answer_requests(prepare, a.folder, a.small)
    else:
        unpack_first_edition()
        with tempfile.TemporaryDirectory(prefix="evenscore-bench-", dir=a.folder) as folder:
            shared = ["--folder", folder, *(["--small"] if a.small else [])]
            if make and start("old", [*shared, "--make"]).wait():
                sys.exit("the data could not be made")
            programs = {edition: Program(edition, shared) for edition in a.editions}
            names = list(dict.fromkeys(name for program in programs.values() for name in program.names))
            best: dict[str, dict[str, dict[str, float]]] = {}
            for name in a.only or names:
                if not a.small:
                    touch_memory()
                best[name] = compare(name, programs, a.repeat or (2 if a.small else repeat))
                other = baseline if isinstance(baseline, str) else baseline.get(name, "")
                for edition, times in best[name].items() if other != name and other in best else ():
                    wall, cpu = (times[key] / best[other][edition][key] for key in ("wall", "cpu"))
                    print(f"{name:28} {edition}  wall {wall:.2f} x, cpu {cpu:.2f} x {other}", flush=True)
            for program in programs.values():
                program.close()
