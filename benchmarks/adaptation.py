"""What adaptation without labels is worth: Cllr before and after, against a model that knew the labels.

The score model is trained on one side and adapted to the trials of the other with their labels hidden, with a shift and
without one: scores as they are, scores that were scaled and raised, and (given the audio of AudioMNIST) spoilt
recordings. Where the guard refuses, the trained model stays. The scores that come with evenscore are always there.

    python benchmarks/adaptation.py [--data DIRECTORY_OR_FILES] [--audio DIRECTORY] [--quick]

Without --data, the variable EVENSCORE_DATA names the directory of the embeddings (see benchmarks/accuracy.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from accuracy import Setting, embedding_settings, files_of, shipped_settings
from evenscore import LabelledBlocks, ScoreBlocks, ScoreMatrix

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for recipes

from recipes.adaptation import AdaptationShown, show_adaptation

SCALE, SHIFT = 0.7, 0.2  # of the changed scores; the shift in standard deviations of all scores of a side
PHRASES = 3  # of each set of embeddings
HEAD = "| what | cohort | prior | trained | adapted | adapted, affine | oracle | least possible (adapted) | guard |"


def first_phrases(setting: Setting, number: int) -> Setting:
    return replace(setting, training=setting.training[:number], evaluation=setting.evaluation[:number])


def changed(parts: Sequence[LabelledBlocks], spread: float) -> list[LabelledBlocks]:
    """Return trials, and their own cohort scores, with another scale and offset; the cohort itself stays."""

    def other(scores: ScoreMatrix | None) -> ScoreMatrix | None:
        if scores is None:
            return None
        return ScoreMatrix(SCALE * scores.scores + SHIFT * spread, scores.enroll_ids, scores.test_ids)

    moved = []
    for part in parts:
        blocks = part.blocks
        sides = {name: getattr(blocks, f"{name}_speakers") for name in ("enroll", "test")}
        new = ScoreBlocks(
            other(blocks.trials),
            test=other(blocks.test),
            cohort_enroll_speakers=blocks.cohort_enroll_speakers,
            enroll_speakers=sides["enroll"],
            test_speakers=sides["test"],
        )
        moved.append(LabelledBlocks(new, part.labels, name=part.name))
    return moved


def spread_of(parts: Sequence[LabelledBlocks]) -> float:
    """Return the standard deviation of the scores, the mean over phrases."""
    return float(sum(part.blocks.trials.scores.std() for part in parts) / len(parts))


def spoilt_settings(root: str) -> Iterator[tuple[str, Setting]]:
    """Yield AudioMNIST with spoilt evaluation recordings, scored by the recognizer of the paper's experiment."""
    from recipes.text_dependent import (
        AdditiveNoise,
        TelephoneBand,
        TextDependentSystem,
        read_audiomnist,
        split_speakers,
    )

    corpus = read_audiomnist(root)
    system, split = TextDependentSystem(corpus), split_speakers(corpus)
    for name, degradation in (("nothing", None), ("noise 10 dB", AdditiveNoise(10.0)), ("telephone", TelephoneBand())):
        for both in (False, True) if degradation else (False,):
            found = system.score(split, degradation=degradation, degrade_enrolments=both)
            what = name if degradation is None else f"{'both sides' if both else 'tests'}, {name}"
            yield what, Setting("audiomnist_gmm", 0, "spoilt", list(found.development), list(found.evaluation))


def row(what: str, setting: Setting, cohort: Sequence[str] = (), prior: float = 1.0) -> str:
    """Adapt and compare; the prior that is given is a multiple of the true one."""
    true = sum(part.labels.n_target for part in setting.evaluation) / sum(
        part.labels.matrix.size for part in setting.evaluation
    )
    shown = {
        change: show_adaptation(setting.training, setting.evaluation, prior=prior * true, cohort=cohort, change=change)
        for change in ("all", "affine")
    }
    trained, adapted, oracle = shown["all"].outcomes
    affine = shown["affine"].outcomes[1]
    figures = [trained.cllr, adapted.cllr, affine.cllr, oracle.cllr, adapted.min_cllr]
    names = {1.0: "true", 2.0: "twice", 0.5: "half"}
    cells = [what, "S_t" if cohort else "none", names[prior], *(f"{figure:.3f}" for figure in figures)]
    return f"| {' | '.join(cells)} | {verdict(shown['all'])} |"


def verdict(shown: AdaptationShown) -> str:
    """Say what the guard did, and why."""
    if shown.result is None:
        return f"refused: {shown.refusal}"
    gain = shown.result.score_gain
    return f"{gain.nats:.0f} nats, {gain.needed:.0f} needed"


def rows(setting: Setting, name: str, quick: bool) -> Iterator[str]:
    """Yield the rows of one setting: as it is, and changed, with and without a cohort."""
    moved = replace(setting, evaluation=changed(setting.evaluation, spread_of(setting.evaluation)))
    yield row(f"{name}, as it is", setting)
    yield row(f"{name}, changed", moved)
    if not quick:
        yield row(f"{name}, as it is", setting, ("test",))
        yield row(f"{name}, changed", moved, ("test",))
        yield row(f"{name}, changed", moved, prior=2.0)
        yield row(f"{name}, changed", moved, prior=0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = [os.environ["EVENSCORE_DATA"]] if os.environ.get("EVENSCORE_DATA") else []
    parser.add_argument("--data", nargs="*", default=default, help="directories and npz files of embeddings")
    parser.add_argument("--audio", help="directory of AudioMNIST, for spoilt recordings")
    parser.add_argument("--quick", action="store_true", help="only the scores that come with evenscore, two digits")
    args = parser.parse_args()
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for setting in shipped_settings():
        short = first_phrases(setting, 2) if args.quick else setting
        for line in rows(short, f"AudioMNIST GMM, {setting.direction}", args.quick):
            print(line, flush=True)
    if args.quick:
        return
    options = argparse.Namespace(phrase_column=None, take_column=None, enroll_takes=None, seeds=[0])
    for path in files_of(args.data):
        for setting in embedding_settings(Path(path), options):
            if len(setting.training) >= PHRASES:  # of one matrix the dense posterior would take long
                for line in rows(first_phrases(setting, PHRASES), f"{setting.name}, {setting.direction}", False):
                    print(line, flush=True)
    if args.audio:
        for what, setting in spoilt_settings(args.audio):
            print(row(what, setting), flush=True)
            print(row(what, setting, ("test",)), flush=True)


if __name__ == "__main__":
    main()
