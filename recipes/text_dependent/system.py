"""The recognizer on a corpus: train on some sets, score development and evaluation, phrase by phrase."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from evenscore import InputError, ScoreMatrix
from evenscore.files import ScoreSet
from evenscore.progress import silent
from recipes.text_dependent.degradations import Degradation, with_background
from recipes.text_dependent.extraction import Extracted, extract_features, process_pool
from recipes.text_dependent.recognizer import (
    Frames,
    Recognizer,
    RecognizerOptions,
    enrolled,
    linear_scores,
    probe_vectors,
    train_recognizer,
)
from recipes.text_dependent.recordings import Corpus, Progress, Recording, Split

__all__ = ["TextDependentSystem", "run_recognizer"]


@dataclass(frozen=True, eq=False)
class _Side:
    """Vectors of enrolments or of tests of one phrase, in order of their ids."""

    ids: tuple[str, ...]
    speakers: tuple[str, ...]
    vectors: npt.NDArray[np.float32]

    def of(self, speakers: Sequence[str]) -> _Side:
        wanted = set(speakers)
        rows = [row for row, speaker in enumerate(self.speakers) if speaker in wanted]
        return _Side(
            tuple(self.ids[row] for row in rows), tuple(self.speakers[row] for row in rows), self.vectors[rows]
        )


_Sides = dict[tuple[str, str], _Side]  # by side ("enroll" or "test") and phrase


class TextDependentSystem:
    """A corpus and a recognizer, which train and score for any roles of the speakers and for spoilt recordings.

    What can be used again is kept: features of clean recordings, the recognizer of each set of training speakers, and
    the vectors of all clean enrolments and tests under the last recognizer. So loop over roles outside and over
    degradations inside, and over roles with the same background after each other, as `role_permutations` has them.

    Parameters
    ----------
    corpus
        The recordings.
    options
        All settings.
    cache
        Directory for features, None for none.
    jobs
        Processes for features.
    skip_unreadable
        Leave out recordings that cannot be read or that hold no speech; `skipped` lists them, and `skipped_degraded`
        those in which a degradation left no speech.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    A script runs all six role permutations, each clean and through the telephone band::

        corpus = read_audiomnist("AudioMNIST")
        system = TextDependentSystem(corpus, cache="features", jobs=2)
        for split in role_permutations(split_speakers(corpus)):
            clean = system.score(split)
            telephone = system.score(split, degradation=TelephoneBand())
    """

    def __init__(
        self,
        corpus: Corpus,
        options: RecognizerOptions | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        jobs: int = 1,
        skip_unreadable: bool = False,
        progress: Progress = silent,
    ) -> None:
        self.corpus = corpus
        self.options = options or RecognizerOptions()
        self.skipped: dict[Recording, str] = {}
        self.skipped_degraded: dict[tuple[str, Recording], str] = {}
        self._cache, self._skip, self._progress = cache, skip_unreadable, progress
        self._pool: Executor | None = None
        if jobs > 1:  # kept, as many degradations mean many short turns
            self._pool = process_pool(jobs)
            weakref.finalize(self, self._pool.shutdown)
        self._clean: Frames = {}
        self._recognizers: dict[tuple[str, ...], Recognizer] = {}
        self._kept: dict[str | None, tuple[object, _Sides]] = {}

    def score(
        self, split: Split, *, degradation: Degradation | None = None, degrade_enrolments: bool = False
    ) -> ScoreSet:
        """Train on the speakers of ``options.train_sets`` (if that was not done), and score development and evaluation.

        Parameters
        ----------
        split
            The roles of the speakers.
        degradation
            Spoils the evaluation tests; everything else stays clean.
        degrade_enrolments
            Spoil the evaluation enrolments, too.
        """
        self._check(split)
        phrases: list[tuple[str, dict[str, ScoreMatrix]]] = []
        speakers: dict[str, dict[str, str]] = {"enroll": {}, "test": {}}
        for gender in self._genders(split):
            roles = self._roles(split, gender)
            clean = self._clean_sides(gender, roles)
            evaluated = clean
            if degradation is not None:
                evaluated = self._spoilt_sides(roles, degradation, degrade_enrolments)
                if not degrade_enrolments:
                    evaluated |= {key: side for key, side in clean.items() if key[0] == "enroll"}
            for phrase in self.corpus.phrases:
                name = phrase if gender is None else f"{phrase}/{gender}"
                found = _phrase_scores(clean, evaluated, phrase, roles)
                if found is None:
                    raise InputError(f"phrase {name!r} has no enrolments or tests of one set; leave it out")
                phrases.append((name, found[0]))
                for side, known in found[1].items():
                    speakers[side] |= known
        used = {*split.development, *split.evaluation}
        genders = {speaker: gender for speaker, gender in self.corpus.gender.items() if speaker in used}
        return ScoreSet.from_matrices(phrases, speakers, genders)

    def recognizer(self, speakers: Sequence[str]) -> Recognizer:
        """Return the recognizer that is trained on these speakers."""
        key = tuple(sorted(speakers))
        if key not in self._recognizers:
            frames = self.frames(self.corpus.of(key))
            self._recognizers[key] = train_recognizer(frames, self.options, progress=self._progress)
        return self._recognizers[key]

    def _check(self, split: Split) -> None:
        known = set(self.corpus.speakers)
        unknown = sorted({*split.background, *split.development, *split.evaluation} - known)
        if unknown:
            raise InputError(f"speaker {unknown[0]!r} of the split has no recording in the corpus")

    def _genders(self, split: Split) -> list[str | None]:
        if not self.options.gender_dependent:
            return [None]
        gender = self.corpus.gender
        return sorted({gender[speaker] for speaker in (*split.development, *split.evaluation)})  # type: ignore[return-value]

    def _roles(self, split: Split, gender: str | None) -> Split:
        """Return the speakers of one gender in their roles, or all if genders do not matter."""
        if gender is None:
            return split
        of = self.corpus.gender
        sets = {
            role: tuple(name for name in speakers if of[name] == gender) for role, speakers in asdict(split).items()
        }
        for role, speakers in sets.items():
            if not speakers:
                raise InputError(f"there are no {role} speakers of gender {gender!r}; train one recognizer for all")
        return Split(**sets)

    def _trained(self, roles: Split) -> Recognizer:
        return self.recognizer([name for role in self.options.train_sets for name in getattr(roles, role)])

    def _clean_sides(self, gender: str | None, roles: Split) -> _Sides:
        """Return the vectors of development and evaluation; those of the last recognizer (of a gender) are kept."""
        recognizer = self._trained(roles)
        scored = tuple(sorted((*roles.development, *roles.evaluation)))
        key = (id(recognizer), scored)
        if gender not in self._kept or self._kept[gender][0] != key:
            self._kept.pop(gender, None)  # before the new ones take their memory
            self._kept[gender] = key, self._sides(recognizer, self.frames(self.corpus.of(scored)))
        return self._kept[gender][1]

    def _spoilt_sides(self, roles: Split, degradation: Degradation, with_enrolments: bool) -> _Sides:
        degradation = with_background(degradation, self.corpus.of(roles.background))
        recordings = [
            recording
            for recording in self.corpus.of(roles.evaluation)
            if with_enrolments or not self.corpus.is_enrolment(recording)
        ]
        return self._sides(self._trained(roles), self._extract(recordings, degradation).frames)

    def frames(self, recordings: Sequence[Recording]) -> Frames:
        """Return the features of clean recordings, and keep them."""
        absent = [one for one in recordings if one not in self._clean and one not in self.skipped]
        if absent:
            self._clean |= self._extract(absent, None).frames
        return {recording: self._clean[recording] for recording in recordings if recording in self._clean}

    def _extract(self, recordings: Sequence[Recording], degradation: Degradation | None) -> Extracted:
        extracted = extract_features(
            recordings,
            self.options.features,
            degradation=degradation,
            cache=self._cache,
            pool=self._pool,
            skip_unreadable=self._skip,
            progress=self._progress,
        )
        if degradation is None:
            self.skipped |= extracted.skipped
        else:
            name = degradation.name
            self.skipped_degraded |= {(name, recording): why for recording, why in extracted.skipped.items()}
        return extracted

    def _sides(self, recognizer: Recognizer, frames: Frames) -> _Sides:
        """Return the vectors of the enrolments and tests among recordings, phrase by phrase."""
        sides: _Sides = {}
        phrases = self.corpus.phrases
        for place, phrase in enumerate(phrases):
            ordered = sorted(recording for recording in frames if recording.phrase == phrase)
            enrolments = [recording for recording in ordered if self.corpus.is_enrolment(recording)]
            tests = [recording for recording in ordered if not self.corpus.is_enrolment(recording)]
            if enrolments:
                sides["enroll", phrase] = _enrolments(recognizer, frames, enrolments)
            if tests:
                statistics = recognizer.statistics([frames[recording] for recording in tests])
                sides["test", phrase] = _Side(
                    tuple(recording.name for recording in tests),
                    tuple(recording.speaker for recording in tests),
                    probe_vectors(recognizer, statistics),
                )
            self._progress("statistics", (place + 1) / len(phrases))
        return sides


def _enrolments(recognizer: Recognizer, frames: Frames, recordings: Sequence[Recording]) -> _Side:
    speaker_of = {recording.model: recording.speaker for recording in recordings}
    ids = tuple(speaker_of)
    number = {model: place for place, model in enumerate(ids)}
    models = np.array([number[recording.model] for recording in recordings])
    statistics = recognizer.statistics([frames[recording] for recording in recordings])
    return _Side(ids, tuple(speaker_of.values()), enrolled(recognizer, statistics, models, len(ids)))


def _phrase_scores(
    clean: _Sides, evaluated: _Sides, phrase: str, roles: Split
) -> tuple[dict[str, ScoreMatrix], dict[str, dict[str, str]]] | None:
    """Return the four blocks of a phrase and the speakers of their ids; None if a side is empty."""
    sides = ("enroll", "test")
    if any((side, phrase) not in found for side in sides for found in (clean, evaluated)):
        return None
    dev = {side: clean[side, phrase].of(roles.development) for side in sides}
    ev = {side: evaluated[side, phrase].of(roles.evaluation) for side in sides}
    if not all(part.ids for part in (*dev.values(), *ev.values())):
        return None
    speakers = {
        side: dict(zip(dev[side].ids + ev[side].ids, dev[side].speakers + ev[side].speakers, strict=True))
        for side in sides
    }
    pairs = {
        "development": (dev["enroll"], dev["test"]),
        "trials": (ev["enroll"], ev["test"]),
        "enroll": (ev["enroll"], dev["test"]),
        "test": (dev["enroll"], ev["test"]),
    }
    matrices = {
        block: ScoreMatrix(linear_scores(enroll.vectors, test.vectors), enroll.ids, test.ids)
        for block, (enroll, test) in pairs.items()
    }
    return matrices, speakers


def run_recognizer(
    corpus: Corpus,
    split: Split | None = None,
    options: RecognizerOptions | None = None,
    *,
    degradation: Degradation | None = None,
    degrade_enrolments: bool = False,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    skip_unreadable: bool = False,
    progress: Progress = silent,
) -> ScoreSet:
    """Train a recognizer and score development and evaluation speakers: `TextDependentSystem` in one call.

    Parameters
    ----------
    corpus
        The recordings.
    split
        The roles of the speakers; by default the corpus' own.
    options
        All settings.
    degradation, degrade_enrolments
        Spoil the evaluation tests, and the enrolments, too.
    cache, jobs, skip_unreadable, progress
        See `TextDependentSystem`.
    """
    split = split or corpus.split
    if split is None:
        raise InputError("the corpus has no sets of its own; make some with split_speakers")
    system = TextDependentSystem(
        corpus, options, cache=cache, jobs=jobs, skip_unreadable=skip_unreadable, progress=progress
    )
    return system.score(split, degradation=degradation, degrade_enrolments=degrade_enrolments)
