"""Bad input: damaged files and models, odd command lines, odd numbers. Each input follows from its number alone.

    PYTHONPATH=src python tests/solid/fuzz.py --seconds 60 [--start N] [--only read,model,command,numbers]

An input is refused by an error of evenscore, or used; a command ends with code 0 or 2. Inputs run in another process,
which may take neither 10 seconds nor 2 GB for one of them, and may not crash.
"""

import argparse
import gzip
import io
import json
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from contextlib import suppress
from functools import cache, partial, reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import typer.main
import typer.testing

from evenscore.calibrate import CALIBRATIONS
from evenscore.cli.app import _Commands, app
from evenscore.data import Embeddings, ScoreMatrix, TrialList
from evenscore.data.score_matrix import LARGEST_SCORE
from evenscore.errors import EvenscoreError
from evenscore.files import FORMATS, hdf5, read, read_model, write, write_model

SECONDS, BYTES = 10, 2 << 30  #: the most that one input may take
SLOW = {"demo", "--help", "--workers", "--scheduler"}  # take longer than an input may
# fmt: off
KINDS = {"key": "trials", "speakers": "speakers", "conditions": "speakers", "embeddings": "embeddings",
         "model": "model", "scores": "scores"}
LINES = ["normalize --trials scores --enroll-cohort scores --test-cohort scores -o out", "plda embeddings -o out",
         "normalize --norm lgsm --model model --trials scores --enroll-cohort scores --test-cohort scores -o out.npz",
         "fit --scores scores --key trials -o out", "info scores --key trials", "evaluate scores --key trials",
         "calibrate scores --train scores --train-key trials -o out", "calibrate scores --load model -o out",
         "score --enroll-embeddings embeddings --test-embeddings embeddings -o out", "trials speakers -o out",
         "compare --train scores --trials scores --key trials --bootstrap 9 -o out", "model show model",
         "plot det scores --key trials -o out.svg", "convert scores out.zarr --key trials",
         "convert embeddings out.ark", "simulate --model model -o out"]
EDGES = [b"0", b"-0.0", b"5e-324", b"1e154", b"-1e29", b"1e308", b"1e309", b"nan", b"inf", b"-Infinity", b"2147483648",
         b"9223372036854775808", b"-1", b"3,5", b"0x10", b"1_0", b"9" * 400, b"", b'"1"', b"[]", b"{}", b"null"]
TEXTS = ["\0", "\x1b[31m", "\u202e", "\ud800", "\ufeff", "\u2028", "<b>", "é", "e\u0301", "../..", "*", "%s",
         "a" * 5000, "\t", "\r", "\n", " ", "'", '"', ",", "\U0001f600"]
JSON = [None, [], {}, "x", -1, 0, 1e300, True, [[1]], 10**400, float("nan"), "inf", [1, 2], {"format": "os:system"}]
ARRAYS = [np.zeros(shape, kind) for shape in ((0,), (4, 7), (7, 4), (0, 7), (1, 1, 1), (), (28,), (2, 0))
          for kind in ("f2", "f4", ">f8", "i1", "u8", "b1", "c16", "U3", "S2", "M8[s]", "V4")]
WORDS = ["x", "0", "-1", "1", "3", "0.5", "nan", "1e400", "all", "lgsm", "as:top_k=3", "as:top_k=x", "s", "raw,as",
         "plda", "lgsm:dim=9", "logistic", "pav", "gaussian:", "re:(", "../x", "no-file", "é\u202e", ".", "cosine",
         "target", "", "10MB", "-5GB", "a,b", ":::", "=", "kaldi", "npz", "csv", "1e9", "99999999999"]
