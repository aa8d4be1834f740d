"""What `evenscore fit` trains on: labelled scores, or embeddings whose scores are never formed; and cohort evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from evenscore.cli.inputs import open_scores
from evenscore.cli.labelled import LabelledScores, LabelSources, labelled_scores, refuse_mismatch, with_map
from evenscore.cli.phrases import of_phrase, phrase_names, phrases_of
from evenscore.cli.scorers import trained_note, training_scorer_of
from evenscore.errors import InputError
from evenscore.files import read_embeddings
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.progress import Progress, silent
from evenscore.tables import NONTARGET, TARGET, Labels, ScoreTable, TrialList
from evenscore.tables.ids import shown
from evenscore.tables.labelled_blocks import apart_by_phrase

if TYPE_CHECKING:
    from evenscore.cli.options import ScaleChoices
    from evenscore.evidence import CohortEvidence
    from evenscore.model import ScoreModel
    from evenscore.sources import Scorer
    from evenscore.tables import Axis, Embeddings, LabelledBlocks

__all__ = [
    "MeasuredBeyond",
    "OwnLlrs",
    "beyond_vertex",
    "by_phrase",
    "checked_centers",
    "fit_evidence_model",
    "from_embeddings",
    "from_scores",
    "labels_by_targets",
    "own_llrs",
    "read_labelled",
    "with_densities",
]

_Item: TypeAlias = ScoreTable | tuple[ScoreTable, Labels]  # a list that has labels, or a matrix and its labels
TrainingScores: TypeAlias = list[_Item]

LIMIT = 1e9  # bytes of training scores; they are copied several times
WHOLE = 2_000_000  # training trials whose features are all computed
SAMPLE = 150_000  # of more trials: how many of each class are used
EACH_SIDE = 3000  # embeddings of a side, of whose scores residuals are taken
LOOKED_AT = 5_000  # trials of each class that are scored once more, as new ones would be
_TRUSTED = 1.1  # times the Cllr after calibration: so much may be lost without it


def from_scores(
    paths: Sequence[str], labels: LabelSources, scale: ScaleChoices | None = None, client: Any = None
) -> TrainingScores:
    """Read labelled scores, one matrix or list per file and phrase; with ``scale``, some stay where they are."""
    if labels.keys and labels.by_speaker:
        raise InputError("labels come from a key or from speaker maps; leave out one of the two")
    files = read_labelled(paths, labels, scale, client)
    return [part for file in files for part in by_phrase(file.to_train_on(), labels.phrase_from)]


def checked_centers(data: TrainingScores, *, correct: bool) -> tuple[TrainingScores, list[str]]:
    """Return the training scores, corrected if asked for, and what is to be said of such as are self-centred."""
    from evenscore.cli.self_centering import mended, note_on, refuse_several
    from evenscore.scoring import find_self_centering

    if correct:
        refuse_several(data)
    table = data[0][0] if isinstance(data[0], tuple) else data[0]
    if len(data) > 1 or not table.is_in_memory or table.shape[0] * table.shape[1] > WHOLE:
        if correct:
            raise InputError(f"--self-centered correct is for at most {WHOLE} scores in memory; leave it out")
        return data, []
    matrix, labels = _by_speaker(data[0])
    return ([(mended(matrix, labels), labels)], []) if correct else (data, note_on(find_self_centering(matrix, labels)))


def read_labelled(
    paths: Sequence[str], labels: LabelSources, scale: ScaleChoices | None = None, client: Any = None
) -> list[LabelledScores]:
    """Read scores, and their labels, which must match: one key for all, or one for each."""
    tables = [open_scores(path, scale) for path in paths]
    files = labelled_scores(paths, tables, labels, maps_first=True)
    for sharing in [files] if len(labels.keys) == 1 else [[file] for file in files]:
        refuse_mismatch(sharing, client=client)
    return files


def by_phrase(item: _Item, phrase_from: str | None) -> TrainingScores:
    """Return one part per phrase of the tests; a list that is not in memory stays one, with enrolments for each."""
    if phrase_from is None:
        return [item]
    table, labels = item if isinstance(item, tuple) else (item, None)
    phrases = phrases_of(table.test_ids, phrase_from)
    if labels is None and not table.is_in_memory:
        return [apart_by_phrase(table, phrases)]
    names = np.array([phrases[test] for test in table.test_ids], dtype=object)
    parts: TrainingScores = []
    for phrase in dict.fromkeys(names.tolist()):
        here = names == phrase
        if labels is None and not table.listed:
            parts.append(table.take(None, np.flatnonzero(here)))
        elif labels is None:
            parts.append(table.select(here[table.test_index]))  # type: ignore[attr-defined]
        else:
            columns = np.flatnonzero(here)
            parts.append((table.take(None, columns), labels.take(np.arange(table.shape[0]), columns)))
    return parts


def from_embeddings(
    enroll: str, test: str, scorer: str, labels: LabelSources, *, keep_self_pairs: bool = False
) -> tuple[TrainingScores, list[str]]:
    """Read embeddings; every enrolment is scored against every test of its phrase, or the trials of a key are.

    Where they are centred on their own speakers, each pair is centred without its two (`training_scorer_of`).
    ``keep_self_pairs`` tells whether what is trained takes the score of an utterance against itself for a target.
    """
    sides = read_embeddings(enroll), read_embeddings(test)
    if labels.keys:
        if labels.by_speaker:
            raise InputError("labels come from a key or from speaker maps; leave out one of the two")
        keys = labels.read_keys()
        chosen = training_scorer_of(scorer, *(_spoken(side, keys) for side in sides))
        source = chosen.score(*(_spoken(side, keys) for side in sides))
        scored = [source.score_trials(key) for key in keys]
        return [part for item in scored for part in by_phrase(item, labels.phrase_from)], trained_note(scorer)
    if labels.by_speaker:
        maps = labels.read_speaker_maps()
        sides = with_map(sides[0], maps[0], "enrolment"), with_map(sides[1], maps[1], "test")
    for path, side in zip((enroll, test), sides, strict=True):
        if side.speakers is None:
            raise InputError(f"the embeddings of {path} have no speakers; give --enroll-speakers, or --key")
    both = sorted(set(sides[0].ids) & set(sides[1].ids))
    notes = trained_note(scorer)
    if both:
        use = "scored against themselves, as targets" if keep_self_pairs else "not scored against themselves"
        notes.append(f"{len(both)} ids stand on both sides and were {use}: {shown(both)}")
    where, chosen = labels.phrase_from, training_scorer_of(scorer, *sides)
    parts = [
        (of_phrase(sides[0], phrase, where, "enrolment", may_lack=True), of_phrase(sides[1], phrase, where, "test"))
        for phrase in phrase_names(sides[1], where)
    ]
    return [_scored(chosen, *part) for part in parts], notes


def _spoken(side: Embeddings, keys: Sequence[TrialList]) -> Embeddings:
    """Return embeddings with speakers; if they have none, ids that target trials connect are of one speaker."""
    if side.speakers is not None:
        return side
    known = speakers_by_targets(keys)
    return side.with_speakers([known.get(name) for name in side.ids])


def _scored(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> _Item:
    assert enroll.speakers is not None and test.speakers is not None  # noqa: S101, PT018
    labels = Labels.from_speakers(enroll.speakers, test.speakers, enroll_ids=enroll.ids, test_ids=test.ids)
    return scorer.score(enroll, test), labels


def fit_evidence_model(data: TrainingScores, progress: Progress, dim: int = 2) -> CohortEvidence:
    """Train cohort evidence on labelled matrices, each its own cohort: a trial's own speakers are left out of it."""
    from evenscore.evidence import fit_evidence, sampled_own_cohort
    from evenscore.model.fit import fit_score_model
    from evenscore.tables import LabelledBlocks

    tables = [item[0] if isinstance(item, tuple) else item for item in data]
    shapes = [(len(table.enroll_ids), len(table.test_ids)) for table in tables]
    sizes = [8 if table.listed else table.dtype.itemsize for table in tables]
    total = sum(rows * columns * size for (rows, columns), size in zip(shapes, sizes, strict=True))
    if total > LIMIT:
        raise InputError(
            f"the training scores ({', '.join(f'{rows} x {columns}' for rows, columns in shapes[:3])}) take "
            f"{total / 1e9:.1f} GB, but evidence is trained on at most {LIMIT / 1e9:.0f} GB of them, which are all in "
            "memory; train on fewer speakers, or on fewer utterances of each"
        )
    pairs = [_by_speaker(item) for item in data]
    if sum(matrix.scores.size for matrix, _ in pairs) <= WHOLE:
        return fit_evidence([LabelledBlocks.own_cohort(*pair) for pair in pairs], dim=dim, progress=progress)
    score_model = fit_score_model(pairs, dim, tol=1e-8, progress=progress).model
    sampled = [sampled_own_cohort(*pair, most=SAMPLE // len(pairs)) for pair in pairs]
    return fit_evidence(sampled, score_model=score_model, progress=progress)


def _by_speaker(item: _Item) -> tuple[Any, Labels]:
    """Return a matrix in memory with labels by speaker; an utterance has no score against itself."""
    from evenscore.sources.blocks import cohort_matrix
    from evenscore.sources.computed import ComputedScores

    if isinstance(item, tuple):
        table, labels = item
        matrix = cohort_matrix(table) if isinstance(table, ComputedScores) else table.in_memory()
    else:
        listed = item.in_memory()
        matrix, labels = listed.to_matrix(), Labels.from_trials(listed)
    return matrix, labels if labels.by_speaker else labels_by_targets(matrix, labels)


def labels_by_targets(matrix: Any, labels: Labels) -> Labels:
    """Return labels by speaker: ids that target trials connect are of one speaker."""
    rows, columns = np.nonzero(labels.matrix == TARGET)
    if matrix.is_in_memory:
        scored = ~np.isnan(matrix.scores[rows, columns])
        rows, columns = rows[scored], columns[scored]
    targets = TrialList(matrix.enroll_axis, matrix.test_axis, rows, columns, labels=np.ones(len(rows), dtype=np.int8))
    speaker = speakers_by_targets([targets])
    sides = [[speaker[name] for name in ids] for ids in (matrix.enroll_ids, matrix.test_ids)]
    return Labels.from_speakers(*sides, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)


@dataclass(frozen=True)
class MeasuredBeyond:
    """Shares of the training trials beyond the vertex of their LLR, and how they were scored."""

    nontarget: float
    target: float
    with_cohort: bool  #: whether the other training speakers were each trial's cohort


def beyond_vertex(model: ScoreModel, data: TrainingScores) -> MeasuredBeyond | None:
    """Score some training trials as new ones would be; None where scores are not in memory, or too many for that.

    A cohort needs complete matrices whose targets are the trials of one speaker; else there is none.
    """
    from evenscore.model import share_beyond_vertex

    tables = [item[0] if isinstance(item, tuple) else item for item in data]
    if not all(table.is_in_memory for table in tables) or sum(table.size for table in tables) > WHOLE:
        return None
    found = [_own_cohort(item) for item in data] if model.dim else [None]
    cohorts = [part for part in found if part is not None and not part.blocks.trials.n_missing]
    with_cohort = len(cohorts) == len(data)
    parts = _some_of_each(cohorts) if with_cohort else [_without_cohort(item) for item in data]
    nontarget, target = share_beyond_vertex(model, parts).tolist()
    return MeasuredBeyond(nontarget, target, with_cohort)


@dataclass(frozen=True)
class OwnLlrs:
    """Cllr of the model's own LLRs of training trials, which are scored as new ones would be."""

    cllr: float
    calibrated_cllr: float  #: after logistic calibration on other speakers
    with_cohort: bool  #: whether the other training speakers were each trial's cohort

    @property
    def sentences(self) -> list[str]:
        """What is to be said about it; a note of what to do begins with an exclamation mark."""
        how = ", each with the other speakers as its cohort" if self.with_cohort else ""
        told = [
            f"Cllr of training trials{how}: {self.cllr:.3f} by the model's own LLRs, "
            f"{self.calibrated_cllr:.3f} after logistic calibration on other speakers"
        ]
        if self.cllr > _TRUSTED * self.calibrated_cllr:
            told.append("! its LLRs are not calibrated by themselves: calibrate them ('evenscore calibrate')")
        return told


def own_llrs(model: ScoreModel, data: TrainingScores) -> OwnLlrs | None:
    """Tell how far the model's own LLRs are from calibrated ones; None where that cannot be measured."""
    from evenscore.calibrate import cross_calibrate
    from evenscore.metrics import cllr
    from evenscore.norms import normalize

    parts = _left_out(data)
    if not all(part.is_in_memory for part in parts):
        return None
    some = _some_of_each(parts)
    lists = [part.labelled(normalize(part.blocks, "lgsm", model=model)) for part in some]
    known = speakers_by_targets(lists)
    sides = [
        np.concatenate([_speakers_of(axis(one), index(one), known) for one in lists])
        for axis, index in (
            (attrgetter("enroll_axis"), attrgetter("enroll_index")),
            (attrgetter("test_axis"), attrgetter("test_index")),
        )
    ]
    llrs, labels = (np.concatenate([getattr(one, name) for one in lists]) for name in ("scores", "labels"))
    try:
        found = cross_calibrate(llrs, labels, enroll_speakers=sides[0], test_speakers=sides[1], options={"l2": 1e-5})
    except InputError:  # too few speakers
        return None
    with_cohort = bool(model.dim) and all(part.blocks.cohort is not None for part in parts)
    return OwnLlrs(float(cllr(llrs, labels)), float(cllr(found.llr, labels)), with_cohort)


def _speakers_of(axis: Axis, index: Any, known: Mapping[str, str]) -> Any:
    """Return who speaks in each trial: as the axis knows, else as target trials tell."""
    names = [known[name] for name in axis.ids] if axis.speakers is None else axis.speakers
    return np.asarray(names, dtype=object)[index]


def with_densities(
    model: ScoreModel, data: TrainingScores, client: Any = None, progress: Progress = silent
) -> ScoreModel:
    """Return the model with densities of residuals, fitted to training trials as new ones would be scored.

    Of more than two million scores in memory, and of embeddings of more than some thousand utterances, a part is taken;
    tables that are not in memory are read whole.
    """
    from evenscore.norms import fit_residuals

    parts = _left_out(data)
    if all(part.is_in_memory for part in parts) and sum(part.blocks.trials.size for part in parts) > WHOLE:
        parts = _some_of_each(parts, SAMPLE)
    return fit_residuals(model, parts, client=client, progress=progress)


def _left_out(data: TrainingScores) -> list[LabelledBlocks]:
    """Return the training trials, each with the other speakers as its cohort; without one where they are not known."""
    found = [_own_cohort(_some_speakers(item)) for item in data]
    cohorts = [part for part in found if part is not None]
    return cohorts if len(cohorts) == len(data) else [_without_cohort(item) for item in data]


def _some_speakers(item: _Item) -> _Item:
    """Return the scores of embeddings as a matrix, of some speakers if there are many; all else as it is."""
    from evenscore.sources.blocks import cohort_matrix
    from evenscore.sources.computed import ComputedScores

    if not isinstance(item, tuple) or not isinstance(item[0], ComputedScores):
        return item
    table: Any = item[0]
    labels = item[1]
    rows, columns, number = labels.speaker_codes
    order = np.random.default_rng(0).permutation(number)
    most = max(8, int(number * min(1.0, EACH_SIDE / max(*table.shape, 1))))
    sides = [np.flatnonzero(np.isin(codes, order[:most])) for codes in (rows, columns)]
    return cohort_matrix(table.take(*sides)), labels.take(*sides)


def _own_cohort(item: _Item) -> LabelledBlocks | None:
    """Return a matrix as trials and their cohort; None for a list, or if its targets are no speakers' own."""
    from evenscore.tables import LabelledBlocks

    if not isinstance(item, tuple):
        return None
    matrix, labels = item
    if not labels.by_speaker and not matrix.is_in_memory:
        return None
    by_speaker = labels if labels.by_speaker else labels_by_targets(matrix, labels)
    if by_speaker is not labels and not np.array_equal(by_speaker.matrix, labels.matrix):
        return None
    return LabelledBlocks.own_cohort(matrix, by_speaker)


def _without_cohort(item: _Item) -> LabelledBlocks:
    from evenscore.tables import LabelledBlocks, ScoreBlocks

    table, labels = item if isinstance(item, tuple) else (item, None)
    return LabelledBlocks(ScoreBlocks(table), labels)


def _some_of_each(parts: Sequence[LabelledBlocks], most: int = LOOKED_AT) -> list[LabelledBlocks]:
    """Draw trials of each class from all parts alike; they keep their cohorts."""
    from evenscore.tables import LabelledBlocks

    lists, rng = [part.trials for part in parts], np.random.default_rng(0)
    total = [sum(np.count_nonzero(trials.labels == label) for trials in lists) for label in (NONTARGET, TARGET)]
    drawn = []
    for part, trials in zip(parts, lists, strict=True):
        kept = np.zeros(len(trials), dtype=bool)
        for label in (NONTARGET, TARGET):
            places = np.flatnonzero(trials.labels == label)
            number = math.ceil(len(places) * min(1.0, most / max(total[label], 1)))
            kept[rng.choice(places, number, replace=False)] = True
        drawn.append(LabelledBlocks(part.blocks.replace(trials=trials.select(kept))))
    return drawn
