"""The cohort-evidence model on stores and embeddings, in chunks, on workers, and continued."""

import numpy as np
import pytest
from tests.evidence.material import embeddings, evaluation, training

from evenscore import Embeddings, ScoreBlocks, fit_evidence, normalize, read_scores, score_embeddings, write
from evenscore.files import open_scores, save_evidence, write_table
from evenscore.scoring import score_lazily
from in_process import output_of
from scale.chunked_examples import MODEL, contents, in_tiles

CHUNKS = ("--memory-limit", "1GB")
NEW = evaluation(n_trials=9)
BLOCKS = ("trials", "enroll", "test", "cohort")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Give a model, blocks in npz and in zarr stores of small chunks, embeddings, and maps of speakers."""
    found = tmp_path_factory.mktemp("evidence")
    model = fit_evidence([training(16, 3, 0)], score_model=MODEL)
    save_evidence(model, found / "model.json")
    for name in BLOCKS:
        write(getattr(NEW, name), found / f"{name}.npz")
        write_table(in_tiles(getattr(NEW, name), stored=(4, 6)), found / f"{name}.zarr")
    speakers = {}
    for block, side in (("trials", ""), ("cohort", "cohort_")):
        for end in ("enroll", "test"):
            ids = getattr(getattr(NEW, block), f"{end}_ids").tolist()
            speakers |= zip(ids, getattr(NEW, f"{side}{end}_speakers").tolist(), strict=True)
    write(speakers, found / "utt2spk", format="utt2spk")
    for name, n_speakers, takes, seed in (("e", 7, 1, 1), ("t", 7, 3, 2), ("c", 12, 3, 3)):
        vectors, names = embeddings(n_speakers, takes, seed, name=name)
        write(Embeddings([f"{name}{n}" for n in range(len(vectors))], vectors, names), found / f"{name}_vectors.npz")
    return found


@pytest.fixture
def run(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    return output_of


def blocks(ending):
    sides = [part for name in BLOCKS for part in (f"--{name}", f"{name}.{ending}")]
    return ("--method", "evidence", "--model", "model.json", *sides, "--speakers", "utt2spk")


def test_stores_from_the_command_line(run, folder, tmp_path, monkeypatch):
    run("normalize", *blocks("npz"), "-o", tmp_path / "one.npz")
    run("normalize", *blocks("zarr"), *CHUNKS, "-o", tmp_path / "two.zarr")
    wanted = read_scores(tmp_path / "one.npz").scores
    np.testing.assert_allclose(read_scores(tmp_path / "two.zarr").scores, wanted, rtol=1e-9, atol=1e-9)

    def broken(task, place):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("evenscore.files.chunked_output._write_one", broken)
        run("normalize", *blocks("zarr"), *CHUNKS, "-o", tmp_path / "three.zarr", code=1)
    run("normalize", *blocks("zarr"), *CHUNKS, "--resume", "-o", tmp_path / "three.zarr")
    assert contents(tmp_path / "three.zarr") == contents(tmp_path / "two.zarr")


def test_embeddings_from_the_command_line(run, tmp_path):
    sides = ("--enroll", "e_vectors.npz", "--test", "t_vectors.npz", "--cohort", "c_vectors.npz")
    norm = ("score", *sides, "--norm", "evidence", "--model", "model.json")
    run(*norm, "-o", tmp_path / "one.npz")
    run(*norm, *CHUNKS, "-o", tmp_path / "two.zarr")
    wanted = read_scores(tmp_path / "one.npz").scores
    np.testing.assert_allclose(read_scores(tmp_path / "two.zarr").scores, wanted, rtol=1e-9, atol=1e-9)


def test_workers_give_the_numbers_of_memory(folder, client, tmp_path):
    from evenscore import read_embeddings
    from evenscore.files import load_evidence

    model = load_evidence(folder / "model.json")
    opened = {name: open_scores(folder / f"{name}.zarr").in_tiles(400.0) for name in BLOCKS}
    speakers = {
        name: getattr(NEW, name)
        for name in ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    }
    there = normalize(ScoreBlocks(**opened, **speakers), "evidence", model=model, client=client)
    write_table(there, tmp_path / "out.zarr", client=client)
    wanted = normalize(NEW, "evidence", model=model).scores
    np.testing.assert_allclose(read_scores(tmp_path / "out.zarr").scores, wanted, rtol=1e-9, atol=1e-9)
    enroll, test, cohort = (read_embeddings(folder / f"{name}_vectors.npz") for name in "etc")
    asked = {"cohort": cohort, "method": "evidence", "model": model}
    write_table(score_lazily(enroll, test, client=client, **asked), tmp_path / "vectors.zarr", client=client)
    wanted = score_embeddings(enroll, test, **asked).scores
    np.testing.assert_allclose(read_scores(tmp_path / "vectors.zarr").scores, wanted, rtol=1e-9, atol=1e-9)
