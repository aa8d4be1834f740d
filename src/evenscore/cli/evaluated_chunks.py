"""Labelled scores that are not in memory: what `evaluate` measures, and what `calibrate` trains on, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.chunked_data import open_scores
from evenscore.cli.embedded_scores import EmbeddedScores, Source
from evenscore.cli.labelled import speakers_for
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.training_data import LabelSources, SpeakerMap
from evenscore.cli.trial_columns import EMPTY, named_column, only_side, row_of_id
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.metrics.summary import BITS
from evenscore.progress import Progress, silent
from evenscore.scale import ChunkedScores, ChunkedTrials, as_chunked
from evenscore.scale.counting import ChunkCounts, count_chunks
from evenscore.scale.pair_values import ListedValues, OwnLabels, PairValues, SideGroups, SpeakerLabels, TableLabels
from evenscore.tables import Labels, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from evenscore.files.metadata import Metadata

__all__ = ["LabelledFile", "conditions_in_chunks", "labelled_files", "open_chunked"]

Conditions = tuple[tuple[str, ...], PairValues]  #: names of groups, and which group each pair belongs to


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledFile:
    """Scores of one file, which stay there, or of embeddings, and their labels."""

    path: str
    scores: ChunkedScores | ChunkedTrials
    labels: PairValues
    unmatched: Any = "error"
    key: TrialList | None = None  #: where the labels come from, if it is a key

    def count(
        self,
        groupings: Sequence[PairValues] = (),
        *,
        group_bits: int = BITS,
        client: Any = None,
        progress: Progress = silent,
        **options: Any,
    ) -> ChunkCounts:
        """Pass over the scores; ``options`` are those of `evenscore.metrics.summarize`."""
        how: dict[str, Any] = {
            "group_bits": group_bits,
            "unmatched": self.unmatched,
            "client": client,
            "progress": progress,
        }
        try:
            return count_chunks(self.scores, self.labels, groupings, options=options, **how)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None


def open_chunked(
    source: Source, choices: ScaleChoices, reading: Mapping[str, Any]
) -> tuple[ChunkedScores | ChunkedTrials, bool]:
    """Open scores to be read chunk by chunk, whatever their form, and tell whether they have labels."""
    table: ChunkedScores | ChunkedTrials | ScoreMatrix | TrialList
    if isinstance(source, EmbeddedScores):
        table = source.chunked(choices.tile_bytes)
    else:
        table = open_scores(source, choices, reading)
    if isinstance(table, ScoreMatrix):
        table = as_chunked(table).with_tiles(choices.tile_bytes)
    elif isinstance(table, TrialList):
        table = ChunkedTrials.of(table)
    if isinstance(table, ChunkedTrials):
        return table, len(table) > 0 and table.reader.read(slice(0, 1)).labels is not None
    return table, False


def labelled_files(
    paths: Sequence[Source], sources: LabelSources, choices: ScaleChoices, reading: Mapping[str, Any]
) -> list[LabelledFile]:
    """Open scores with labels: of the key if there is one, else their own, else by the speaker maps."""
    key, listed = None, None
    if sources.keys:
        [name] = sources.keys
        key = read_trials(name, format=sources.key_format, infinite="accept")
        if key.labels is None:
            raise InputError(f"the key {name} has no labels; give a list of trials with labels")
        listed = ListedValues.of_key(key)
    maps = sources.read_speaker_maps() if listed is None and sources.by_speaker else None
    files = []
    for path in paths:
        scores, has_labels = open_chunked(path, choices, reading)
        labels = listed if listed is not None else OwnLabels() if has_labels else _by_speaker(path, scores, maps)
        own = path.listed if isinstance(path, EmbeddedScores) and has_labels else key
        files.append(LabelledFile(path=str(path), scores=scores, labels=labels, unmatched=sources.unmatched, key=own))
    return files


def _by_speaker(
    path: Source, scores: ChunkedScores | ChunkedTrials, maps: tuple[SpeakerMap, SpeakerMap] | None
) -> PairValues:
    if maps is None:
        raise InputError(f"{path}: the scores have no labels; give a key, or --enroll-speakers")
    if isinstance(scores, ChunkedTrials):
        return SpeakerLabels(*maps)
    try:
        rows = speakers_for(scores.enroll_ids, *maps[0], "enrolment")
        columns = speakers_for(scores.test_ids, *maps[1], "test")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return TableLabels(Labels.from_speakers(rows, columns, enroll_ids=scores.enroll_ids, test_ids=scores.test_ids))


def conditions_in_chunks(scores: ChunkedScores | ChunkedTrials, metadata: Metadata, name: str) -> Conditions:
    """Return the conditions that a column of the metadata gives to pairs, and their names."""
    side, column = named_column(metadata, name)
    texts = [value or EMPTY for value in metadata.columns[column]]
    names = tuple(sorted(set(texts)))
    place = {text: number for number, text in enumerate(names)}
    codes = np.array([place[text] for text in texts], dtype=np.int64)
    if len(metadata.ids) == 2:
        enroll, test = (metadata.columns[one] for one in metadata.ids)
        try:
            return names, ListedValues.of(TrialList.from_pairs(enroll, test), codes.astype(np.int32))
        except InputError as error:
            raise InputError(f"{metadata.path}: {error}") from None
    rows = row_of_id(metadata)
    chosen = side or metadata.side or _side_of(scores, rows, metadata, column)
    ids = list(rows)
    if chosen == "enroll":
        return names, SideGroups(ids, codes, [], None)
    return names, SideGroups([], None, ids, codes)


def _side_of(scores: ChunkedScores | ChunkedTrials, rows: Mapping[str, int], metadata: Metadata, column: str) -> str:
    if isinstance(scores, ChunkedTrials):
        raise InputError(
            f"the ids of {metadata.path} can be those of enrolments or of tests; say enroll:{column} or test:{column}"
        )
    sides = {"enroll": scores.enroll_ids, "test": scores.test_ids}
    return only_side(
        {side: [name for name in ids if name not in rows] for side, ids in sides.items()}, metadata, column
    )
