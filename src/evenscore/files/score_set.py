"""The scores of an experiment: development and evaluation, one set of blocks for each phrase."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenscore.errors import FileError, InputError
from evenscore.files.read_write import read_scores, read_speakers, write
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix

__all__ = ["ScoreSet", "load_audiomnist_scores", "load_score_set", "save_score_set"]

_NAMES, _GENDERS = "blocks.map", "spk2gender"
_SPEAKERS = {"enroll": "enrolments.utt2spk", "test": "tests.utt2spk"}
_BLOCKS = ("development", "trials", "enroll", "test")
_UNKNOWN = "unknown"
_AUDIOMNIST = Path(__file__).resolve().parent.parent / "data" / "audiomnist_gmm"


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """Scores of the same phrases for development and evaluation speakers, phrase by phrase.

    Attributes
    ----------
    development
        For each phrase the matrix of the development speakers, which is its own cohort.
    evaluation
        For each phrase the trials of the evaluation speakers, with the development enrolments and tests as cohorts.
    gender
        Of every speaker: ``"m"``, ``"f"`` or ''.

    Both sequences have the same phrases in the same order; a part's ``name`` is the phrase, or ``phrase/gender`` if
    the recognizer is gender-dependent.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, Labels, ScoreMatrix
    >>> dev = LabelledBlocks.own_cohort(
    ...     ScoreMatrix([[2.0, 0.5]], ["ann-1"], ["ann-1-4", "bob-1-4"]),
    ...     Labels.from_speakers(["ann"], ["ann", "bob"], enroll_ids=["ann-1"], test_ids=["ann-1-4", "bob-1-4"]),
    ...     name="1",
    ... )
    >>> ScoreSet([dev], [dev], {"ann": "f", "bob": "m"})
    ScoreSet(1 phrases, 2 development and 2 evaluation trials, 2 speakers)
    """

    development: tuple[LabelledBlocks, ...]
    evaluation: tuple[LabelledBlocks, ...]
    gender: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "development", tuple(self.development))
        object.__setattr__(self, "evaluation", tuple(self.evaluation))
        if [part.name for part in self.development] != [part.name for part in self.evaluation]:
            raise InputError("development and evaluation must have the same phrases in the same order")

    @classmethod
    def from_matrices(
        cls,
        phrases: Iterable[tuple[str, Mapping[str, ScoreMatrix]]],
        speakers: Mapping[str, Mapping[str, str]],
        gender: Mapping[str, str],
    ) -> ScoreSet:
        """Make a score set of plain matrices.

        Parameters
        ----------
        phrases
            For each phrase its name and four matrices: ``"development"``, ``"trials"`` (evaluation enrolments and
            tests), ``"enroll"`` (evaluation enrolments against development tests) and ``"test"`` (development
            enrolments against evaluation tests).
        speakers
            Of all ids: ``"enroll"`` maps enrolments to speakers, ``"test"`` tests.
        gender
            Of every speaker: ``"m"``, ``"f"`` or ''.
        """
        development, evaluation = [], []
        for name, matrices in phrases:
            known = {
                block: scores.with_speakers(speakers["enroll"], speakers["test"]) for block, scores in matrices.items()
            }
            cohort, trials = known["development"], known["trials"]
            blocks = ScoreBlocks(trials, enroll=known["enroll"], test=known["test"], cohort=cohort)
            development.append(LabelledBlocks.own_cohort(cohort, name=name))
            evaluation.append(LabelledBlocks(blocks, Labels.of_axes(trials.enroll_axis, trials.test_axis), name))
        return cls(tuple(development), tuple(evaluation), gender)

    def __repr__(self) -> str:
        sides = self.development, self.evaluation
        trials = [sum(part.labels.matrix.size for part in side if part.labels) for side in sides]
        counts = f"{trials[0]} development and {trials[1]} evaluation trials"
        return f"ScoreSet({len(self.development)} phrases, {counts}, {len(self.gender)} speakers)"


def save_score_set(scores: ScoreSet, directory: str | os.PathLike[str]) -> None:
    """Write a score set: a score matrix (npz) for each block of each phrase, and maps of speakers and genders.

    ===============================  =====================================================================
    ``000-development.npz``          development enrolments against development tests, of the first phrase
    ``000-trials.npz``               evaluation enrolments against evaluation tests
    ``000-enroll.npz``               evaluation enrolments against development tests
    ``000-test.npz``                 development enrolments against evaluation tests
    ``blocks.map``                   lines of a number, such as 000, and the name of the phrase
    ``enrolments.utt2spk``, ``tests.utt2spk``, ``spk2gender``
    ===============================  =====================================================================
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, str] = {}
    speakers: dict[str, dict[str, str]] = {"enroll": {}, "test": {}}
    for place, (development, evaluation) in enumerate(zip(scores.development, scores.evaluation, strict=True)):
        number = f"{place:03d}"
        names[number] = development.name
        matrices = {
            "development": development.blocks.trials,
            "trials": evaluation.blocks.trials,
            "enroll": evaluation.blocks.enroll,
            "test": evaluation.blocks.test,
        }
        for block, matrix in matrices.items():
            if not isinstance(matrix, ScoreMatrix):
                raise InputError(f"block `{block}` of {development.name!r} is no matrix; only matrices are saved")
            write(matrix, folder / f"{number}-{block}.npz")
        for part in (development, evaluation):
            _add_speakers(speakers, part)
    write(names, folder / _NAMES, format="utt2spk")
    for side, file in _SPEAKERS.items():
        write(speakers[side], folder / file, format="utt2spk")
    known = {speaker: gender or _UNKNOWN for speaker, gender in sorted(scores.gender.items())}
    write(known, folder / _GENDERS, format="utt2spk")


