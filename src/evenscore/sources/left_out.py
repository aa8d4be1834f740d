"""Scores of vectors that are centred without their own speakers: train as you evaluate.

The centre of evaluation trials is a mean over other speakers. Training trials that are centred on their own set see a
mean that contains them: their row of scores adds up to about zero with its targets in it, which no new speaker's does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.sources.chunks import float64_chunks
from evenscore.sources.computed import ComputedScores, Places
from evenscore.tables import Embeddings
from evenscore.tables.arrays import frozen, hashed
from evenscore.tables.axis import Axis
from evenscore.tables.tile import spans
from evenscore.threads import product

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LeftOutCenter", "LeftOutScores", "Measure"]

Array = np.ndarray
Measure = Literal["cosine", "dot"]
NOBODY = -1  #: the speaker of who is not in the background: the last one, who has no vectors

_NUMBERS = 1 << 19  # scores that are worked on at a time
_VANISHED = 1e-13  # of the squares that a squared length is the difference of: no direction is left


@dataclass(frozen=True, eq=False, init=False)
class LeftOutCenter:
    """Score by the cosine, or the dot product, of vectors that are centred without the two speakers of the trial.

    m_ab = (n m - s_a - s_b) / (n - n_a - n_b)                                                    (L1)
    s_ij = (x_i - m_ab) . (y_j - m_ab), for the cosine over the product of their lengths          (L2)

    where the background has n vectors of mean m, of which n_a, of sum s_a, are by speaker a of enrolment i, and
    likewise b of test j; if a is b, the speaker is left out once. Who is not in the background loses nothing, so the
    scores of new speakers are those of `Cosine` with the background's mean.

    Parameters
    ----------
    background
        The embeddings whose mean is the centre, with their speakers. A vector whose speaker is not known is left out
        of its own trials only: where an enrolment or test has its id.
    measure
        ``"cosine"`` or ``"dot"``.

    Examples
    --------
    >>> speakers = ["ann", "ann", "bob", "cat"]
    >>> training = Embeddings(["a1", "a2", "b", "c"], [[1.0, 0.0], [0.8, 0.2], [0.0, 1.0], [-1.0, -1.0]], speakers)
    >>> LeftOutCenter(training).score(training, training).block(slice(0, 2), slice(1, 3)).round(3)
    array([[0.988, 0.8  ],
           [1.   , 0.868]])
    """

    measure: Measure
    mean: Float[Array, " d"]
    _places: dict[str, int]  # of speakers
    _places_of_ids: dict[str, int]
    _sums: Float[Array, "g d"]
    _counts: Int[Array, " g"]

    def __init__(self, background: Embeddings, measure: Measure = "cosine") -> None:
        if measure not in get_args(Measure):
            raise InputError(f"measure is {measure!r}, but must be {' or '.join(map(repr, get_args(Measure)))}")
        if not len(background):
            raise InputError("there are no embeddings to centre on; give some")
        places: dict[str, int] = {}
        speakers = [None] * len(background) if background.speakers is None else background.speakers.tolist()
        count = len({name for name in speakers if name is not None})
        codes = np.empty(len(background), dtype=np.intp)
        for at, name in enumerate(speakers):
            if name is None:
                codes[at], count = count, count + 1
            else:
                codes[at] = places.setdefault(name, len(places))
        mean = background.vectors.mean(axis=0, dtype=np.float64)
        sums = np.zeros((count + 1, background.dim))
        for part, vectors in float64_chunks(background.vectors):
            np.add.at(sums, codes[part], vectors - mean)
        for field, value in {
            "measure": measure,
            "mean": frozen(mean),
            "_places": places,
            "_places_of_ids": dict(zip(background.ids.tolist(), codes.tolist(), strict=True)),
            "_sums": frozen(sums),
            "_counts": frozen(np.bincount(codes, minlength=count + 1)),
        }.items():
            object.__setattr__(self, field, value)

    def score(self, enroll: Embeddings, test: Embeddings) -> LeftOutScores:
        """Return the scores of every enrolment against every test, without forming them."""
        for side in (enroll, test):
            if side.dim != len(self.mean):
                raise InputError(f"the centre has {len(self.mean)} components, but the embeddings have {side.dim}")
        left = _less(enroll, self.mean)
        scores = LeftOutScores(
            left=left,
            right=left if test is enroll else _less(test, self.mean),
            left_places=self._places_on(enroll),
            right_places=self._places_on(test),
            sums=self._sums,
            counts=self._counts,
            cosine=self.measure == "cosine",
            enroll_axis=enroll.axis,
            test_axis=test.axis,
        )
        scores.refuse_empty_centers()
        return scores

    def concerns(self, embeddings: Embeddings) -> bool:
        """Tell whether somebody of these is in the background, so that leaving out changes scores."""
        return bool((self._places_on(embeddings) != NOBODY).any())

    def _places_on(self, axis: Axis) -> npt.NDArray[np.intp]:
        """Return the place of each row's speaker among those of the background, NOBODY if it is not there."""
        names = [None] * len(axis) if axis.speakers is None else axis.speakers.tolist()
        by_id = self._places_of_ids
        found = (
            self._places[name] if name in self._places else by_id.get(key, NOBODY)
            for name, key in zip(names, axis.ids.tolist(), strict=True)
        )
        return np.fromiter(found, np.intp, len(axis))