MODELS = [file.read_bytes() for file in sorted(Path(__file__).resolve().parents[1].glob("acceptance/models/*"))]
MODELS.append(b"<Plda>  [ 0.5 1 ]\n [\n  2 0\n  1 1 ]\n [ 3 2 ]\n</Plda> ")  # of Kaldi
BLOCKS = {"trials": "et", "enroll-cohort": "ed", "test-cohort": "ct", "cohort": "cd"}
NUMBERS = [f"normalize --norm {norm} {' '.join(f'--{name} {name}.npz' for name in BLOCKS)} -o out" for norm in (
    "z", "t", "zt", "tz", "s", "as", "az", "as:top_k=2", "s:statistic=median", "as:select=cross", "lgsm --model model")]
NUMBERS += [f"calibrate --calibration {one} trials.npz --train trials.npz --train-key key -o c" for one in CALIBRATIONS]
NUMBERS += ["evaluate trials.npz --key key", "fit --scores trials.npz --key key -o fitted"]
# fmt: on


@cache
def sound_files(kind):
    """Return files of one format, or of one kind in every format: {name: bytes}, the one that is read first."""
    rng = np.random.default_rng(1)
    enroll, test = [f"spk{n}-a" for n in range(4)], [f"spk{n % 4}-{n}" for n in range(7)]
    speakers = {name: name.split("-")[0] for name in (*enroll, *test)}
    pairs = [name for name in enroll for _ in test], test * 4
    labels = [int(speakers[e] == speakers[t]) for e, t in zip(*pairs, strict=True)]
    listed = TrialList(*pairs, rng.normal(size=28), labels, {"dur": rng.normal(size=28)})
    scores = np.where(rng.random((4, 7)) < 0.1, np.nan, rng.normal(size=(4, 7))).astype(np.float32)
    tables = {"scores": [ScoreMatrix(scores, enroll, test), listed], "trials": [TrialList(*pairs, labels=labels)]}
    tables |= {"embeddings": [Embeddings([*enroll, *test], rng.normal(size=(11, 5)), speakers)], "speakers": [speakers]}
    found = []
    for name, format in FORMATS.items():
        main = f"f{(format.extensions or ('.txt',))[0]}"
        for table in (table for one in format.kinds for table in tables[one] if kind in (one, name)):
            with tempfile.TemporaryDirectory() as folder, suppress(EvenscoreError):  # no place for it in the format
                write(table, Path(folder, main), format=name)
                paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
                folders = f"{folder}/".encode()  # which an scp names
                files = {str(path.relative_to(folder)): path.read_bytes().replace(folders, b"") for path in paths}
                found.append({main: files.pop(main, b""), **files})
    return found


def mutated(data, rng):
    """Return bytes with one to three things wrong; half of the archives and records keep their shape."""
    if data[:1] in (b"P", b"{") and b"PAR1" not in data and rng.random() < 0.5:
        return (_changed_record if data[:1] == b"{" else _changed_archive)(data, rng)
    return reduce(lambda spoilt, _: _spoilt(spoilt, rng), range(rng.choice((1, 1, 2, 3))), data)


