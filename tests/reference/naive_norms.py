"""Every classical norm straight from its definition: one trial at a time, its cohort put together by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from evenscore import ScoreBlocks, ScoreMatrix

MAD_TO_STD = 1.0 / statistics.NormalDist().inv_cdf(0.75)


def location_scale(values: Sequence[float], *, statistic="mean", trim=0.1, ddof=0, std_floor=0.0, **_unused):
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
    return center, max(scale, std_floor)


def ranked(scores: dict, k: int, drop: int) -> list:
    """The members with the highest scores; equals in the order of the cohort."""
    order = sorted(scores, key=lambda member: -scores[member])
    return order[drop : drop + k]


def nearness(scores: dict, cohort: dict, members: Sequence) -> dict:
    """Minus the mean distance of each member's scores in the cohort from these, over those that both have."""
    found = {}
    for member in members:
        apart = [abs(score - cohort[member, other]) for other, score in scores.items() if (member, other) in cohort]
        if apart:
            found[member] = -math.fsum(apart) / len(apart)
    return found


def by_speaker(scores: dict, speakers: dict, asked: dict) -> dict:
    """The mean score with the recordings of each asked member's speaker."""
    found = {}
    for member, speaker in asked.items():
        values = [score for other, score in scores.items() if speakers[other] == speaker]
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
    enroll_condition=None,
    test_condition=None,
    cohort_condition=None,
    **how,
) -> dict:
    """Normalized score of each trial by its two ids; None where the cohort vanished."""
    top_k = 10**9 if top_k is None else top_k
    trials = blocks.trials.to_trials() if isinstance(blocks.trials, ScoreMatrix) else blocks.trials
    spk = _Speakers(blocks)

    def kept(scores, speakers, own, condition=None):
        return {
            member: float(score)
            for member, score in scores.items()
            if not math.isnan(score)
            and (speakers.get(member) is None or speakers[member] not in own)
            and (condition is None or cohort_condition[member] == condition)
        }

    result = {}
    for at in range(len(trials)):
        e, t = trials.pair(at)
        s = float(trials.scores[at])
        own = {spk.enroll.get(e), spk.test.get(t)} - {None}
        e_condition = None if enroll_condition is None else enroll_condition[e]
        t_condition = None if test_condition is None else test_condition[t]
        row = {} if blocks.enroll is None else kept(_row(blocks.enroll, e), spk.cohort_test, own, e_condition)
        column = {} if blocks.test is None else kept(_column(blocks.test, t), spk.cohort_enroll, own, t_condition)
        if method in ("zt", "tz"):
            cohort = _impostors(blocks, own, spk)
            result[e, t] = _chain(s, row, column, cohort, method == "zt", drop_top, how)
            continue
        if select == "own":
            e_members, t_members = ranked(row, top_k, drop_top), ranked(column, top_k, drop_top)
        else:
            whole_row = kept(_row(blocks.enroll, e), spk.cohort_test, own)
            whole_column = kept(_column(blocks.test, t), spk.cohort_enroll, own)
            if select == "profile":
                impostors = _impostors(blocks, own, spk)
                for_row = nearness(whole_column, {(d, c): s for (c, d), s in impostors.items()}, blocks.cohort_test_ids)
                for_column = nearness(whole_row, impostors, blocks.cohort_enroll_ids)
                for_row = kept(for_row, spk.cohort_test, own)
                for_column = kept(for_column, spk.cohort_enroll, own)
            elif set(blocks.cohort_enroll_ids) == set(blocks.cohort_test_ids):
                for_row, for_column = whole_column, whole_row
            else:
                for_row = by_speaker(whole_column, spk.cohort_enroll, spk.cohort_test)
                for_column = by_speaker(whole_row, spk.cohort_test, spk.cohort_enroll)
            e_members = [m for m in ranked(for_row, top_k, drop_top) if m in row]
            t_members = [m for m in ranked(for_column, top_k, drop_top) if m in column]
        sides = []
        if method in ("z", "az", "s", "as"):
            sides.append(location_scale([row[m] for m in e_members], **how))
        if method in ("t", "at", "s", "as"):
            sides.append(location_scale([column[m] for m in t_members], **how))
        if None in sides:
            result[e, t] = None
            continue
        total = sum((s - center) / scale for center, scale in sides)
        if len(sides) == 2:
            total /= 2 if combine == "mean" else math.sqrt(2)
        result[e, t] = total
    return result


def _chain(s, row, column, cohort, z_first, drop_top, how):
    """ZT: normalize the score and each member's score by Z, then the first by the others; TZ with the sides swapped."""
    first, second = (row, column) if z_first else (column, row)
    before = location_scale(ranked_values(first, drop_top), **how)
    against = {member: [] for member in second}
    for (c, d), value in cohort.items():
        against.get(c if z_first else d, []).append(value)
    others = []
    for member, score in second.items():
        found = location_scale(sorted(against[member], reverse=True)[drop_top:], **how)
        if found is not None:
            others.append((score - found[0]) / found[1])
    after = location_scale(sorted(others, reverse=True)[drop_top:], **how)
    if before is None or after is None:
        return None
    return ((s - before[0]) / before[1] - after[0]) / after[1]


def ranked_values(scores: dict, drop: int) -> list:
    return [scores[m] for m in ranked(scores, 10**9, drop)]


def _impostors(blocks, own, spk):
    cohort, labels = blocks.cohort.scores.tolist(), blocks.cohort_labels.matrix.tolist()
    return {
        (c, d): score
        for c, scores, row in zip(blocks.cohort.enroll_ids, cohort, labels, strict=True)
        if spk.cohort_enroll.get(c) not in own
        for d, score, label in zip(blocks.cohort.test_ids, scores, row, strict=True)
        if label == 0 and not math.isnan(score) and spk.cohort_test.get(d) not in own
    }


class _Speakers:
    def __init__(self, blocks):
        def named(ids, speakers):
            return {} if speakers is None else dict(zip(ids, speakers, strict=True))

        self.enroll = named(blocks.trials.enroll_ids, blocks.enroll_speakers)
        self.test = named(blocks.trials.test_ids, blocks.test_speakers)
        self.cohort_enroll = named(blocks.cohort_enroll_ids, blocks.cohort_enroll_speakers)
        self.cohort_test = named(blocks.cohort_test_ids, blocks.cohort_test_speakers)


def _row(block, e):
    at = list(block.enroll_ids).index(e)
    return dict(zip(block.test_ids, block.scores[at], strict=True))


def _column(block, t):
    at = list(block.test_ids).index(t)
    return dict(zip(block.enroll_ids, block.scores[:, at], strict=True))
