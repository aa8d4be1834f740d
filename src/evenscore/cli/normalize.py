"""``evenscore normalize``: cohort scores or embeddings in, comparable scores or log-likelihood ratios out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from evenscore.cli import norm_options as norms, options as opt
from evenscore.cli.norm_options import EMBEDDINGS, CohortChoices, EnrollMap
from evenscore.cli.option_records import given_options, with_records
from evenscore.cli.options import PhraseFrom, Resume, ScaleChoices
from evenscore.cli.output import scored_output
from evenscore.cli.quality import QualityOutput
from evenscore.cli.scorers import ScorerOption, scorer_of
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.cli.inputs import EmbeddingFiles
    from evenscore.tables import Labels, ScoreBlocks, ScoreTable, TrialList

__all__ = ["EXAMPLES", "normalize"]

EXAMPLES = """
evenscore normalize --norm as:top_k=300 --trials s --enroll-cohort e \\
    --test-cohort t -o out
evenscore normalize --norm z --trials s --enroll-cohort e -o out.csv
evenscore normalize --norm lgsm --model m.json --trials s --cohort c \\
    --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm lgsm --model m.json --trials s --cohort c \\
    --enroll-cohort e --test-cohort t --enroll-key e.key -o out
evenscore normalize --norm as --trials dev.trials -o out \\
    --enroll-embeddings x.npz --test-embeddings x.npz \\
    --cohort-embeddings c.npz --cohort-unit speaker
evenscore normalize --norm as --trials dev.trials -o out --to wespeaker \\
    --enroll-embeddings x.npz --test-embeddings x.npz \\
    --cohort-embeddings c.npz --quality mag,mu
evenscore normalize --norm s --trials s.zarr --enroll-cohort e.zarr \\
    --test-cohort t.zarr --workers 2 -o out.zarr
