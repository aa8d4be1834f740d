"""Reads HDF5 in a process of its own: what the library does with a damaged file then harms nobody.

The HDF5 library trusts what stands in a file. Of files with a few wrong bytes, some make it read beyond its memory,
which ends the process, some make it search for ever, and some make it ask for gigabytes. So the file is opened by
`main` in another process, with limits of processor time and memory, and `open_datasets` asks that process for names,
shapes and arrays. A process serves one file after the other, so that its start is waited for once.

A request is a line of JSON, an answer a line of JSON and as many bytes as it says. The answers of a process that read
a damaged file are not trusted either: sizes are checked before anything is allocated.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.streams import PathLike, parsing, refuse_larger_than_memory
from evenscore.memory import refuse_bomb

__all__ = ["DatasetReader", "open_datasets"]

_SECONDS, _BYTES_A_SECOND = 5, 10_000_000  # of processor time: these, and more for larger data
_SPARE_MEMORY = 1 << 29  # bytes beside the data itself
# Below this size a dataset may be declared without being stored; above, deflate packs at most about 1032 to 1.
_SMALL = 1 << 28
_MOST_PACKED = 1100
_TEXTS_AT_A_TIME = 4096
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from evenscore.files.hdf5_process import main; main()"

_DIED = (
    "the HDF5 library broke down over it, or took more than {seconds} s or {size:.1f} GB; it is damaged, copy it again"
)


class DatasetReader:
    """A process that reads HDF5, seen from outside; it serves one thread at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # an interrupt from the keyboard is for us, and ends it when we end
        )
        self.owner = os.getpid()

    def ask(self, path: PathLike, what: str, name: str | None = None, **more: Any) -> Any:
        """Return the answer to a request about a file, which is named in errors."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: S101, PT018
        try:
            requests.write(json.dumps({"do": what, "name": name, **more}).encode() + b"\n")
            requests.flush()
            answer = json.loads(answers.readline())
        except (OSError, ValueError):  # a broken pipe, or an end within a line
            self.end()
            raise FileError(path, _DIED.format(seconds=_SECONDS, size=_SPARE_MEMORY / 1e9), part=name) from None
        if "problem" in answer:
            raise FileError(path, answer["problem"], part=answer["part"])
        return self._array(path, answers, answer, name) if "bytes" in answer else answer["found"]

    def _array(self, path: PathLike, answers: IO[bytes], answer: dict[str, Any], name: str | None) -> npt.NDArray[Any]:
        size = int(answer["bytes"])
        refuse_larger_than_memory(path, size, part=name)
        data = np.empty(size, dtype=np.uint8)
        if answers.readinto(data) != size:  # type: ignore[attr-defined]
            self.end()
            raise FileError(path, _DIED.format(seconds=_SECONDS, size=_SPARE_MEMORY / 1e9), part=name)
        if answer["dtype"] is None:
            texts = json.loads(data.tobytes())
            array = np.empty(len(texts), dtype=object)
            array[:] = texts
            return array
        dtype = np.dtype(answer["dtype"])
        return data.view(dtype).reshape(answer["shape"])

    @property
    def usable(self) -> bool:
        """Whether it is alive, and was started by this process and not by one that was copied since."""
        return self.owner == os.getpid() and self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._process.kill()
        self._process.wait()


_idle: list[DatasetReader] = []
_lock = threading.Lock()


@atexit.register
def _end_idle() -> None:
    for reader in _idle:
        if reader.owner == os.getpid():
            reader.end()


@contextmanager
def open_datasets(file: Path, path: PathLike) -> Iterator[tuple[DatasetReader, list[str]]]:
    """Open a file in another process; give who can be asked about it, and the names of all datasets.

    ``path`` is what the file is called in errors.
    """
    with _lock:
        reader = next((one for one in _idle if one.usable), None)
        if reader is not None:
            _idle.remove(reader)
    reader = reader or DatasetReader()
    try:
        yield reader, reader.ask(path, "open", file=os.fspath(file.absolute()))
    except FileError:
        raise
    except BaseException:  # it may be anywhere in its work
        reader.end()
        raise
    finally:
        if reader.usable:
            with _lock:
                _idle.append(reader)


# ---- what follows runs in the other process


def main() -> None:
    """Answer the requests that come by standard input, until it ends."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    opened = _Opened()
    for line in requests:
        request = json.loads(line)
        answer: dict[str, Any]
        data = np.empty(0, dtype=np.uint8)
        try:
            with parsing("", "an HDF5 file", part=request["name"]), _library_errors(request["name"]):
                found = getattr(opened, "do_" + request.pop("do"))(**request)
            if isinstance(found, np.ndarray):
                is_text = found.dtype == object
                data = _as_bytes(found) if is_text else found
                answer = {"bytes": data.nbytes, "dtype": None if is_text else data.dtype.str, "shape": found.shape}
            else:
                answer = {"found": found}
        except FileError as error:
            answer = {"problem": error.problem, "part": error.part}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.write(np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)
        answers.flush()


