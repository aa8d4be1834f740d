"""Kill commands and fail their calls at every operation that changes files, and run them again.

    PYTHONPATH=src python tests/solid/faults.py [N, for every N-th call only] [JOB ...]

`faults.c` is loaded before all libraries. A run meets SIGKILL, EIO, or a disk that is full from one call on; after it,
what has a final name is complete, and a second run gives what an undisturbed one gives.
"""

import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np

FAULTS = {"SIGKILL": 0, "ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
TIMES = re.compile(rb'"(time|\w*seconds)": ("[^"]*"|\{[^}]*\}|[\d.e-]+)|<bdi>(Finished|Took)</bdi>.*|[\d.]+ s</bdi>')
BLOCKS = "--trials trials.npz --enroll-cohort enroll.npz --test-cohort test.npz"
SCORE = "score --enroll-embeddings x.npz --test-embeddings x.npz"
KEYS = "--key key.trials --train-key cohort.trials --speakers utt2spk"
JOBS = {
    "text": f"normalize {BLOCKS} -o out/o.scores",
    "npz": f"normalize {BLOCKS} -o out/o.npz",
    "zarr": f"normalize --norm s {BLOCKS.replace('npz', 'zarr')} -o out/o.zarr",
    "fit": "fit --scores cohort.npz --key cohort.trials -o out/m.json",
    "compare": f"compare {BLOCKS} {KEYS} --train cohort.npz --methods s --bootstrap 5 -o out/report",
    "score": f"{SCORE} -o out/o.scores",
    "score-npy": f"{SCORE} -o out/o.npy",
    "score-zarr": f"{SCORE} -o out/o.zarr",
    "gzip": "convert key.trials out/o.parquet.gz",
    "hdf5": "convert trials.npz out/o.h5",
    "scp": "convert x.npz out/o.scp",
}


def make_inputs(folder):
    np.savez(folder / "x.npz", ids=["x1", "x2", "x3"], embeddings=np.arange(12.0).reshape(3, 4) ** 2)
    lines = [f"convert {name}.npz {name}.zarr" for name in ("trials", "enroll", "test")]
    for line in ["simulate --speakers 4 --cohort-speakers 6 -o .", *lines]:
        subprocess.run([sys.executable, "-m", "evenscore", *line.split()], cwd=folder, check=True, capture_output=True)


def run(line, folder, fault=0, call=0):
    """Run a command in a fork; return its exit code, what it said, and how many calls changed files in ``out``."""
    shim, (reader, writer) = ctypes.CDLL(os.environ["LD_PRELOAD"]), os.pipe()
    if not (child := os.fork()):
        code = 70
        try:
            os.chdir(folder)
            os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(2, 1)
            sys.argv = ["evenscore", *line.replace("out/", f"{folder}/out/").split()]
            main = import_module("evenscore.cli.app").main
            signal.alarm(120)
            shim.faults_arm(os.fsencode(folder / "out"), ctypes.c_long(call), fault)
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stdout.flush()
            os.write(writer, json.dumps([shim.faults_seen(), *sys.modules]).encode())
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        n_calls, *modules = json.loads(pipe.read() or "[0]")
    for name in modules if not call else ():  # so that the next run has them; none of them starts threads
        with suppress(ImportError):
            import_module(name)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, (folder / "said").read_text(errors="replace"), n_calls


def contents(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name, *parts = path.relative_to(folder).parts
        if path.is_file() and not name.startswith(".") and not name.endswith(".partial"):
            found.setdefault(name, {})["/".join(parts)] = TIMES.sub(b"", path.read_bytes())
    return found


def strike(name, folder, every=1):
    """Run a job with each fault at each call, or at every N-th; return the number of faults and what was wrong."""
    out, count = folder / "out", 0
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    code, said, n_calls = run(JOBS[name], folder)
    wanted, wrong = contents(out), [f"{name}: undisturbed, it ends with {code}: {said}"] * (code or not n_calls)
    for fault, call in [(fault, call) for fault in FAULTS for call in range(1, n_calls + 1, every)]:
        shutil.rmtree(out)
        out.mkdir()
        code, said, _ = run(JOBS[name], folder, FAULTS[fault], call)
        found, count = contents(out), count + 1
        refused = code == -signal.SIGKILL if fault == "SIGKILL" else code == 2 and said.startswith("error: ")
        problems = [] if refused or (code == 0 and found == wanted) else [f"exit code {code}: {said}"]
        problems += [f"half-written: {part}" for part in found if found[part] != wanted.get(part)]
        code, said, _ = run(JOBS[name], folder)
        problems += [] if (code, contents(out)) == (0, wanted) else [f"a second run ends with {code}: {said}"]
        wrong += [f"{name}, {fault} at call {call} of {n_calls}: {problem}" for problem in problems]
    return count, wrong


def campaign(jobs=tuple(JOBS), every=1):
    """Strike jobs in a process that has the library; return its exit code and what it said."""
    with tempfile.TemporaryDirectory(prefix="evenscore-faults-") as folder:
        make_inputs(Path(folder))
        source, library = Path(__file__).with_suffix(".c"), f"{folder}/faults.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": library, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, folder, str(every), *jobs]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


def main():
    if "faults.so" not in os.environ.get("LD_PRELOAD", ""):
        code, said = campaign(sys.argv[2:] or tuple(JOBS), int((sys.argv[1:] or ["1"])[0]))
    else:
        folder, every, *jobs = sys.argv[1:]
        struck = [strike(job, Path(os.path.realpath(folder)), int(every)) for job in jobs]
        wrong = [problem for _, problems in struck for problem in problems]
        code, said = len(wrong) > 0, "\n".join([*wrong, f"{sum(n for n, _ in struck)} faults, {len(wrong)} failures\n"])
    sys.stdout.write(said)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
