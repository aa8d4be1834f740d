"""Which scores there are, and of which class: components of exceptions, and classes of exchangeable members.

One label fills most of a matrix: non-target, or, in a list of trials, missing. That is the *background*. All other
pairs are *exceptions*; they connect rows and columns into *components*. Rows of a component with the same labels are a
*class*: they are exchangeable, and so are columns. Where each row of a class has an exceptional pair with one column of
its own (an utterance that is not scored against itself), the classes of these rows and columns are *matched*.

    complete matrix, targets = same speaker     a component per speaker: 1 row class, 1 column class
    the same, nothing scored against itself     the same, matched
    some pairs missing, or of other labels      a few classes in a component
    a list of trials                            one or few members in a class; components as the trials connect them
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels

__all__ = ["LABEL_FACTOR", "MISSING", "PairLabels", "Pattern", "connected", "find_pattern", "group_pairs", "refine"]

MISSING = UNKNOWN  #: label of a pair without a score, or whose score is not used

Array = npt.NDArray[Any]  #: numbers; NumPy's types of sums by class are those of integers
Shape = tuple[int, int]
Index = npt.NDArray[np.integer]
LABEL_FACTOR = np.array([11400714819323198485, 1, 14029467366897019727], np.uint64)  # of labels 0, 1, -1 in a hash


@dataclass(frozen=True, eq=False)
class PairLabels:
    """Labels of K x L pairs: target where ``rows[i] == cols[j] >= 0``, else the background; but those of (i, j)."""

    rows: Index  #: speaker codes; -1: a speaker of no column
    cols: Index
    i: Index  #: pairs with a label of their own, each once
    j: Index
    label: Index  #: their labels: 0, 1, or -1 for missing
    background: int = NONTARGET

    @classmethod
    def from_labels(cls, labels: Labels) -> PairLabels:
        """Return the same labels in sparse form; unknown ones are missing."""
        if labels.key is not None:
            return cls.from_key(labels.key)
        rows, cols, _ = labels.speaker_codes
        unknown = rows.min(initial=0) < 0 or cols.min(initial=0) < 0
        i, j = np.nonzero((rows < 0)[:, None] | (cols < 0)) if unknown else (rows[:0], cols[:0])
        return cls(rows, cols, i, j, np.full(len(i), MISSING, np.int8))

    @classmethod
    def from_key(cls, key: Index) -> PairLabels:
        """Return the labels of a matrix of 0, 1, and -1 for a pair that is not used; speakers are those it implies."""
        shape = key.shape[0], key.shape[1]
        if 3 * np.count_nonzero(key == NONTARGET) <= 2 * key.size:
            i, j = np.nonzero(key != MISSING)
            return cls.from_exceptions(shape, i, j, key[i, j], MISSING)
        i, j = np.nonzero(key == TARGET)
        rows, cols = connected(i, j, shape)
        i, j = np.nonzero(key != (rows[:, None] == cols))
        if 2 * len(i) > np.count_nonzero(key != NONTARGET):  # targets do not make blocks
            i, j = np.nonzero(key != NONTARGET)
            return cls.from_exceptions(shape, i, j, key[i, j])
        return cls(rows, cols, i, j, key[i, j].astype(np.int8))

    @classmethod
    def from_exceptions(cls, shape: Shape, i: Index, j: Index, label: Index, background: int = NONTARGET) -> PairLabels:
        """Return labels that are the background but for those of some pairs."""
        if background == MISSING and 2 * len(i) >= shape[0] * shape[1] > 0:  # a list that is nearly a matrix
            key = np.full(shape, MISSING, np.int8)
            key[i, j] = label
            if 3 * np.count_nonzero(key == NONTARGET) > 2 * key.size:
                return cls.from_key(key)
        return cls(np.full(shape[0], -1), np.full(shape[1], -1), i, j, label.astype(np.int8), background)

    @property
    def shape(self) -> Shape:
        """Number of rows and columns."""
        return len(self.rows), len(self.cols)

    @property
    def T(self) -> PairLabels:  # noqa: N802
        """The labels of the transposed matrix."""
        return PairLabels(self.cols, self.rows, self.j, self.i, self.label, self.background)

    def by_speaker(self, i: Index, j: Index) -> Index:
        """Return the labels that pairs would have without labels of their own."""
        return np.where((self.rows[i] == self.cols[j]) & (self.rows[i] >= 0), TARGET, self.background)

    def take(self, rows: slice, cols: slice) -> PairLabels:
        """Return the labels of a block."""
        i, j = self.i - rows.start, self.j - cols.start
        at = (i >= 0) & (self.i < rows.stop) & (j >= 0) & (self.j < cols.stop)
        return PairLabels(self.rows[rows], self.cols[cols], i[at], j[at], self.label[at], self.background)

    def without(self, i: Index, j: Index) -> PairLabels:
        """Return the labels with these pairs missing."""
        keep = ~np.isin(self.i * len(self.cols) + self.j, i * len(self.cols) + j) if len(self.i) else slice(None)
        label = np.concatenate([self.label[keep], np.full(len(i), MISSING, np.int8)])
        return replace(self, i=np.concatenate([self.i[keep], i]), j=np.concatenate([self.j[keep], j]), label=label)

    def row_counts(self) -> Array:
        """Return how many scores of each class every row has."""
        size = np.bincount(self.cols[self.cols >= 0], minlength=self.rows.max(initial=0) + 1)
        target = np.where(self.rows >= 0, size[self.rows], 0)
        n = np.stack([(len(self.cols) - target) * (self.background == NONTARGET), target], 1).astype(float)
        before = self.by_speaker(self.i, self.j)
        for h in (NONTARGET, TARGET):
            n[:, h] += np.bincount(self.i, 1.0 * (self.label == h) - (before == h), len(self.rows))
        return n


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern:
    """Classes of exchangeable rows and columns, and how they are connected."""

    row_class: Index  #: class of each row
    col_class: Index
    row_size: Index  #: members of each class
    col_size: Index
    row_n: Array  #: scores of each label that a member of a class has
    col_n: Array
    row_component: Index  #: component of each class
    col_component: Index
    a: Index  #: row class and column class of exceptions, and their label
    b: Index
    label: Index
    match: Index  #: matched column class of each row class, or -1
    own: Index  #: label of the matched pairs
    partner: Index  #: matched column of each row, or -1
    background: int


def find_pattern(labels: PairLabels) -> Pattern:
    """Find classes and components.

    Every row gets a hash of its exceptions, so that rows of one class are those with equal hashes. A pair that is the
    only one of its row and of its column is not hashed but matches two classes; its row's hash then depends on the
    hash of its column, and vice versa.
    """
    (K, L), i, j, label = labels.shape, labels.i, labels.j, labels.label
    single = (np.bincount(i, minlength=K)[i] == 1) & (np.bincount(j, minlength=L)[j] == 1)
    single_i, single_j, single_label = i[single], j[single], label[single]
    i, j, label = i[~single], j[~single], label[~single]
    row_hash, col_hash = _hashes(labels, i, j, label), _hashes(labels.T, j, i, label)
    row_token, col_token = _mix(row_hash)[single_i], _mix(col_hash)[single_j]
    row_hash[single_i] += col_token * LABEL_FACTOR[single_label]
    col_hash[single_j] += row_token * LABEL_FACTOR[single_label]
    _, row_first, row_class, row_size = np.unique(row_hash, True, True, True)
    _, col_first, col_class, col_size = np.unique(col_hash, True, True, True)
    match, own, partner = np.full(len(row_first), -1), np.zeros(len(row_first), np.int8), np.full(K, -1)
    match[row_class[single_i]], own[row_class[single_i]] = col_class[single_j], single_label
    partner[single_i] = single_j
    # Speakers first: where a pair has a label of its own, too, that label is the later one, which counts.
    speaker_a, speaker_b = group_pairs(labels.rows[row_first], labels.cols[col_first])
    a, b = np.concatenate([speaker_a, row_class[i]]), np.concatenate([speaker_b, col_class[j]])
    label = np.concatenate([np.full(len(speaker_a), TARGET, np.int8), label])
    matched, sizes = np.flatnonzero(match >= 0), (len(row_first), len(col_first))
    row_component, col_component = connected(np.append(a, matched), np.append(b, match[matched]), sizes)
    row_n, col_n = labels.row_counts()[row_first], labels.T.row_counts()[col_first]
    return Pattern(
        row_class=row_class,
        col_class=col_class,
        row_size=row_size,
        col_size=col_size,
        row_n=row_n,
        col_n=col_n,
        row_component=row_component,
        col_component=col_component,
        a=a,
        b=b,
        label=label,
        match=match,
        own=own,
        partner=partner,
        background=labels.background,
    )


def _hashes(labels: PairLabels, i: Index, j: Index, label: Index) -> npt.NDArray[np.uint64]:
    """Return a number for each row that tells which columns are exceptions to it, and of which label."""
    token = np.random.default_rng(len(labels.rows)).integers(1 << 62, size=len(labels.cols), dtype=np.uint64)
    n_speakers = max(labels.rows.max(initial=-1), labels.cols.max(initial=-1)) + 1
    of_speaker = np.zeros(n_speakers + 1, np.uint64)  # the last is for the code -1, of no speaker
    np.add.at(of_speaker, labels.cols, token)
    of_speaker[-1] = 0
    found: npt.NDArray[np.uint64] = of_speaker[labels.rows]
    before, now = labels.by_speaker(i, j) == TARGET, label != labels.background
    np.subtract.at(found, i[before], token[j[before]])
    np.add.at(found, i[now], token[j[now]] * LABEL_FACTOR[label[now]])
    return found


def _mix(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes of hashes: sums of these do not cancel where sums of the hashes themselves do."""
    return ((hashes * LABEL_FACTOR[2]) ^ (hashes >> np.uint64(29))) * LABEL_FACTOR[2] + LABEL_FACTOR[2]