def _less(embeddings: Embeddings, mean: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    return frozen(embeddings.vectors - mean.astype(embeddings.vectors.dtype))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LeftOutScores(ComputedScores):
    """Scores of `LeftOutCenter`, from a few small tables: no loop over pairs, and no matrix until somebody asks.

    With all vectors less the mean m, and s_a the sums of those, m_ab = -w (s_a + s_b) where w = 1 / (n - n_a - n_b), so

    (x - m_ab) . (y - m_ab) = x.y + w (x.(s_a + s_b) + y.(s_a + s_b)) + w^2 |s_a + s_b|^2         (L3)

    and both lengths likewise. Dot products of rows with sums, and of sums with sums, are all that it takes.
    """

    left: Float[Array, "k d"]  #: vectors of the enrolments, less the mean
    right: Float[Array, "l d"]
    left_places: Int[Array, " k"]  #: of each enrolment's speaker in the sums, NOBODY if it is not there
    right_places: Int[Array, " l"]
    sums: Float[Array, "g d"]  #: of each speaker's vectors in the background, less the mean; the last is nobody's
    counts: Int[Array, " g"]
    cosine: bool
    enroll_axis: Axis
    test_axis: Axis

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests, given by slices or positions."""
        row, column = (np.arange(size)[at] for size, at in zip(self.shape, (rows, columns), strict=True))
        out = np.empty((len(row), len(column)), dtype=self.dtype)
        y, b = self.right[column].astype(np.float64), self.right_places[column]
        others, other = np.unique(b, return_inverse=True)
        for part in spans(len(row), max(_NUMBERS // max(len(column), 1), 1)):
            x, a = self.left[row[part]].astype(np.float64), self.left_places[row[part]]
            speakers, speaker = np.unique(a, return_inverse=True)
            S, T = self.sums[speakers], self.sums[others]
            products = _Products(
                same=a[:, None] == b,
                xy=product(x, y.T),
                xx=_dots(x, x)[:, None],
                yy=_dots(y, y),
                xa=_dots(x, self.sums[a])[:, None],
                xb=product(x, T.T)[:, other],
                ya=product(S, y.T)[speaker],
                yb=_dots(y, self.sums[b]),
                aa=_dots(S, S)[speaker][:, None],
                ab=product(S, T.T)[np.ix_(speaker, other)],
                bb=_dots(T, T)[other],
            )
            out[part] = self._scores(products, self.counts[a][:, None], self.counts[b], row[part], column)
        return out

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs of an enrolment and a test, given by positions."""
        out = np.empty(len(rows), dtype=self.dtype)
        for part in spans(len(rows), max(_NUMBERS // max(self.left.shape[1], 1), 1)):
            row, column = rows[part], columns[part]
            x, y = self.left[row].astype(np.float64), self.right[column].astype(np.float64)
            a, b = self.left_places[row], self.right_places[column]
            s, t = self.sums[a], self.sums[b]
            products = _Products(
                same=a == b,
                xy=_dots(x, y),
                xx=_dots(x, x),
                yy=_dots(y, y),
                xa=_dots(x, s),
                xb=_dots(x, t),
                ya=_dots(y, s),
                yb=_dots(y, t),
                aa=_dots(s, s),
                ab=_dots(s, t),
                bb=_dots(t, t),
            )
            out[part] = self._scores(products, self.counts[a], self.counts[b], row, column)
        return out

    def _scores(self, p: _Products, n_a: Any, n_b: Any, rows: Any, columns: Any) -> npt.NDArray[np.float64]:
        """Return the scores (L3) of pairs, all at once."""
        others = ~p.same  # a target's speaker is left out once
        w = 1 / (self.counts.sum() - n_a - others * n_b)
        x_sum, y_sum = p.xa + others * p.xb, p.ya + others * p.yb
        center = w * w * (p.aa + others * (2 * p.ab + p.bb))
        scores = p.xy + w * (x_sum + y_sum) + center
        if not self.cosine:
            return scores
        for own, shift in ((p.xx, x_sum), (p.yy, y_sum)):
            squares = own + 2 * w * shift + center
            gone = squares <= _VANISHED * (own + center)
            if gone.any():
                self._refuse(gone, "enrolment" if own is p.xx else "test", rows, columns)
            scores = scores / np.sqrt(squares)
        return np.clip(scores, -1.0, 1.0)

    def _refuse(self, gone: npt.NDArray[np.bool_], side: str, rows: Any, columns: Any) -> NoReturn:
        """Refuse a vector that is the centre of one of its trials; a source knows numbers, not ids."""
        at = np.unravel_index(int(np.argmax(gone)), gone.shape)
        row, column = int(rows[at[0]]), int(columns[at[-1]])
        raise InputError(
            f"the {side} of the trial in row {row}, column {column} is the mean of the speakers that are left for it, "
            "so it has no direction; drop it"
        )

    def refuse_empty_centers(self) -> None:
        """Refuse trials whose two speakers are all that the background has."""
        if np.count_nonzero(self.counts) > 2:
            return
        for a in np.unique(self.left_places):
            for b in np.unique(self.right_places):
                if self.counts[a] + (a != b) * self.counts[b] == self.counts.sum():
                    raise InputError(
                        f"the embeddings to centre on are by {np.count_nonzero(self.counts)} speakers, so nobody is "
                        "left for a trial between them; centre on 3 or more, or leave out nobody"
                    )

    def take(self, rows: Any = None, columns: Any = None) -> LeftOutScores:
        """Return the scores of some enrolments and tests, at these positions; None takes all."""
        row, column = (slice(None) if at is None else at for at in (rows, columns))
        return LeftOutScores(
            left=self.left[row],
            right=self.right[column],
            left_places=self.left_places[row],
            right_places=self.right_places[column],
            sums=self.sums,
            counts=self.counts,
            cosine=self.cosine,
            enroll_axis=self.enroll_axis.take(row),
            test_axis=self.test_axis.take(column),
        )

    def numbers_identity(self) -> str:
        """Return a hash of vectors, places and sums."""
        places = self.left_places, self.right_places
        return hashed(self.left, self.right, *places, self.sums, self.counts, self.cosine)

    def __repr__(self) -> str:
        return f"LeftOutScores({self.shape[0]} enrolments x {self.shape[1]} tests, {self.dtype})"


@dataclass(frozen=True, eq=False)
class _Products:
    """Dot products of pairs: of enrolments x, tests y, and the sums a and b of their speakers."""

    same: npt.NDArray[np.bool_]
    xy: npt.NDArray[np.float64]
    xx: npt.NDArray[np.float64]
    yy: npt.NDArray[np.float64]
    xa: npt.NDArray[np.float64]
    xb: npt.NDArray[np.float64]
    ya: npt.NDArray[np.float64]
    yb: npt.NDArray[np.float64]
    aa: npt.NDArray[np.float64]
    ab: npt.NDArray[np.float64]
    bb: npt.NDArray[np.float64]


def _dots(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the dot product of each row with its counterpart."""
    return np.asarray(np.einsum("nd,nd->n", left, right))
