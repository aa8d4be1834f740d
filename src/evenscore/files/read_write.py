"""Read any file, write any table."""

from __future__ import annotations

from typing import Literal

from evenscore.errors import FileError
from evenscore.files.registry import FORMATS, Format, ReadOptions, SpeakerMap, Table, format_named, kind_of
from evenscore.files.sniffing import sniff
from evenscore.files.streams import PathLike, spooled
from evenscore.tables import Embeddings, ScoreMatrix, TrialList

__all__ = ["read", "read_embeddings", "read_scores", "read_speakers", "read_trials", "write"]

Missing = Literal["error", "skip"]
Infinite = Literal["error", "accept"]
Duplicates = Literal["error", "drop"]


def read(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "error",
    score_column: str | None = None,
    ids: PathLike | None = None,
) -> Table:
    r"""Read any file: scores, trials, embeddings or a map of speakers.

    Parameters
    ----------
    path
        The file, plain or gzip; ``-`` is standard input.
    format
        Name of the format, a key of `FORMATS`. By default it is found out from the first bytes.
    missing
        A score that is absent, nan or infinite: ``"error"`` refuses it, ``"skip"`` leaves the trial out.
    duplicates
        A trial that is listed twice: ``"error"`` refuses it, ``"drop"`` drops repeats with the same values.
    score_column
        Name of the column with the scores, for files with a header.
    ids
        List of ids, one per line, for embeddings in npy files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> _ = path.write_text("spk1 utt1 2.5\nspk1 utt2 -0.5\n")
    >>> read(path)
    TrialList(2 trials of 1 enrolments and 2 tests, no labels, scores -0.5 to 2.5)
    """
    options = ReadOptions(missing=missing, duplicates=duplicates, score_column=score_column, ids=ids)
    return _read(path, format, options)


def read_scores(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    infinite: Infinite = "error",
    duplicates: Duplicates = "error",
    score_column: str | None = None,
) -> TrialList | ScoreMatrix:
    r"""Read scores, as a list of trials or as a matrix; the parameters are those of `read`.

    With ``infinite="accept"``, infinite scores are read like others, as log-likelihood ratios may be infinite; a
    matrix with such scores is returned as a list of trials.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "eval.llr"
    >>> _ = path.write_text("spk1 utt1 2.5\nspk1 utt2 -inf\n")
    >>> read_scores(path, infinite="accept").scores
    array([ 2.5, -inf])
    """
    options = ReadOptions(
        missing=missing, infinite=infinite, duplicates=duplicates, score_column=score_column, kind="scores"
    )
    table = _read(path, format, options)
    if isinstance(table, ScoreMatrix) or (isinstance(table, TrialList) and table.scores is not None):
        return table
    remedy = "give a score file, or read it with score_column=NAME"
    raise FileError(path, f"expected scores, but it holds {_content(table)}; {remedy}")


def read_trials(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    infinite: Infinite = "error",
    duplicates: Duplicates = "error",
) -> TrialList:
    r"""Read a list of trials or a key; a score file with labels is a key, too. For the parameters see `read_scores`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.key"
    >>> _ = path.write_text("spk1 utt1 target\nspk1 utt2 nontarget\n")
    >>> read_trials(path).labels
    array([1, 0], dtype=int8)
    """
    options = ReadOptions(missing=missing, infinite=infinite, duplicates=duplicates, kind="trials")
    table = _read(path, format, options)
    if isinstance(table, TrialList):
        return table
    if isinstance(table, ScoreMatrix):
        return table.to_trials()
    raise FileError(path, f"expected trials, but it holds {_content(table)}; give a list of trials")


def read_embeddings(path: PathLike, *, format: str | None = None, ids: PathLike | None = None) -> Embeddings:
    """Read embeddings; the parameters are those of `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.npz"
    >>> write(Embeddings(["utt1", "utt2"], [[0.5, 1.0], [2.0, 0.0]]), path)
    >>> read_embeddings(path).ids
    array(['utt1', 'utt2'], dtype=object)
    """
    table = _read(path, format, ReadOptions(ids=ids, kind="embeddings"))
    if isinstance(table, Embeddings):
        return table
    raise FileError(path, f"expected embeddings, but it holds {_content(table)}; give a file of embeddings")


def read_speakers(path: PathLike, *, format: str | None = None, duplicates: Duplicates = "error") -> SpeakerMap:
    r"""Read a map from utterance to speaker, from utt2spk or spk2utt; which of them it is, the columns tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "spk2utt"
    >>> _ = path.write_text("ann a1 a2\nbob b1\n")
    >>> read_speakers(path)
    {'a1': 'ann', 'a2': 'ann', 'b1': 'bob'}
    """
    table = _read(path, format, ReadOptions(duplicates=duplicates, kind="speakers"))
    if isinstance(table, dict):
        return table
    raise FileError(path, f"expected a map of speakers, but it holds {_content(table)}; give utt2spk or spk2utt")


def write(table: Table, path: PathLike, *, format: str | None = None) -> None:
    r"""Write a table; the file appears under its name only when all of it is written.

    What a format has no place for (labels in a Kaldi score file, measures in most formats) is left out; what a format
    needs and the table lacks is an error. Text formats write a score matrix in long form.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is packed, ``-`` is standard output.
    format
        Name of the format, a key of `FORMATS`. By default the end of the name decides (``.npz``, ``.csv``, ...); other
        names get kaldi for scores and trials, kaldi-ark for embeddings and utt2spk for speakers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> write(TrialList.from_pairs(["e1"], ["t1"], scores=[0.5], labels=[1]), path, format="wespeaker")
    >>> path.read_text()
    'e1 t1 0.5 target\n'
    """
    record = format_named(format) if format is not None else _format_for(table, path)
    try:
        record.writer(table, path)(table, path)
    except FileError as error:
        if str(path) != "-" or error.path != "<stdin>":
            raise
        raise FileError("<stdout>", error.problem, line=error.line, part=error.part) from None


def _read(path: PathLike, format: str | None, options: ReadOptions) -> Table:
    if format is not None:
        return format_named(format).reader()(path, options)
    with spooled(path) as local:
        return sniff(local, kind=options.kind).reader()(local, options)


def _format_for(table: Table, path: PathLike) -> Format:
    """Return the format that the name of the file suggests, or the usual one for the table."""
    name = str(path).lower().removesuffix(".gz")
    kind = kind_of(table)
    suggested = [record for record in FORMATS.values() if record.extensions and name.endswith(record.extensions)]
    fitting = [record for record in suggested if kind in record.kinds]
    if fitting or suggested:
        return (fitting or suggested)[0]
    if kind == "speakers":
        return FORMATS["spk2utt" if name.endswith("spk2utt") else "utt2spk"]
    return FORMATS["kaldi-ark" if kind == "embeddings" else "kaldi"]


def _content(table: Table) -> str:
    kind = str(kind_of(table))
    return {"speakers": "a map of speakers", "trials": "trials without scores"}.get(kind, kind)