"""


@dataclass(frozen=True, kw_only=True)
class _CohortScores(norms.CohortScores):
    """Files with the scores of trials against the cohort, and its labels."""

    cohort_key: Annotated[str | None, opt.file("Labels of the cohort scores; by default all are non-targets.")] = None
    enroll_key: Annotated[
        str | None,
        opt.file("Labels of --enroll-cohort, such as known targets; pairs it does not list are non-targets."),
    ] = None
    test_key: Annotated[str | None, opt.file("The same for --test-cohort.")] = None
    unmatched: opt.OnUnmatched = "error"


@dataclass(frozen=True, kw_only=True)
class _Vectors:
    """Embeddings in place of cohort scores, and of trial scores if there are none."""

    PANEL: ClassVar[str] = EMBEDDINGS

    enroll_embeddings: Annotated[str | None, opt.file("Embeddings of the enrolments.")] = None
    test_embeddings: Annotated[str | None, opt.file("Embeddings of the tests; may be the same file.")] = None
    cohort_embeddings: Annotated[str | None, opt.file("Embeddings of the cohort, which serve on both sides.")] = None
    scorer: ScorerOption = "cosine"
    enroll_map: EnrollMap = None

    @property
    def given(self) -> bool:
        """Whether there are embeddings."""
        return (self.enroll_embeddings, self.test_embeddings, self.cohort_embeddings) != (None, None, None)

    def files(self, facts: norms.TrialFacts) -> EmbeddingFiles:
        """Return where they come from, with what is known about them."""
        from evenscore.cli.inputs import EmbeddingFiles

        paths = {name: getattr(self, f"{name}_embeddings") for name in ("enroll", "test", "cohort")}
        for name, path in paths.items():
            if path is None:
                raise InputError(f"to normalize scores of embeddings, --{name}-embeddings is needed too")
        return EmbeddingFiles(**paths, enroll_map=self.enroll_map, **vars(facts))


@with_records
def normalize(
    output: opt.Output,
    trials: Annotated[
        str | None, opt.file("Scores to be normalized (S). With embeddings, trials without scores are scored, too.")
    ] = None,
    norm: Annotated[str, norms.NormName] = "lgsm",
    model: norms.ModelFile = None,
    *,
    phrase_from: PhraseFrom = None,
    own: norms.OwnNorms,
    cohort: _CohortScores,
    facts: norms.TrialFacts,
    vectors: _Vectors,
    members: CohortChoices,
    measures: QualityOutput,
    scale: ScaleChoices,
    resume: Resume = False,
    to_format: opt.ToFormat = None,
) -> None:
    """Normalize trial scores with the help of cohort scores.

    lgsm and evidence need a trained model (--model) and return log-likelihood ratios; they work with the cohort scores
    of both sides, of one, or of none. evidence is best with the cohort's own scores and speakers, too. z needs
    --enroll-cohort, t needs --test-cohort, s and as need both, zt and tz also --cohort. The four blocks are matched by
    id; their rows and columns may be in any order. The output keeps the form (matrix or list), the order and the labels
    of the trials. With embeddings of enrolments, tests and cohort, the cohort scores are made by
    --scorer; so are the trial scores, if --trials has none or is left out.

    With --phrase-from, each trial is normalized with the cohort's tests of its own test's phrase (and with its
    enrolments of that phrase, where they have phrases), as a model by phrase ('fit --phrase-from') wants it.

    --enroll-key and --test-key tell which cohort scores are known to be targets, such as those of an enrolment against
    further takes of its speaker, which --cohort need not have. They sharpen lgsm; other norms leave them out.

    Options of a norm follow its name after colons, as in as:top_k=300:select=cross. top_k: how many of the highest
    cohort scores as, at and az take (300, or a fifth of the cohort where that is fewer), or a fraction like 0.1;
    excess=clip: all, if there are fewer; drop_top: how many of the very highest to leave out; select=cross: the other
    side ranks the cohort by its scores; select=profile: by how alike scores against the cohort are (needs --cohort,
    too); statistic=median or statistic=trimmed (with
    trim=0.1 at each end) instead of mean; ddof=1: variance over n - 1; std_floor: least standard deviation;
    zero_std=one: divide by 1 where it is zero; combine=sqrt2: the sum of the sides over the root of 2, not half of it;
    vanished=raw or vanished=missing: trials without a cohort; convention: all these as in wespeaker, speechbrain,
    espnet, asv-subtools, hyperion or bob, where single options win.

    Blocks in .zarr, in .npy with lists of ids beside it, and trials in .parquet are read in chunks if they are large
    or if workers or a memory limit are asked for; the output is then .zarr or .parquet, and is written chunk by chunk.
    """
    own.refuse_workers(scale)
    _refuse_mixture(cohort, vectors, members)
    if phrase_from is not None and (resume or scale.given or facts.conditions or given_options(measures)):
        raise InputError("--phrase-from works on scores in memory, without conditions and measures; leave these out")
    measures.refuse_resumed(resume)
    lazy = resume or scale.in_chunks(trials, *cohort.paths.values())
    from evenscore.calibrate import quality_measures
    from evenscore.cli.inputs import CONDITION, write_scores_of
    from evenscore.cli.phrases import phrases_of_blocks
    from evenscore.norms import normalize as normalized, normalize_by_phrase

    with scored_output(output, to_format, scale, lazy=lazy, resume=resume) as place:
        method, settings = norms.norm_settings(norm, model)
        place.progress("reading", 0.0)
        kept = scale if lazy else None
        if vectors.given:
            condition = None if facts.conditions is None else CONDITION
            settings |= {"method": method, "condition": condition, "scorer": scorer_of(vectors.scorer)}
            settings |= {"members": members, "measures": measures, "phrase_from": phrase_from}
            write_scores_of(vectors.files(facts), trials, place, kept, **settings)
            return
        settings |= _conditions(method, facts)
        blocks = _read_blocks(trials, cohort, facts, kept)
        place.check(blocks.trials.listed)
        measures.refuse_matrix(blocks.trials.listed)
        place.progress("normalizing", 0.3)
        if phrase_from is not None:
            phrases = phrases_of_blocks(blocks, phrase_from)
            place.write(normalize_by_phrase(blocks, phrases, method, progress=place.progress, **settings))
            return
        scores = normalized(blocks, method, **place.how, keep=place.store, **settings)
        measures.write(scores, place, lambda: quality_measures(blocks, method, **place.how, **settings))


def _refuse_mixture(cohort: _CohortScores, vectors: _Vectors, members: CohortChoices) -> None:
    if vectors.given and given_options(cohort):
        raise InputError("both embeddings and cohort scores were given; normalize with one of the two")
    odd = [] if vectors.given else [*given_options(vectors), *given_options(members)]
    if odd:
        raise InputError(f"{odd[0]} has no meaning without embeddings; leave it out")


def _conditions(method: str, facts: norms.TrialFacts) -> dict[str, Any]:
    """Return the conditions of trials and cohort as an option of a norm, or nothing if there are none."""
    if facts.conditions is None:
        return {}
    from evenscore.cli.inputs import read_conditions
    from evenscore.files.models import trained_methods
    from evenscore.norms import Conditions

    if method in trained_methods():
        raise InputError(f"the norm {method!r} knows no conditions; leave out --conditions")
    mine = read_conditions(facts.conditions)
    theirs = mine if facts.cohort_conditions is None else read_conditions(facts.cohort_conditions)
    return {"conditions": Conditions(enroll=mine, test=mine, cohort_enroll=theirs, cohort_test=theirs)}


def _read_blocks(
    trials: str | None, cohort: _CohortScores, facts: norms.TrialFacts, scale: ScaleChoices | None
) -> ScoreBlocks:
    """Read trials and cohort scores, with their speakers and labels."""
    from evenscore.cli.inputs import open_matrix, open_tiles, warn_of_own_utterances
    from evenscore.cli.labelled import with_map, with_maps
    from evenscore.files import read_speakers
    from evenscore.tables import ScoreBlocks

    if trials is None:
        raise InputError("there is nothing to normalize; give --trials, or embeddings")
    scores = open_tiles(trials, scale)
    blocks: dict[str, Any] = {name: open_matrix(path, scale) for name, path in cohort.paths.items()}
    sides: dict[str, Any] = {"cohort_labels": _cohort_labels(cohort, blocks.get("cohort"))}
    for side, key in (("enroll", cohort.enroll_key), ("test", cohort.test_key)):
        if key is not None:
            sides[f"{side}_labels"] = _side_key(side, key, blocks.get(side), cohort.unmatched)
    if facts.speakers is not None:
        known = facts.speakers, read_speakers(facts.speakers)
        scores = with_maps(scores, known, known)
    path = facts.cohort_speakers or facts.speakers
    if path is not None:
        known = path, read_speakers(path)
        for side, other in (("enroll", "test"), ("test", "enroll")):
            block = blocks.get("cohort", blocks.get(other))
            if block is not None:
                members = with_map(getattr(block, f"{side}_axis"), known, "cohort member")
                sides[f"cohort_{side}_speakers"] = members.speakers
    made = ScoreBlocks(scores, **blocks, **sides)
    members = [axis for axis in (made.cohort_enroll_axis, made.cohort_test_axis) if axis is not None]
    warn_of_own_utterances((made.trials.enroll_axis, made.trials.test_axis), members)
    return made


def _side_key(side: str, path: str, table: ScoreTable | None, unmatched: str) -> TrialList:
    """Read the labels of one side's cohort scores; all pairs that they list must be among these, unless told not to."""
    from evenscore.cli.labelled import LabelSources
    from evenscore.tables.pair_values import ListedValues

    if table is None:
        raise InputError(f"--{side}-key gives labels to cohort scores; give --{side}-cohort too")
    [key] = LabelSources(keys=[path]).read_keys()
    found = ListedValues.of_key(key).align(table.enroll_axis, table.test_axis)
    if found.n_beyond and (unmatched == "error" or not len(found.codes)):
        raise InputError(
            f"{path}: {found.n_beyond} of {len(key)} pairs are not among the scores of --{side}-cohort, the first of "
            f"them {found.beyond[0]!r} {found.beyond[1]!r}; "  # type: ignore[index]
            "make the two files agree, or leave out what does not match (--unmatched drop)"
        )
    return key


def _cohort_labels(cohort: _CohortScores, table: ScoreTable | None) -> Labels | None:
    """Return the labels of cohort scores by their key, if there is one."""
    from evenscore.cli.labelled import LabelSources, labelled_scores, refuse_mismatch
    from evenscore.tables.pair_values import table_of_labels

    if cohort.cohort_key is None:
        return None
    if cohort.cohort is None or table is None:
        raise InputError("--cohort-key gives labels to cohort scores; give --cohort too")
    sources = LabelSources(keys=[cohort.cohort_key], unmatched=cohort.unmatched)
    [file] = labelled_scores([cohort.cohort], [table], sources)
    refuse_mismatch([file])
    return table_of_labels(table, file.labels)
