"""Readers of corpora: RSR2015 part I, AudioMNIST, and any list of recordings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from evenscore import FileError, InputError, read_speakers
from evenscore.files import read_json, read_metadata
from recipes.text_dependent.recordings import ROLES, Corpus, Recording, Split
from recipes.text_dependent.rsr2015 import (
    ENROLL_SESSIONS,
    FILE_NAME,
    N_PHRASES,
    Rsr2015Lists,
    read_rsr2015_lists,
    role_of_number,
)

__all__ = ["CORPORA", "read_audiomnist", "read_corpus", "read_manifest", "read_rsr2015"]

PathLike = str | os.PathLike[str]

AUDIO = (".wav", ".flac", ".sph", ".ogg", ".aiff", ".au")  #: ends of names that are taken for speech
GENDERS = {"male": "m", "m": "m", "female": "f", "f": "f", "": ""}
CORPORA = ("audiomnist", "rsr2015", "manifest")

_DIGIT_NAME = re.compile(r"(\d+)_(\w+)_(\d+)$")


def read_rsr2015(
    root: PathLike,
    *,
    sets: PathLike | None = None,
    enroll_sessions: Sequence[str] | None = None,
    skip_unreadable: bool = False,
) -> Corpus:
    """Find the recordings of RSR2015 part I: ``sph/male/m001/m001_01_003.sph`` is speaker m001, session 1, phrase 3.

    The corpus' own lists, ``key/part1/trn/3sesspwd_eval_m.trn`` and ``key/part1/ndx/3sess-pwd_eval_m.ndx`` and those
    of the other gender and set, say who is in which set and what enrols and is tested. Without them, and if ``sets``
    or ``enroll_sessions`` are given, sets go by the usual numbers, and every recording takes part.

    Parameters
    ----------
    root
        Where ``sph/`` and ``key/`` are, or any directory above the files; ``.sph`` and ``.wav`` (or ``.flac``) are
        found.
    sets
        File with lines of a speaker and its set (background, development or evaluation), in place of the usual numbers:
        m001-m050, m051-m100, m101-m157 and f001-f047, f048-f094, f095-f143.
    enroll_sessions
        Sessions for enrolment, by default 01, 04 and 07; the others are tests.
    skip_unreadable
        Leave out files that are empty, or listed but absent, and list them in `Corpus.skipped`; else they are an error.
    """
    found: list[Recording] = []
    for path in _audio_files(root):
        match = FILE_NAME.fullmatch(path.stem)
        if match and 1 <= int(match[4]) <= N_PHRASES:
            found.append(Recording(match[1] + match[2], match[1], match[4], match[3], path))
    if not found:
        raise FileError(root, "no file of RSR2015 part I, such as sph/male/m001/m001_01_001.sph, is below; check it")
    lists = read_rsr2015_lists(root) if sets is None and enroll_sessions is None else None
    absent = () if lists is None else _absent(lists, found, skip_unreadable)
    found = found if lists is None else [one for one in found if lists.use(one.path.stem)]
    found, skipped = _present(found, skip_unreadable)
    speakers = sorted({recording.speaker for recording in found})
    role_of = _listed_sets(sets, speakers) if sets is not None else {name: role_of_number(name) for name in speakers}
    if lists is not None:
        role_of |= {speaker: role for speaker, role in lists.role_of.items() if speaker in role_of}
        enroll_sessions = lists.enroll_sessions
    sessions = ENROLL_SESSIONS if enroll_sessions is None else tuple(enroll_sessions)
    return Corpus(found, sessions, _split_by_role(role_of), (*absent, *skipped))


def _absent(lists: Rsr2015Lists, found: Sequence[Recording], skip: bool) -> tuple[str, ...]:
    """Return what is wrong with the listed recordings that are not there."""
    names = lists.absent({recording.path.stem for recording in found})
    if names and not skip:
        raise FileError(
            lists.folder,
            f"{names[0]} is listed, but there is no such recording ({len(names)} in all); copy the corpus again, skip "
            "unreadable files, or give the directory sph/ as the root, to go without the lists",
        )
    return tuple(f"{name}: there is no such recording, but it is listed in {lists.folder}" for name in names)


def _listed_sets(path: PathLike, speakers: Iterable[str]) -> dict[str, str]:
    role_of = read_speakers(path, format="utt2spk")
    _check_roles(role_of.values(), path)
    absent = [speaker for speaker in speakers if speaker not in role_of]
    if absent:
        raise FileError(path, f"speaker {absent[0]!r} is missing; list every speaker with its set")
    return {speaker: role_of[speaker] for speaker in speakers}


def _check_roles(roles: Iterable[str], path: PathLike) -> None:
    odd = sorted(set(roles) - set(ROLES))
    if odd:
        raise FileError(path, f"{odd[0]!r} is not a set; the sets are {', '.join(ROLES)}")


def _split_by_role(role_of: dict[str, str]) -> Split | None:
    """Return the split, None if one of the sets is empty: then it must be made with `split_speakers`."""
    sets = [tuple(speaker for speaker, role in role_of.items() if role == wanted) for wanted in ROLES]
    return Split(*sets) if all(sets) else None


def read_audiomnist(
    root: PathLike, *, enroll_sessions: Sequence[str] = ("00", "01", "02"), skip_unreadable: bool = False
) -> Corpus:
    """Find the recordings of AudioMNIST: ``data/01/7_01_23.wav`` is speaker 01, digit 7, take 23.

    Takes are the sessions, written with two digits. The corpus has no sets of its own: see `split_speakers`.

    Parameters
    ----------
    root
        The directory with ``data/``, or ``data/`` itself; genders are in its ``audioMNIST_meta.txt``.
    enroll_sessions
        Takes for enrolment; the others are tests.
    skip_unreadable
        Leave out empty files, and list them in `Corpus.skipped`; else they are an error.
    """
    data = Path(root) / "data" if (Path(root) / "data").is_dir() else Path(root)
    found: list[tuple[str, str, str, Path]] = []
    for path in _audio_files(data):
        match = _DIGIT_NAME.fullmatch(path.stem)
        if match and match[2] == path.parent.name:
            found.append((match[2], match[1], f"{int(match[3]):02d}", path))
    if not found:
        raise FileError(root, "no file of AudioMNIST, such as data/01/0_01_0.wav, is below; check the directory")
    gender = _audiomnist_genders(data / "audioMNIST_meta.txt", sorted({speaker for speaker, *_ in found}))
    recordings = [Recording(speaker, gender[speaker], digit, take, path) for speaker, digit, take, path in found]
    recordings, skipped = _present(recordings, skip_unreadable)
    return Corpus(recordings, tuple(enroll_sessions), skipped=skipped)


def _audiomnist_genders(path: Path, speakers: Sequence[str]) -> dict[str, str]:
    facts = read_json(path)
    genders = {}
    for speaker in speakers:
        fact = facts.get(speaker)
        if not isinstance(fact, dict) or str(fact.get("gender")).lower() not in ("male", "female"):
            problem = "expected a speaker with a gender of male or female; get the file of the corpus again"
            raise FileError(path, problem, part=speaker)
        genders[speaker] = GENDERS[str(fact["gender"]).lower()]
    return genders


def read_manifest(path: PathLike, *, enroll_sessions: Sequence[str], skip_unreadable: bool = False) -> Corpus:
    r"""Read a list of recordings: a table with the columns speaker, gender, phrase, session and path.

    Parameters
    ----------
    path
        CSV or TSV with a header. Paths are relative to its directory. A column ``set`` (background, development,
        evaluation) is the split of the speakers.
    enroll_sessions
        Sessions for enrolment; the others are tests.
    skip_unreadable
        Leave out files that are absent or empty, and list them in `Corpus.skipped`; else they are an error.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.wav").write_bytes(b"RIFF")
    >>> _ = (folder / "list.csv").write_text("speaker,gender,phrase,session,path\nann,f,hello,1,a.wav\n")
    >>> read_manifest(folder / "list.csv", enroll_sessions=["1"]).recordings[0].name
    'ann-hello-1'
    """
    columns = read_metadata(path).columns
    needed = ("speaker", "gender", "phrase", "session", "path")
    absent = [name for name in needed if name not in columns]
    if absent:
        raise FileError(path, f"the column {absent[0]!r} is missing; the columns are {', '.join(needed)}", line=1)
    recordings, folder = [], Path(path).parent
    for row, values in enumerate(zip(*(columns[name] for name in needed), strict=True), start=2):
        speaker, gender, phrase, session, file = values
        if gender.lower() not in GENDERS:
            raise FileError(path, f"gender is {gender!r}, but must be m, f or empty", line=row)
        if not (speaker and phrase and session and file):
            raise FileError(path, "speaker, phrase, session or path is empty; fill it in", line=row)
        recordings.append(Recording(speaker, GENDERS[gender.lower()], phrase, session, folder / file))
    if not recordings:
        raise FileError(path, "it lists no recordings; give one per line")
    recordings, skipped = _present(recordings, skip_unreadable)
    split = _manifest_split(path, columns["speaker"], columns["set"]) if "set" in columns else None
    return Corpus(recordings, tuple(enroll_sessions), split, skipped)


def _manifest_split(path: PathLike, speakers: Sequence[str], roles: Sequence[str]) -> Split | None:
    _check_roles(roles, path)
    role_of: dict[str, str] = {}
    for row, (speaker, role) in enumerate(zip(speakers, roles, strict=True), start=2):
        if role_of.setdefault(speaker, role) != role:
            raise FileError(path, f"speaker {speaker!r} is in two sets; keep all recordings in one", line=row)
    return _split_by_role(role_of)


def read_corpus(
    name: str, root: PathLike, *, enroll_sessions: Sequence[str] | None = None, skip_unreadable: bool = False
) -> Corpus:
    """Read a corpus by name: ``"audiomnist"``, ``"rsr2015"``, or ``"manifest"`` (then ``root`` is the list).

    Examples
    --------
    >>> read_corpus("timit", ".")
    Traceback (most recent call last):
    ...
    evenscore.errors.InputError: there is no reader for corpus 'timit'; give audiomnist, rsr2015 or manifest
    """
    readers = {"audiomnist": read_audiomnist, "rsr2015": read_rsr2015, "manifest": read_manifest}
    if name not in readers:
        raise InputError(f"there is no reader for corpus {name!r}; give audiomnist, rsr2015 or manifest")
    if name == "manifest" and enroll_sessions is None:
        raise InputError("a manifest does not say which sessions enrol; give enroll_sessions")
    chosen = {} if enroll_sessions is None else {"enroll_sessions": enroll_sessions}
    return readers[name](root, skip_unreadable=skip_unreadable, **chosen)


def _audio_files(root: PathLike) -> list[Path]:
    folder = Path(root)
    if not folder.is_dir():
        raise FileError(root, "there is no such directory; check the name")
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in AUDIO and path.is_file())


def _present(recordings: list[Recording], skip: bool) -> tuple[list[Recording], tuple[str, ...]]:
    """Return the recordings whose file is there and not empty, and the reasons to skip the others."""
    kept, skipped = [], []
    for recording in recordings:
        path = recording.path
        problem = "" if path.is_file() else "there is no such file"
        if not problem and path.stat().st_size == 0:
            problem = "the file is empty"
        if problem and not skip:
            raise FileError(path, f"{problem}; get it again, or skip unreadable files")
        if problem:
            skipped.append(f"{path}: {problem}")
        else:
            kept.append(recording)
    return kept, tuple(skipped)
