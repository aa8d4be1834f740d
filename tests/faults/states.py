"""What a fault has left in a folder, and what may be there."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults.bench import Run

#: Files that are read together: the second belongs to the first, which is missing while they are replaced.
PAIRS = {".npy": ".ids", ".scp": ".ark"}
State = dict[str, bytes]  #: what is in each file
_CHANCE = re.compile(r"\.[a-z2-7]{8}\.(part|old)$")


def contents(folder: Path) -> State:
    """Return what is in all files, without what tells the time; folders that are empty count, too."""
    found: State = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file():
            found[name] = plain(path.name, path.read_bytes())
        elif not any(path.iterdir()):
            found[f"{name}/"] = b""
    return found


def plain(name: str, data: bytes) -> bytes:
    """Leave out what differs from run to run: times, and which methods were there already; every other byte counts."""
    for pattern in _OF_A_RUN.get(name, ()):
        data = re.sub(pattern, b"", data)
    return data


_ROWS = rb"Finished|Took|Taken from an earlier run"
_OF_A_RUN = {
    "record.json": (rb'(?m)^  "seconds": [\d.e-]+,?$',),
    "results.json": (rb'(?m)^    "(?:time|seconds|resumed|method_seconds)": .*$',),
    "report.html": (
        rb'<tr><th scope="row"><bdi>(?:%s)</bdi></th><td><bdi>[^<]*</bdi></td></tr>\n' % _ROWS,
        rb"(?<=<td><bdi>)\d+\.\d s(?=</bdi></td>)",
    ),
}


def state(folder: Path) -> State:
    """Return all that the next run can see: `contents`, but names drawn at random and numbers of files are the same."""
    found: State = {}
    for name, data in contents(folder).items():
        known = "/".join(_CHANCE.sub(r".*.\1", part) for part in name.split("/"))
        while known in found:
            known += "+"
        found[known] = _journal(folder / name, data) if name.endswith("journal.jsonl") else data
    return found


def _journal(file: Path, data: bytes) -> bytes:
    """Say where the finished data are, which a journal names by the number of their directory."""
    places = {"there": file.parent / "data", "in place": file.parent.with_suffix("")}
    for where, place in places.items():
        with suppress(OSError):
            data = data.replace(b'"finished": %d}' % place.stat().st_ino, b'"finished": "%s"}' % where.encode())
    return re.sub(rb'"finished": \d+}', b'"finished": "gone"}', data)


def units(found: State) -> dict[str, Any]:
    """Return what appears under a final name as a whole: files and stores, but nothing hidden or marked as partial."""
    grouped: dict[str, Any] = {}
    for name, data in found.items():
        parts = name.split("/")
        store = next((at for at, part in enumerate(parts) if part.endswith((".zarr", ".parquet"))), len(parts) - 1)
        if name.endswith("/") or any(is_working_name(part) for part in parts[: store + 1]):
            continue
        grouped.setdefault("/".join(parts[: store + 1]), {})[name] = data
    for first, second in PAIRS.items():
        for name in [name for name in grouped if name.endswith(first)]:
            grouped[name] = {**grouped[name], **grouped.get(name.removesuffix(first) + second, {"second": b""})}
    return grouped


def is_working_name(part: str) -> bool:
    return part.startswith(".") or part.endswith(".partial")


def after_fault(fault: str, struck: Run, *, found: State, before: State, wanted: State) -> Iterator[str]:
    """Yield what is wrong with the state that a fault has left."""
    if fault == "SIGKILL":
        if struck.code != -signal.SIGKILL and found != wanted:
            yield f"it was not killed, and ended with {struck.code}: {struck.said}"
    elif fault == "SECOND" and struck.second is not None:
        yield from _after_two_runs(struck, struck.second, found, wanted)
    elif fault in ("EINTR", "SHORT") or struck.code == 0:
        if struck.code or (found != wanted and not struck.removing):
            yield f"exit code {struck.code}, {differences(found, wanted)}: {struck.said}"
    else:
        yield from _after_failure(struck, found)
    earlier, later, there = units(before), units(wanted), units(found)
    for name, unit in there.items():
        if unit not in (earlier.get(name), later.get(name)):
            yield f"half-written: {name}"
    for name in earlier:
        goes_on_purpose = name.endswith(("/record.json", *PAIRS))
        if name in later and name not in there and not goes_on_purpose:
            yield f"nothing is left under the name {name}"


def _after_two_runs(first: Run, second: Run, found: State, wanted: State) -> Iterator[str]:
    """Yield what is wrong after a run that stopped until a second one had ended; one of them may be told to wait."""
    runs = {"first": first, "second": second}
    for name, run in runs.items():
        if run.code and not (run.code == 2 and "another run is writing it" in run.said):
            yield f"the {name} run ended with {run.code}: {run.said}"
    if all(run.code for run in runs.values()) or found != wanted:
        yield f"exit codes {first.code} and {second.code}, {differences(found, wanted)}"


def _after_failure(struck: Run, found: State) -> Iterator[str]:
    line = struck.said.strip().splitlines()[-1:]
    if struck.code != 2 or not line or not line[0].startswith("error: ") or "Traceback" in struck.said:
        yield f"exit code {struck.code}: {struck.said}"
    left = [name for name in found if any(_CHANCE.search(part) for part in name.split("/"))]
    if left and not struck.removing and not any(".partial/" in name for name in left):
        yield f"left behind: {left[:3]}"


def differences(found: State, wanted: State) -> str:
    """Tell which files differ."""
    names = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    kinds = [f"{'changed' if n in found and n in wanted else 'left' if n in found else 'missing'} {n}" for n in names]
    return f"{len(kinds)} files ({', '.join(kinds[:3])})"