def _add_speakers(speakers: dict[str, dict[str, str]], part: LabelledBlocks) -> None:
    labels = part.labels
    if labels is None or labels.enroll_speakers is None or labels.test_speakers is None:
        raise InputError(f"the speakers of {part.name!r} are not known; only score sets by speaker are saved")
    trials = part.blocks.trials
    speakers["enroll"] |= dict(zip(trials.enroll_ids, labels.enroll_speakers, strict=True))
    speakers["test"] |= dict(zip(trials.test_ids, labels.test_speakers, strict=True))


def load_score_set(directory: str | os.PathLike[str]) -> ScoreSet:
    """Read a score set that `save_score_set` wrote."""
    folder = Path(directory)
    if not folder.is_dir():
        raise FileError(directory, "there is no such directory; check the name")
    names = read_speakers(folder / _NAMES, format="utt2spk")
    speakers = {side: read_speakers(folder / file, format="utt2spk") for side, file in _SPEAKERS.items()}
    gender = read_speakers(folder / _GENDERS, format="utt2spk")
    phrases = [
        (name, {block: _matrix(folder / f"{number}-{block}.npz") for block in _BLOCKS})
        for number, name in names.items()
    ]
    known = {speaker: "" if found == _UNKNOWN else found for speaker, found in gender.items()}
    return ScoreSet.from_matrices(phrases, speakers, known)


def _matrix(path: Path) -> ScoreMatrix:
    table = read_scores(path)
    if not isinstance(table, ScoreMatrix):
        raise FileError(path, "expected a score matrix, but it is a list of trials; save the score set again")
    return table


def load_audiomnist_scores() -> ScoreSet:
    """Return the scores of a GMM-UBM recognizer on AudioMNIST, with the cohort scores of the paper's experiment.

    20 development and 20 other evaluation speakers (16 men and 4 women each) say ten digits; a digit is a phrase. Each
    speaker enrols a digit with three takes and has nine test takes of it. ``evenscore/data/audiomnist_gmm/README.md``
    tells where the scores come from, and their licence.

    Examples
    --------
    >>> from evenscore import load_audiomnist_scores
    >>> scores = load_audiomnist_scores()
    >>> scores
    ScoreSet(10 phrases, 36000 development and 36000 evaluation trials, 40 speakers)
    >>> scores.evaluation[7].name, scores.evaluation[7].blocks.trials.shape
    ('7', (20, 180))
    """
    return load_score_set(_AUDIOMNIST)
