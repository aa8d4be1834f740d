r"""Kaldi's files of one object, text or binary: a vector (``mean.vec``), and a PLDA (``ivector-compute-plda``).

A binary file begins with ``\0B``. A vector is its type (``FV``, ``DV``) and a space, its size as ``\4`` and four bytes,
and the numbers; a matrix (``FM``, ``DM``) has two sizes; all little-endian. In text, numbers stand in brackets, those
of a matrix with a row on each line. A PLDA is ``<Plda>``, its mean, its transform, psi and ``</Plda>``: in the
coordinates transform (x - mean), within is I and between is diag(psi).
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.numpy_files import read_array
from evenscore.files.streams import PathLike, atomic_output, local_file, open_input, parsing, reading

if TYPE_CHECKING:
    from evenscore.plda import PLDA

__all__ = ["is_kaldi_plda", "read_kaldi_plda", "read_vector", "write_kaldi_plda"]

_LARGEST = 1 << 28  # bytes
_BINARY, _PLDA = b"\0B", b"<Plda>"
_TYPES = {b"FV ": ("<f4", 1), b"DV ": ("<f8", 1), b"FM ": ("<f4", 2), b"DM ": ("<f8", 2)}
_NPY = b"\x93NUMPY"
_BRACKETS = re.compile(rb"\s*\[([^\[\]]*)\]")


def is_kaldi_plda(path: PathLike) -> bool:
    """Tell whether a file begins as Kaldi's PLDA does."""
    if str(path) == "-":
        return False
    with open_input(path) as stream, reading(path):
        return _after_mark(stream.read(len(_BINARY + _PLDA))).startswith(_PLDA)


def read_kaldi_plda(path: PathLike) -> PLDA:
    """Read a PLDA of Kaldi; its vectors are brought to the length that the model expects, as Kaldi's scoring does."""
    from evenscore.plda import PLDA

    objects = _Objects(_content(path), path)
    objects.token(_PLDA)
    mean, transform, psi = (objects.numbers(ndim) for ndim in (1, 2, 1))
    objects.token(b"</Plda>")
    if not len(mean) == len(psi) == len(transform) == transform.shape[1]:
        objects.refuse(f"its mean has {len(mean)} numbers, its transform {transform.shape}, and psi {len(psi)}")
    try:
        with np.errstate(over="raise", invalid="raise"):
            back = np.linalg.inv(transform)
            between, within = (back * psi) @ back.T, back @ back.T
        return PLDA(mean=mean, between=between, within=within, model_length=True)
    except (np.linalg.LinAlgError, FloatingPointError, InputError) as error:
        objects.refuse(f"it is no PLDA ({error})")


def write_kaldi_plda(plda: PLDA, path: PathLike) -> None:
    """Write a PLDA as Kaldi's text, for a model that does nothing to vectors first but to centre them.

    Kaldi brings vectors to the length that the model expects unless it is told ``--normalize-length=false``, so that
    scores are the same only if `PLDA.model_length` is set, or with that option.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import PLDA
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plda"
    >>> write_kaldi_plda(PLDA(mean=[0.5], between=[[3.0]], within=[[0.25]]), path)
    >>> print(path.read_text())
    <Plda>  [ 0.5 ]
     [
      2 ]
     [ 12 ]
    </Plda>
    <BLANKLINE>
    """
    from evenscore.plda.model import diagonalize

    if plda.projection.matrix is not None or plda.projection.length_normalize:
        raise InputError(
            "Kaldi's file of a PLDA has no place for LDA, whitening or length normalization; train without them, and "
            "do these with Kaldi's own programs"
        )
    V, psi = diagonalize(plda.between, plda.within)
    mean, *rows = (_text(row) for row in (plda.mean + plda.projection.center, *V.T[::-1]))
    lines = [f"<Plda>  [ {mean} ]", " [", *(f"  {row}" for row in rows), f" [ {_text(psi[::-1])} ]", "</Plda>", ""]
    lines[-4] += " ]"
    with atomic_output(path) as stream:
        stream.write("\n".join(lines).encode())


