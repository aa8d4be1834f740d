"""Every classical norm straight from its definition: one trial at a time, its cohort put together by hand.

A trial's cohort is what is left without the trial's own speakers and, of a condition, the test cohort's members of the
enrolment's value and the enrolment cohort's members of the test's value. On it runs the plain norm.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from evenscore import ScoreBlocks, ScoreMatrix

MAD_TO_STD = 1.0 / statistics.NormalDist().inv_cdf(0.75)


def location_scale(
    values: Sequence[float], *, statistic="mean", trim=0.1, ddof=0, std_floor=0.0, zero_std="error", **_unused
):
    """Location and scale of a few numbers; None if there are none."""
    values = sorted(values, reverse=True)
    if not values:
        return None
    if statistic == "trimmed":
        cut = int(trim * len(values))
        values = values[cut : len(values) - cut]
    if statistic == "median":
        center = statistics.median(values)
        scale = MAD_TO_STD * statistics.median(abs(v - center) for v in values)
    else:
        center = math.fsum(values) / len(values)
        squares = math.fsum((v - center) ** 2 for v in values)
        scale = math.sqrt(squares / (len(values) - ddof)) if len(values) > ddof else 0.0
    scale = max(scale, std_floor)
    return center, 1.0 if zero_std == "one" and scale < 1e-14 else scale


def ranked(scores: dict, k: int, drop: int) -> list:
    """The members with the highest scores; equals in the order of the cohort."""
    return sorted(scores, key=lambda member: -scores[member])[drop : drop + k]


def nearness(scores: dict, cohort: dict, members: Sequence) -> dict:
    """Minus the mean distance of each member's scores in the cohort from these, over those that both have."""
    found = {}
    for member in members:
        apart = [abs(score - cohort[member, other]) for other, score in scores.items() if (member, other) in cohort]
        if apart:
            found[member] = -math.fsum(apart) / len(apart)
    return found


def by_speaker(scores: dict, speakers: dict, members: dict) -> dict:
    """The mean score with the recordings of each member's speaker."""
    found = {}
    for member, speaker in members.items():
        values = [score for other, score in scores.items() if speaker is not None and speakers[other] == speaker]
        if values:
            found[member] = math.fsum(values) / len(values)
    return found


def naive_normalize(
    blocks: ScoreBlocks,
    method: str,
    *,
    top_k: int | None = None,
    drop_top: int = 0,
    select: str = "own",
    combine: str = "mean",
    condition: str | None = None,
    empty: str = "missing",
    **how,
) -> dict:
    """Normalized score of each trial by its two ids; None where there are no cohort scores."""
    top_k = 10**9 if top_k is None else top_k
    trials = blocks.trials.to_trials() if isinstance(blocks.trials, ScoreMatrix) else blocks.trials
    enroll, test = facts(blocks.trials.enroll, condition), facts(blocks.trials.test, condition)
    rows, columns = facts(blocks.cohort_enroll, condition), facts(blocks.cohort_test, condition)
    tables = [
        pairs(block, labels)
        for block, labels in (
            (blocks.enroll, blocks.enroll_labels),
            (blocks.test, blocks.test_labels),
            (blocks.cohort, blocks.cohort_labels),
        )
    ]
    if blocks.cohort is not None:  # labelled scores of others count for score models only
        rows = {name: fact for name, fact in rows.items() if name in set(blocks.cohort.enroll_ids)}
        columns = {name: fact for name, fact in columns.items() if name in set(blocks.cohort.test_ids)}
    result = {}
    for at in range(len(trials)):
        (e, t), s = trials.pair(at), float(trials.scores[at])
        own = {enroll[e][0], test[t][0]} - {None}
        kept_rows = {c: spk for c, (spk, value) in rows.items() if spk not in own and test[t][1] in (None, "", value)}
        kept_columns = {
            d: spk for d, (spk, value) in columns.items() if spk not in own and enroll[e][1] in (None, "", value)
        }
        row = {d: tables[0][e, d] for d in kept_columns if (e, d) in tables[0]}
        column = {c: tables[1][c, t] for c in kept_rows if (c, t) in tables[1]}
        cohort = {(c, d): tables[2][c, d] for c in kept_rows for d in kept_columns if (c, d) in tables[2]}
        if method in ("zt", "tz"):
            found = chain(s, row, column, cohort, method == "zt", drop_top, how)
        else:
            for_row, for_column = row, column
            if select == "profile":
                for_row = nearness(column, {(d, c): score for (c, d), score in cohort.items()}, kept_columns)
                for_column = nearness(row, cohort, kept_rows)
            elif select == "cross" and set(rows) == set(columns):
                for_row = {d: column[d] for d in kept_columns if d in column}
                for_column = {c: row[c] for c in kept_rows if c in row}
            elif select == "cross":
                for_row = by_speaker(column, kept_rows, kept_columns)
                for_column = by_speaker(row, kept_columns, kept_rows)
            sides = []
            if method in ("z", "az", "s", "as"):
                members = ranked(for_row, top_k, drop_top)
                sides.append(location_scale([row[d] for d in members if d in row], **how))
            if method in ("t", "at", "s", "as"):
                members = ranked(for_column, top_k, drop_top)
                sides.append(location_scale([column[c] for c in members if c in column], **how))
            found = None if None in sides else sum((s - center) / scale for center, scale in sides)
            if len(sides) == 2 and found is not None:
                found /= 2 if combine == "mean" else math.sqrt(2)
        result[e, t] = s if found is None and empty == "raw" else found
    return result


def chain(s, row, column, cohort, z_first, drop_top, how):
    """ZT: normalize the score and each member's score by Z, then the first by the others; TZ with the sides swapped."""
    first, second = (row, column) if z_first else (column, row)

    def numbers(values):
        return location_scale(sorted(values, reverse=True)[drop_top:], **how)

    against = {member: [] for member in second}
    for (c, d), value in cohort.items():
        against.get(c if z_first else d, []).append(value)
    others = []
    for member, score in second.items():
        found = numbers(against[member])
        if found is not None:
            others.append((score - found[0]) / found[1])
    before, after = numbers(first.values()), numbers(others)
    if before is None or after is None:
        return None
    return ((s - before[0]) / before[1] - after[0]) / after[1]


def facts(side, condition):
    """Speaker and value of the condition of each id."""
    if side is None:
        return {}
    speakers = [None] * len(side) if side.speakers is None else side.speakers
    values = [None] * len(side) if condition is None else side.columns[condition]
    return dict(zip(side.ids, zip(speakers, values, strict=True), strict=True))


def pairs(block, labels):
    """Non-target scores by pair of ids."""
    if block is None:
        return {}
    key = None if labels is None else labels.matrix
    return {
        (c, d): float(block.scores[i, j])
        for i, c in enumerate(block.enroll_ids)
        for j, d in enumerate(block.test_ids)
        if not math.isnan(block.scores[i, j]) and (key is None or key[i, j] == 0)
    }