def _spoilt(data, rng):
    at, size, how = rng.randint(0, len(data)), rng.choice((1, 2, 4, 8, 64)), rng.randrange(9)
    if how <= 3:
        text = rng.choice((rng.randbytes(size), rng.choice(TEXTS).encode(errors="surrogatepass")))
        new = b"", data[at + size :], text + data[at:], data[at : at + size] * rng.choice((2, 3, 50)) + data[at:]
        return data[:at] + new[how]
    if how == 4 and (numbers := list(re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", data[:4096]))):
        place = rng.choice(numbers)
        return data[: place.start()] + rng.choice(EDGES) + data[place.end() :]
    if how == 5:
        value = rng.choice((0, 1, (1 << 8 * size) - 1, 1 << (8 * size - 1), 1000 % (1 << 8 * size)))
        return data[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + data[at + size :]
    if how == 6:
        lines = data.split(b"\n")
        line = rng.randrange(len(lines))
        new = (b"", b"#", b"\r", lines[line].upper(), lines[line].replace(b" ", b"\t"), lines[line].replace(b" ", b","))
        return b"\n".join([*lines[:line], rng.choice(new), *lines[line + rng.randrange(2) :]])
    if how == 7:
        return gzip.compress(data, 1)
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 16)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def _changed_archive(data, rng):
    """Return an archive with one member changed, or one more; its check sums are right."""
    odd, out = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(odd, rng.choice(ARRAYS), allow_pickle=False)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, other = rng.choice(sorted(members)), rng.choice(sorted(members))
    new = rng.choice((name, name, other, "../../evil.npy", "object.npy"))
    members[new] = rng.choice((_spoilt(members[name], rng), odd.getvalue(), b""))
    with zipfile.ZipFile(out, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def _changed_record(data, rng):
    """Return a JSON record with one value changed, at any depth."""
    record = json.loads(data)
    place, key = record, rng.choice(sorted(record))
    while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
        place = place[key]
        key = rng.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
    place[key] = rng.choice(JSON)
    return json.dumps(record).encode()


def placed(files, folder, rng, share):
    """Write files, one of them damaged with this probability; return the path of the first."""
    filled = [name for name in files if files[name]]
    damaged = rng.choice(filled) if rng.random() < share else None
    for name in filled:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(mutated(files[name], rng) if name == damaged else files[name])
    return folder / next(iter(files))


def read_input(rng, folder):
    """Read a damaged file, and use what is read."""
    names = [name for name, format in FORMATS.items() if format.writer]
    name = rng.choice(names)
    path = placed(rng.choice(sound_files(name)), folder, rng, 1)
    how = {"missing": rng.choice(("error", "skip")), "duplicates": rng.choice(("error", "drop"))}
    table = read(path, format=rng.choice((None, None, name, rng.choice(names))), **how)
    if getattr(table, "scores", None) is not None:
        scores = table.to_matrix().compute().scores
        assert np.all(np.isnan(scores) | (abs(scores) <= LARGEST_SCORE)), scores
    write(table, folder / rng.choice(("o.npz", "o.txt", "o.csv", "o.zarr")))


def model_input(rng, folder):
    """Read a damaged model, and write it again."""
    (folder / "m").write_bytes(mutated(rng.choice(MODELS), rng))
    write_model(read_model(folder / "m"), folder / "again")


def command_input(rng, folder):
    """Run a command with further options of any value, with one word left out, with damaged files."""
    words = rng.choice(LINES).split()
    options = typer.main.get_command(app).get_command(None, words[0]).params
    options = [option for option in options if option.opts[0].startswith("--") and option.opts[0] not in SLOW]
    for option in rng.sample(options, rng.choice((0, 0, 1, 2)) % (len(options) + 1)):
        kind = next((KINDS[word] for word in KINDS if word in option.opts[0]), "scores")
        value = kind if option.metavar == "FILE" else rng.choice(WORDS)
        words += [option.opts[0], *([] if getattr(option, "is_flag", False) else [value])]
    if rng.random() < 0.1:
        words.pop(rng.randrange(1, len(words)))
    for at, word in enumerate(words[1:], 1):
        if word in KINDS.values():
            files = {"m": rng.choice(MODELS)} if word == "model" else rng.choice(sound_files(word))
            words[at] = str(placed(files, folder / str(at), rng, 0.1))
    run(words, folder)


def numbers_input(rng, folder):
    """Normalize, calibrate or evaluate scores of odd sizes: what is written can be read."""
    draw, kind = np.random.default_rng(rng.randrange(1000)), rng.choice(("f4", "f8"))
    scale = rng.choice((1, 1e-300, 1e-30, 1e15, 9e29, 0))
    for name, (enroll, test) in BLOCKS.items():
        scores = draw.normal(size=(5, 5)).round(rng.choice((0, 5))).clip(-1, 1) * rng.choice((1, scale))
        scores.flat[: rng.randrange(25)] *= rng.choice((1, 1e-20, 0))
        table = ScoreMatrix(scores.astype(kind), [f"{enroll}{i}" for i in range(5)], [f"{test}{i}" for i in range(5)])
        write(table, folder / f"{name}.npz")
    (folder / "key").write_text("".join(f"e{i} t{j} {int(i == j)}\n" for i in range(5) for j in range(5)))
    (folder / "model").write_bytes(rng.choice([model for model in MODELS if b"alpha" in model]))
    if run(rng.choice(NUMBERS).split(), folder) == 0 and (folder / "out").exists():
        assert len(read(folder / "out")) == 25


INPUTS = {"read": read_input, "model": model_input, "command": command_input, "numbers": numbers_input}


def run(line, folder):
    """Run a command in this process; return its exit code, which must be 0 or 2."""
    os.chdir(folder)
    result = typer.testing.CliRunner().invoke(app, line)
    os.chdir(tempfile.gettempdir())
    if result.exit_code not in (0, 2) or "Traceback" in result.output:
        raise AssertionError(f"evenscore {line}: exit {result.exit_code}: {result.output[-400:]} {result.exception!r}")
    return result.exit_code


def forked(command, **_):
    """Read HDF5 in a fork: it takes a hundredth of the time of a new process."""
    if not (child := os.fork()):
        with suppress(BaseException):
            hdf5.copy_datasets(*command[3:5])
            os._exit(0)
        os._exit(1)
    return SimpleNamespace(returncode=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stderr=b"damaged")


def work(start, only):
    """Run inputs from a number on; print each number, and then what is wrong, as JSON."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tempfile.tempdir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", ".* encountered in (?!cast)")  # overflow; that of float32 output is refused
    made = cache(partial(_Commands.get_command, None, None))
    _Commands.get_command, hdf5.subprocess = lambda _self, _ctx, name: made(name), SimpleNamespace(run=forked)
    sound_files("scores")
    problem = ""
    while not problem.endswith("MB"):
        report.write(f"{start}\n")
        try:
            rng = random.Random(start)
            with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder, suppress(EvenscoreError):
                INPUTS[rng.choice(only)](rng, Path(folder))
            peak = max(resource.getrusage(who).ru_maxrss << 10 for who in (0, -1))  # the process, its children
            problem = f"{peak >> 20} MB" if peak > BYTES else ""
        except Exception:
            problem = traceback.format_exc()
        report.write(json.dumps(problem) + "\n")
        start += 1


def campaign(start=0, count=1 << 40, seconds=1e9, only=tuple(INPUTS)):
    """Run so many inputs, or for so many seconds; return what is wrong by number, and the count."""
    failures, number, stop = {}, start, time.monotonic() + seconds
    while number < start + count and time.monotonic() < stop:
        command = [sys.executable, __file__, "--work", "--start", str(number), "--only", ",".join(only)]
        patience, alive = 60, True  # it has to start, and to make the sound files
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
            while alive and number < start + count and time.monotonic() < stop:
                in_time = select.select([process.stdout], [], [], patience)[0]
                line, patience = process.stdout.readline() if in_time else b"", SECONDS
                alive = bool(line)
                said = json.loads(line) if line else "the process ended" if in_time else "it takes too long"
                if isinstance(said, str):
                    failures |= {number: said} if said else {}
                    number += 1
            os.killpg(process.pid, signal.SIGKILL)
    return failures, number - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--start", type=int, default=0, metavar="N", help="number of the first input")
    parser.add_argument("--only", default=list(INPUTS), type=lambda text: text.split(","))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.start, chosen.only)
    failures, count = campaign(chosen.start, seconds=chosen.seconds, only=chosen.only)
    lines = [f"input {number}: {problem}" for number, problem in failures.items()]
    sys.stdout.write("\n".join([*lines, f"{count} inputs, {len(failures)} failures", ""]))
    sys.exit(bool(failures))