def read_vector(path: PathLike) -> npt.NDArray[np.float64] | None:
    """Read a file that holds one vector: a NumPy array, or Kaldi's text or binary; None if it holds something else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mean.vec"
    >>> _ = path.write_text(" [ 0.5 -1.5 ]")
    >>> read_vector(path)
    array([ 0.5, -1.5])
    """
    if str(path) == "-":
        return None
    with open_input(path) as stream, reading(path):
        start = stream.read(len(_NPY))
    if start == _NPY:
        return _npy_vector(path)
    if not start.startswith(_BINARY) and not start.lstrip().startswith(b"["):
        return None
    objects = _Objects(_content(path), path)
    vector = objects.numbers(1)
    objects.token(b"")
    return vector


def _npy_vector(path: PathLike) -> npt.NDArray[np.float64] | None:
    with local_file(path) as file, parsing(path, "an npy file"):
        array = read_array(file, path)
    squeezed = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
    if squeezed.ndim != 1 or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        return None
    return squeezed.astype(np.float64)


def _content(path: PathLike) -> bytes:
    with open_input(path) as stream, reading(path):
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise FileError(path, f"it is larger than {_LARGEST >> 20} MB, so it is not a file of this kind")
    return data


def _after_mark(data: bytes) -> bytes:
    return data.removeprefix(_BINARY).lstrip(b" ")


def _text(numbers: npt.NDArray[np.float64]) -> str:
    return " ".join(f"{number:.17g}" for number in numbers)


class _Objects:
    """The objects of a file, one after the other."""

    def __init__(self, data: bytes, path: PathLike) -> None:
        self.binary = data.startswith(_BINARY)
        self.data, self.path = _after_mark(data), path
        self.at = 0

    def refuse(self, problem: str) -> NoReturn:
        raise FileError(self.path, f"{problem}; copy the file again, or write it with Kaldi's own programs") from None

    def token(self, expected: bytes) -> None:
        """Pass a word, or nothing but the end."""
        rest = self.data[self.at :].lstrip()
        if not rest.startswith(expected) or (not expected and rest):
            what = f"expected {expected.decode()!r}" if expected else "expected the end of the file"
            self.refuse(f"{what}, but found {rest[:20]!r}")
        self.at = len(self.data) - len(rest) + len(expected)
        if self.binary and expected:
            self.at += 1  # the space after a word

    def numbers(self, ndim: int) -> npt.NDArray[np.float64]:
        """Return the next vector or matrix."""
        found = self._from_binary() if self.binary else self._from_text(ndim)
        if found.ndim != ndim or not found.size or not np.isfinite(found).all():
            kind = "vector" if ndim == 1 else "matrix"
            self.refuse(f"expected a {kind} of finite numbers, but found an array of shape {found.shape}")
        return found

    def _from_binary(self) -> npt.NDArray[np.float64]:
        kind = self.data[self.at : self.at + 3]
        if kind not in _TYPES:
            self.refuse(f"expected a vector or a matrix (FV, DV, FM, DM), but found {kind!r}")
        dtype, ndim = _TYPES[kind]
        sizes, start = self.data[self.at + 3 : self.at + 3 + 5 * ndim], self.at + 3 + 5 * ndim
        if len(sizes) < 5 * ndim or sizes[::5] != b"\4" * ndim:
            self.refuse("a size is cut off or damaged")
        shape = [struct.unpack_from("<i", sizes, 5 * axis + 1)[0] for axis in range(ndim)]
        count = int(np.prod(shape, dtype=object))
        self.at = start + count * int(dtype[-1])
        if min(shape) < 0 or self.at > len(self.data):
            self.refuse(f"an array of {shape} numbers does not fit into the file")
        return np.frombuffer(self.data, dtype, count, start).reshape(shape).astype(np.float64)

    def _from_text(self, ndim: int) -> npt.NDArray[np.float64]:
        found = _BRACKETS.match(self.data, self.at)
        if found is None:
            self.refuse(f"expected numbers in brackets, but found {self.data[self.at : self.at + 20]!r}")
        self.at = found.end()
        rows = [row.split() for row in found[1].splitlines() if row.strip()] if ndim == 2 else [found[1].split()]
        if len({len(row) for row in rows}) > 1:
            self.refuse("the rows of a matrix have different lengths")
        try:
            array = np.array([[float(word) for word in row] for row in rows])
        except ValueError as error:
            self.refuse(str(error))
        return array if ndim == 2 else array.reshape(-1)
