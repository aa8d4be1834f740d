"""evenscore compare on files that are read in chunks: the figures of the same command on files that are read whole."""

import json
import shutil

import numpy as np
import pytest

from evenscore import Embeddings, ScoreMatrix, ScoreModel, simulate_blocks, write
from evenscore.files import write_table
from evenscore.sources import as_table

pytest.importorskip("zarr", reason="stores need the extra 'zarr'")

MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
QUICK = ("--bootstrap", "20", "--methods", "raw,z,s")
CHUNKS = ("--memory-limit", "1GB")
FILES = {"dev": "cohort", "eval": "trials", "cross-e": "enroll", "cross-t": "test"}


def people(group, count, each):
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write the blocks of two sides as npz and as zarr, a map of speakers, keys, and trials in parquet."""
    folder = tmp_path_factory.mktemp("made")
    sides = people("new", 12, 1), people("new", 12, 3), people("dev", 14, 1), people("dev", 14, 2)
    blocks, labels = simulate_blocks(MODEL, *sides, seed=3)
    for name, block in FILES.items():
        write(getattr(blocks, block), folder / f"{name}.npz")
        write_table(as_table(getattr(blocks, block)), folder / f"{name}.zarr")
    sides = (
        (blocks.trials.enroll_ids, blocks.enroll_speakers),
        (blocks.trials.test_ids, blocks.test_speakers),
        (blocks.cohort.enroll_ids, blocks.cohort_enroll_speakers),
        (blocks.cohort.test_ids, blocks.cohort_test_speakers),
    )
    speaker = {name: who for ids, names in sides for name, who in zip(ids, names, strict=True)}
    write(speaker, folder / "utt2spk", format="utt2spk")
    write(blocks.trials.to_trials(labels), folder / "eval.key", format="csv")
    write(blocks.trials.to_trials(labels), folder / "eval.parquet")
    write(blocks.cohort.to_trials(blocks.cohort_labels), folder / "dev.key", format="csv")
    tests = [*blocks.trials.test_ids, *blocks.cohort.test_ids]
    phrases = "".join(f"{name} {'one' if place % 2 else 'two'}\n" for place, name in enumerate(tests))
    (folder / "phrases").write_text(phrases)
    pool = ScoreMatrix.concat([blocks.enroll, blocks.test])
    write_table(as_table(pool), folder / "pool.zarr")
    return folder, blocks, labels


@pytest.fixture(scope="module")
def known():
    """Keep the results of commands, of which most compare with the same one."""
    return {}


@pytest.fixture
def files(made, tmp_path):
    """Give a copy, which a test may spoil."""
    folder, blocks, labels = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return blocks, labels


def own(ending, trials=None):
    return (
        *("--train", f"dev.{ending}", "--trials", trials or f"eval.{ending}"),
        *("--enroll", f"cross-e.{ending}", "--test", f"cross-t.{ending}"),
    )


def results(tmp_path, folder):
    return json.loads((tmp_path / folder / "results.json").read_text())


def assert_same(found, expected):
    assert list(found["methods"]) == list(expected["methods"])
    assert found["not_run"] == expected["not_run"]
    assert found["data"]["evaluation"] == expected["data"]["evaluation"]
    for name, method in found["methods"].items():
        figures, whole = method["figures"], expected["methods"][name]["figures"]
        for metric in ("cllr", "act_dcf", "n_target", "n_nontarget"):
            assert figures[metric] == pytest.approx(whole[metric], rel=1e-9)
        for metric in ("eer", "min_dcf", "min_cllr"):
            low, high = figures["bounds"][metric]
            assert low - 1e-9 <= whole[metric] <= high + 1e-9
        for condition, one in method["conditions"].items():
            assert one["cllr"] == pytest.approx(expected["methods"][name]["conditions"][condition]["cllr"], rel=1e-9)


KEYS = ("--train-key", "dev.key", "--key", "eval.key")
SPEAKERS = ("--speakers", "utt2spk")
TRIALS = ("--train", "dev.zarr", "--trials", "eval.zarr")


@pytest.mark.parametrize(
    ("whole", "chunks"),
    [
        ((*own("npz"), *SPEAKERS), (*own("zarr"), *SPEAKERS)),
        ((*own("npz"), *KEYS), (*own("zarr"), *KEYS)),
        ((*own("npz"), *SPEAKERS), (*own("zarr", "eval.parquet"), *SPEAKERS)),
        (
            (*own("npz"), *SPEAKERS),
            (*TRIALS, "--cohort", "pool.zarr", *SPEAKERS),
        ),
        ((*own("npz"), *SPEAKERS), (*TRIALS, "--cohort", "cross-e.zarr", "--cohort", "cross-t.zarr", *SPEAKERS)),
        ((*own("npz"), *SPEAKERS, "--phrase-from", "phrases"), (*own("zarr"), *SPEAKERS, "--phrase-from", "phrases")),
    ],
    ids=["speakers", "keys", "list", "pool", "two pools", "phrases"],
)
def test_every_way_gives_the_figures_of_whole_files(cli, files, tmp_path, whole, chunks, known):
    chunks = (*chunks, *CHUNKS)
    for command, folder in ((whole, "whole"), (chunks, "chunks")):
        if command not in known:
            run = cli("compare", *command, *QUICK, "-o", folder)
            assert run.exit_code == 0, run.stderr
            known[command] = results(tmp_path, folder)
    assert_same(known[chunks], known[whole])
    assert (tmp_path / "chunks" / "report.html").is_file()


def test_chunked_scores_are_written_or_not(cli, files, tmp_path):
    run = cli("compare", *own("zarr"), *SPEAKERS, *CHUNKS, *QUICK, "-o", "out")
    assert run.exit_code == 0, run.stderr
    assert "20 draws of 12 speakers" in run.stdout
    assert (tmp_path / "out" / results(tmp_path, "out")["methods"]["s"]["files"]["scores"][0]).is_dir()
    run = cli("compare", *own("zarr"), *SPEAKERS, *CHUNKS, *QUICK, "--no-scores", "-o", "other")
    assert run.exit_code == 0, run.stderr
    assert not list((tmp_path / "other").rglob("*.zarr"))


@pytest.mark.parametrize("listed", [False, True])
def test_embeddings_are_scored_in_chunks(cli, tmp_path, listed):
    rng = np.random.default_rng(0)
    for group, count in (("dev", 15), ("new", 12)):
        speakers = people(group, count, 3)
        centers = np.repeat(rng.normal(size=(count, 8)), 3, axis=0)
        vectors = centers + 0.7 * rng.normal(size=(len(speakers), 8))
        write(
            Embeddings([f"{name}-{n}" for n, name in enumerate(speakers)], vectors, speakers), tmp_path / f"{group}.npz"
        )
    sides = ("--train-embeddings", "dev.npz", "--enroll-embeddings", "new.npz", "--test-embeddings", "new.npz")
    if listed:
        names = [f"{name}-{n}" for n, name in enumerate(people("new", 12, 3))]
        pairs = [(one, other) for one in names[::3] for other in names if one != other]
        same = [one.partition("-")[0] == other.partition("-")[0] for one, other in pairs]
        rows = [
            f"{one} {other} {'target' if yes else 'nontarget'}" for (one, other), yes in zip(pairs, same, strict=True)
        ]
        (tmp_path / "key").write_text("\n".join(rows) + "\n")
        sides = (*sides, "--key", "key")
    for folder, options in (("whole", ()), ("chunks", CHUNKS)):
        run = cli("compare", *sides, *QUICK, *options, "-o", folder)
        assert run.exit_code == 0, run.stderr
    assert_same(results(tmp_path, "chunks"), results(tmp_path, "whole"))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((*own("zarr"), "--key", "eval.key", "--train-key", "short.key"), "are not in the key"),
        ((*own("zarr"), *SPEAKERS, "--workers", "1", "--scheduler", "tcp://x:1"), "give one of the two"),
        (
            (*own("zarr", "eval.parquet"), *SPEAKERS, "--phrase-from", "re:(.)"),
            "cannot be split by phrase; give a file for each",
        ),
        ((*TRIALS, *SPEAKERS, "--cohort", "cross-e.zarr", "--cohort", "pool.zarr"), "must be in one file"),
    ],
)
def test_bad_input_is_refused(cli, files, tmp_path, command, message):
    blocks, _ = files
    write(blocks.cohort.to_trials(blocks.cohort_labels).select(np.arange(20)), tmp_path / "short.key", format="csv")
    run = cli("compare", *command, *CHUNKS, *QUICK, "-o", "out")
    assert run.exit_code == 2, run.stdout
    assert message in " ".join(run.stderr.split())