def connected(i: Index, j: Index, shape: Shape) -> tuple[Index, Index]:
    """Return the component of each row and of each column in a graph whose edges are pairs (i, j)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if np.bincount(i).max(initial=0) < 2 and np.bincount(j).max(initial=0) < 2:  # each component is a pair, or alone
        cols = np.zeros(shape[1], np.intp)
        cols[j] = i + 1
        return np.arange(shape[0]), np.where(cols, cols - 1, shape[0] - 1 + np.cumsum(cols == 0))
    graph = csr_array((np.ones(len(i), np.int8), (i, j + shape[0])), (sum(shape), sum(shape)))
    component = connected_components(graph, directed=False)[1].astype(np.intp)
    return component[: shape[0]], component[shape[0] :]


def group_pairs(rows: Index, cols: Index) -> tuple[Index, Index]:
    """Return all pairs (i, j) with ``rows[i] == cols[j] >= 0``.

    Examples
    --------
    >>> group_pairs(np.array([7, -1, 3]), np.array([3, 3, 7, -1]))
    (array([0, 2, 2]), array([2, 0, 1]))
    """
    order = np.argsort(cols, kind="stable")
    start = np.searchsorted(cols[order], rows, "left")
    count = np.where(rows >= 0, np.searchsorted(cols[order], rows, "right") - start, 0)
    i = np.repeat(np.arange(len(rows)), count)
    within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    return i, order[start[i] + within]


def refine(pattern: Pattern, row_codes: Index, col_codes: Index) -> Pattern:
    """Split classes whose members have different codes (0, 1, 2), or matched partners with different codes.

    The counts of scores stay those of the whole classes; components stay whole.
    """
    if not row_codes.any() and not col_codes.any():
        return pattern
    # A part of a class: the class, the code of the member, and the code of its matched partner.
    row_key, col_key = 9 * pattern.row_class + 3 * row_codes, 9 * pattern.col_class + 3 * col_codes
    i = np.flatnonzero(pattern.partner >= 0)
    j = pattern.partner[i]
    row_key[i] += col_codes[j]
    col_key[j] += row_codes[i]
    row_parts, row_class, row_size = np.unique(row_key, return_inverse=True, return_counts=True)
    col_parts, col_class, col_size = np.unique(col_key, return_inverse=True, return_counts=True)
    row_parent, col_parent = row_parts // 9, col_parts // 9
    match = np.full(len(row_parts), -1)
    match[row_class[i]] = col_class[j]
    # Every exception between two classes is one between all their parts.
    part_a, row_part = group_pairs(pattern.a, row_parent)
    at, col_part = group_pairs(pattern.b[part_a], col_parent)
    return replace(
        pattern,
        row_class=row_class,
        col_class=col_class,
        row_size=row_size,
        col_size=col_size,
        row_n=pattern.row_n[row_parent],
        col_n=pattern.col_n[col_parent],
        row_component=pattern.row_component[row_parent],
        col_component=pattern.col_component[col_parent],
        a=row_part[at],
        b=col_part,
        label=pattern.label[part_a[at]],
        match=match,
        own=pattern.own[row_parent],
    )