def _as_bytes(texts: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(texts.tolist()).encode(), dtype=np.uint8)


@contextmanager
def _library_errors(part: str | None) -> Iterator[None]:
    """Say what HDF5's OSError means: a damaged file, and not a problem of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        problem = f"it is not an HDF5 file, or it is cut off or damaged ({error}); copy it again"
        raise FileError("", problem, part=part) from None


class _Opened:
    """The file that is open."""

    def __init__(self) -> None:
        import h5py

        self._h5py = h5py
        self._file: Any = None

    def do_open(self, name: None, file: str) -> list[str]:
        """Open a file instead of the last one, and return the names of its datasets."""
        _limit(os.path.getsize(file), 4 * os.path.getsize(file))
        if self._file is not None:
            self._file.close()
        self._file = self._h5py.File(file, "r")
        names: list[str] = []

        def visit(name: str, link: Any) -> str | None:
            if isinstance(link, self._h5py.ExternalLink):
                return name
            is_hard = isinstance(link, self._h5py.HardLink)
            if is_hard and self._file.get(name, getclass=True) is self._h5py.Dataset:
                names.append(name)
            return None

        external = self._file.visititems_links(visit)
        if external is not None:
            raise FileError("", "this is a link to another file, which is not followed; copy the data", part=external)
        return names

    def do_describe(self, name: str) -> tuple[tuple[int, ...], bool]:
        """Return the shape that a dataset declares, and whether it holds text."""
        _limit(0, 0)
        dataset = self._file[name]
        return tuple(dataset.shape or ()), self._h5py.check_string_dtype(dataset.dtype) is not None

    def do_read(self, name: str) -> npt.NDArray[Any]:
        """Return a dataset; text as one dimension, even where it is a matrix of one row or column (MATLAB)."""
        dataset = self._file[name]
        is_text = self._h5py.check_string_dtype(dataset.dtype) is not None
        self._refuse_unsafe(dataset, name, is_text)
        _limit(dataset.nbytes, 3 * dataset.nbytes)
        if is_text:
            return self._texts(dataset, name)
        array: npt.NDArray[Any] = dataset[()]
        return array

    def _refuse_unsafe(self, dataset: Any, name: str, is_text: bool) -> None:
        if dataset.is_virtual or dataset.external:
            problem = "its data lies in other files, which are not followed; copy it into one file (h5repack)"
            raise FileError("", problem, part=name)
        if dataset.shape is None or dataset.shape == ():
            raise FileError("", "it is a single value, but an array is expected", part=name)
        if not is_text and (dataset.dtype.hasobject or dataset.dtype.kind not in "biuf"):
            problem = f"it has type {dataset.dtype}, but only numbers and text are read; write it again"
            raise FileError("", problem, part=name)
        refuse_larger_than_memory("", dataset.nbytes, part=name)
        refuse_bomb(dataset.id.get_storage_size(), dataset.nbytes, harmless=_SMALL, most=_MOST_PACKED)

    def _texts(self, dataset: Any, name: str) -> npt.NDArray[np.object_]:
        """Read text in parts, so that a few long texts named often cannot fill the memory unseen."""
        if dataset.ndim > 2 or (dataset.ndim == 2 and 1 not in dataset.shape):
            raise FileError("", f"shape {dataset.shape} is not that of a list of text", part=name)
        by_column = dataset.ndim == 2 and dataset.shape[0] == 1
        texts = np.empty(dataset.size, dtype=object)
        total = 0
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = slice(start, start + _TEXTS_AT_A_TIME)
            block = np.asarray(dataset[:, part] if by_column else dataset[part]).reshape(-1).tolist()
            total += sum(map(len, block))
            refuse_larger_than_memory("", total, part=name)
            texts[part] = [_decoded(text, name) for text in block]
        return texts


def _decoded(text: bytes, name: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise FileError("", f"{text[:40]!r} is not valid UTF-8; write it again", part=name) from None


def _limit(work: int, memory: int) -> None:
    """Allow this process some seconds for work on so many bytes, and so much memory, from now on."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + _SECONDS + work / _BYTES_A_SECOND)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with suppress(OSError, ValueError):  # no such file on this system
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + _SPARE_MEMORY + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
