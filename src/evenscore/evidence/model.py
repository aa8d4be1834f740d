"""The cohort-evidence model: a record of what was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenscore.errors import InputError
from evenscore.evidence.features import PATTERNS, Scales
from evenscore.evidence.head import EvidenceHead
from evenscore.evidence.own_pairs import Ridges
from evenscore.model.parameters import ScoreModel

__all__ = ["CohortEvidence", "TrainingReport"]

_NAMES = {"raw": "the raw score", "s": "S-norm", "as": "AS-norm", "z": "Z-norm", "t": "T-norm"}
_FEW_ERRORS = 5  # of a class


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingReport:
    """What speaker cross-validation on the training side chose, and what it measured.

    Attributes
    ----------
    n_target, n_nontarget, n_speakers, folds
        What it was trained on, and the folds of speakers.
    loss
        Cllr of training trials by heads that never met their speakers.
    without
        The same for each feature, when the head has to do without it.
    tried
        For every choice the candidates with their losses; those of ``views`` are multiples of the penalty.
    simple
        The same for simple methods, a norm or none (``"raw"``) followed by logistic calibration.
    instead
        The simple method that the model is, because what it would be else does no better.
    errors
        How many ``"target"`` and ``"nontarget"`` trials such heads put on the wrong side of 0.
    """

    n_target: int
    n_nontarget: int
    n_speakers: int
    folds: int
    loss: float
    without: Mapping[str, float] = field(default_factory=dict)
    tried: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    simple: Mapping[str, float] = field(default_factory=dict)
    instead: str | None = None
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def separable(self) -> bool:
        """Whether hardly any training trial is an error, so that they do not tell how far LLRs may go."""
        return any(number < _FEW_ERRORS for number in self.errors.values())

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        found = [f"{self.n_target} target and {self.n_nontarget} non-target trials of {self.n_speakers} speakers"]
        if not self.folds:
            return [
                *found,
                "too few speakers for cross-validation: nothing could be chosen, and how good it is is unknown",
            ]
        found.append(f"cross-validated Cllr {self.loss:.4f} ({self.folds} folds of speakers)")
        if self.separable:
            found.append(
                f"only {self.errors['target']} target and {self.errors['nontarget']} non-target trials are on the "
                "wrong side of 0 under cross-validation: they are nearly separable, and do not tell how far "
                "log-likelihood ratios may go, so that these are held to what is usual; more speakers would tell"
            )
        if self.instead is not None:
            found.append(
                f"with {self.n_speakers} training speakers the cohort-evidence model does no better than "
                f"{_NAMES[self.instead]} ({self.simple[self.instead]:.4f}) under cross-validation: it is "
                f"{_NAMES[self.instead]} followed by logistic calibration"
            )
            return found
        for name, loss in sorted(self.without.items(), key=lambda item: -item[1]):
            change = 100 * (loss / self.loss - 1) if self.loss > 0 else 0.0
            found.append(f"without {name}: {loss:.4f} ({change:+.1f} %)")
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class CohortEvidence:
    """Everything that a trial's four blocks of scores say, weighed into one log-likelihood ratio.

    Features of a trial (see `evidence_features`) are weighed by an `EvidenceHead`; there is one head for each pattern
    of blocks, so that a missing side or cohort only costs what it would have said.

    Attributes
    ----------
    score_model
        Gives the view ``score_model``.
    scales
        What the spread of cohort scores is shrunk to.
    ridges
        How the features of pairs are regularized.
    heads
        By pattern: ``"full"``, ``"pair"``, ``"enroll"``, ``"test"``, ``"none"``.
    report
        How it was trained.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, fit_evidence, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 12}" for n in range(36)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers[:12], speakers, seed=1))
    >>> evidence = fit_evidence([dev])
    >>> sorted(evidence.heads)
    ['enroll', 'full', 'none', 'pair', 'test']
    >>> sorted(evidence.heads["full"].weight)
    ['as_norm', 'b', 'bend', 'ls_e', 'ls_t', 's_norm', 'score_model', 'w']
    """

    score_model: ScoreModel
    scales: Scales
    ridges: Ridges
    heads: Mapping[str, EvidenceHead]
    report: TrainingReport

    def __post_init__(self) -> None:
        odd = [name for name in self.heads if name not in PATTERNS]
        if odd or "none" not in self.heads:
            raise InputError(f"the heads are {sorted(self.heads)}, but must be of {', '.join(PATTERNS)}, with 'none'")

    def head_for(self, pattern: str) -> tuple[str, EvidenceHead]:
        """Return the head for a pattern, or that of the closest pattern that was trained."""
        both = ("pair", "enroll", "test", "none")
        closer = {"full": ("full", *both), "pair": both}.get(pattern, (pattern, "none"))
        name = next(name for name in closer if name in self.heads)
        return name, self.heads[name]
