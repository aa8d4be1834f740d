"""evenscore compare: every way to give the scores leads to the same figures, and bad input is refused with a reason."""

import functools
import json

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    compare,
    read_embeddings,
    read_scores,
    score_blocks,
    simulate_blocks,
    write,
)
from evenscore.scoring import correct_self_centering
from evenscore.sources import LeftOutCenter
from evenscore.sources.blocks import cohort_matrix

MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
QUICK = ("--bootstrap", "20", "--methods", "raw,z,s", "-o", "out")


def people(group, count, each):
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


def simulated(prefix="", *, new="new", seed=3):
    """Return evaluation blocks whose cohort is the training side, and their labels; ids begin with the prefix."""
    sides = people(new, 12, 1), people(new, 12, 3), people("dev", 14, 1), people("dev", 14, 2)
    return simulate_blocks(MODEL, *sides, seed=seed)


def renamed(matrix, prefix):
    names = ([prefix + name for name in ids] for ids in (matrix.enroll_ids, matrix.test_ids))
    return ScoreMatrix(matrix.scores, *names)


@functools.cache
def first_sides():
    return simulated()


@pytest.fixture
def files(tmp_path):
    """Write the blocks of two sides, a map of speakers and keys, and return the blocks."""
    blocks, labels = first_sides()
    for name, block in (("eval", "trials"), ("cross-e", "enroll"), ("cross-t", "test"), ("dev", "cohort")):
        write(getattr(blocks, block), tmp_path / f"{name}.npz")
    write(speakers_of(blocks), tmp_path / "utt2spk", format="utt2spk")
    write(blocks.trials.to_trials(labels), tmp_path / "eval.key", format="csv")
    write(blocks.cohort.to_trials(blocks.cohort_labels), tmp_path / "dev.key", format="csv")
    return blocks, labels


def speakers_of(blocks):
    sides = (
        (blocks.trials.enroll_ids, blocks.enroll_speakers),
        (blocks.trials.test_ids, blocks.test_speakers),
        (blocks.cohort.enroll_ids, blocks.cohort_enroll_speakers),
        (blocks.cohort.test_ids, blocks.cohort_test_speakers),
    )
    return {name: speaker for ids, names in sides for name, speaker in zip(ids, names, strict=True)}


@functools.cache
def library(methods=("raw", "z", "s")):
    blocks, labels = first_sides()
    training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)
    return compare([training], [LabelledBlocks(blocks, labels)], methods, bootstrap=20)


def results(tmp_path, folder="out"):
    return json.loads((tmp_path / folder / "results.json").read_text())


def same_figures(found, comparison):
    assert list(found["methods"]) == [method.name for method in comparison.methods]
    for name, method in found["methods"].items():
        expected = comparison.results()["methods"][name]["figures"]
        assert method["figures"]["cllr"] == pytest.approx(expected["cllr"], rel=1e-12)
        assert method["figures"]["eer"] == pytest.approx(expected["eer"], rel=1e-12)


OWN = ("--train", "dev.npz", "--trials", "eval.npz", "--enroll", "cross-e.npz", "--test", "cross-t.npz")


def test_a_comparison_prints_table_verdict_and_where_the_report_is(cli, files, tmp_path):
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK)
    assert run.exit_code == 0, run.stderr
    comparison = library()
    for method in comparison.methods:
        assert f"{method.name} " in run.stdout
    assert comparison.verdict.text in run.stdout.replace("\n", " ")
    assert "The report is out/report.html; all figures are in out/results.json." in run.stdout
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!")
    found = results(tmp_path)
    expected = comparison.results()
    for one in (found, expected):
        one.pop("run")
    assert found == expected
    assert "only 14 speakers on the training side" in run.stderr


def test_every_operating_point_is_shown(cli, files, tmp_path):
    points = ("--points", "0.01", "--points", "0.05,10,1")
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK, *points)
    report = (tmp_path / "out" / "report.html").read_text()
    for method in results(tmp_path)["methods"].values():
        for place, name in enumerate(("0.01", "0.05,10,1")):
            assert f"minDCF {name}" in run.stdout
            assert f"minDCF {name}" in report
            figure = method["figures"]["dcf"][place]["act_dcf"]
            assert f"{figure:.3f}" in run.stdout
            assert f'data-value="{figure:.9g}"' in report
    assert [line.split()[1] for line in run.stdout.splitlines() if line.startswith(" * ")] == [
        results(tmp_path)["verdict"]["use"]
    ]
    used = [name for name, method in results(tmp_path)["methods"].items() if method["recommended"]]
    assert used == [results(tmp_path)["verdict"]["use"]]


@pytest.mark.parametrize(
    "ways",
    [
        (*OWN, "--train-key", "dev.key", "--key", "eval.key"),
        (*OWN, "--key", "eval.key", "--speakers", "utt2spk"),
        (
            "--train",
            "dev.npz",
            "--trials",
            "eval.npz",
            "--cohort",
            "cross-e.npz",
            "--cohort",
            "cross-t.npz",
            "--speakers",
            "utt2spk",
        ),
        ("--train", "dev.csv", "--trials", "eval.csv", "--cohort", "all.csv", "--speakers", "utt2spk"),
    ],
)
def test_all_ways_lead_to_the_same_figures(cli, files, tmp_path, ways):
    blocks, labels = files
    write(blocks.cohort.to_trials(blocks.cohort_labels), tmp_path / "dev.csv")
    write(blocks.trials.to_trials(labels), tmp_path / "eval.csv")
    both = ScoreMatrix.concat([blocks.enroll, blocks.test])
    write(both.to_trials(), tmp_path / "all.csv")
    run = cli("compare", *ways, *QUICK)
    assert run.exit_code == 0, run.stderr
    same_figures(results(tmp_path), library())


def test_the_cohort_may_be_chosen_by_profile(cli, files, tmp_path):
    methods = ("at:select=profile:top_k=5", "raw")
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK, "--methods", ",".join(methods))
    assert run.exit_code == 0, run.stderr
    same_figures(results(tmp_path), library(methods))


def test_json_is_what_the_file_holds(cli, files, tmp_path):
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK, "--json")
    assert json.loads(run.stdout) == results(tmp_path)


def test_a_cohort_of_others_is_told_by_its_ids(cli, tmp_path):
    everybody = people("new", 12, 1), people("new", 12, 2), people("dev", 14, 1), people("dev", 14, 2)
    rows, columns = [*everybody[0], *everybody[2]], [*everybody[1], *everybody[3]]
    whole, labels = simulate_blocks(MODEL, rows, columns, people("coh", 15, 1), people("coh", 15, 1), seed=5)
    trials, key = whole.trials, labels
    new, dev = (np.arange(12), np.arange(24)), (np.arange(12, 26), np.arange(24, 52))
    for name, part in (("eval", new), ("dev", dev)):
        write(trials.take(*part), tmp_path / f"{name}.npz")
        write(trials.take(*part).to_trials(key.take(*part)), tmp_path / f"{name}.key", format="csv")
    pool = ScoreMatrix.concat([whole.enroll, whole.test, whole.cohort])
    write(pool, tmp_path / "coh.npz")
    command = ("--train", "dev.npz", "--train-key", "dev.key", "--trials", "eval.npz", "--key", "eval.key")
    run = cli("compare", *command, "--cohort", "coh.npz", *QUICK[:2], "-o", "out", "--methods", "z,t,zt,s")
    assert run.exit_code == 0, run.stderr
    found = results(tmp_path)
    assert found["not_run"] == {}
    assert set(found["methods"]) == {"raw", "z", "t", "zt", "s"}
    [cohort] = found["cohorts"]
    assert (cohort["enrolments"], cohort["tests"], cohort["smallest"]) == (15, 15, 15)
    blocks = {"enroll": whole.enroll, "test": whole.test}
    for name, block in blocks.items():
        part = {"enroll": (new[0], None), "test": (None, new[1])}[name]
        write(block.take(*part), tmp_path / f"{name}.npz")
        part = {"enroll": (dev[0], None), "test": (None, dev[1])}[name]
        write(block.take(*part), tmp_path / f"train-{name}.npz")
    write(whole.cohort, tmp_path / "cohort.npz")
    apart = [
        part
        for name in ("enroll", "test", "train-enroll", "train-test", "cohort")
        for part in (f"--{name}", f"{name}.npz")
    ]
    run = cli("compare", *command, *apart, *QUICK[:2], "-o", "apart", "--methods", "z,t,zt,s")
    assert run.exit_code == 0, run.stderr
    for one in (found, other := results(tmp_path, "apart")):
        one.pop("run")
    assert found == other
    run = cli("compare", *command, "--enroll", "enroll.npz", "--cohort", "cohort.npz", *QUICK)
    assert run.exit_code == 0, run.stderr
    assert set(results(tmp_path)["not_run"]) == {"z", "s"}
    assert "not run: z: the norm 'z' needs the block `enroll`" in run.stdout
    assert "(enroll) are not on the training side" in run.stderr


def test_several_phrases_by_files_and_by_name(cli, tmp_path):
    parts, tables = [], {name: [] for name in ("trials", "enroll", "test", "cohort")}
    known = {}
    for place, phrase in enumerate(("p1", "p2")):
        blocks, labels = simulated(seed=10 + place)
        training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels, name=phrase)
        parts.append((training, LabelledBlocks(blocks, labels, phrase)))
        for name, found in tables.items():
            table = renamed(getattr(blocks, name), f"{phrase}_")
            write(table, tmp_path / f"{name}-{phrase}.npz")
            found.append(table)
        known |= {f"{phrase}_{name}": speaker for name, speaker in speakers_of(blocks).items()}
    write(known, tmp_path / "utt2spk", format="utt2spk")
    for name, found in tables.items():
        write(ScoreMatrix.concat(found), tmp_path / f"{name}.npz")
    expected = compare(*zip(*parts, strict=True), ["z", "s"], bootstrap=20)
    options = {"train": "cohort", "trials": "trials", "enroll": "enroll", "test": "test"}
    apart = [
        text for option, name in options.items() for p in ("p1", "p2") for text in (f"--{option}", f"{name}-{p}.npz")
    ]
    run = cli("compare", *apart, "--speakers", "utt2spk", *QUICK)
    assert run.exit_code == 0, run.stderr
    same_figures(results(tmp_path), expected)
    assert list(results(tmp_path)["methods"]["s"]["conditions"]) == ["trials-p1", "trials-p2"]
    together = [text for option, name in options.items() for text in (f"--{option}", f"{name}.npz")]
    run = cli("compare", *together, "--speakers", "utt2spk", "--phrase-from", "re:^(p[0-9])_", *QUICK)
    assert run.exit_code == 0, run.stderr
    same_figures(results(tmp_path), expected)
    assert list(results(tmp_path)["methods"]["s"]["conditions"]) == ["p1", "p2"]
    assert read_scores(tmp_path / "out" / "methods" / "s" / "llrs-2-p2.npz").n_target == 36


@pytest.fixture
def vectors(tmp_path):
    """Write embeddings of training, evaluation and cohort speakers, with speakers and phrases."""
    rng = np.random.default_rng(1)
    for group, count in (("dev", 14), ("new", 12), ("coh", 15)):
        names = people(group, count, 4)
        centers = np.repeat(rng.normal(size=(count, 8)), 4, axis=0)
        ids = [f"{name}-{take % 4}" for take, name in enumerate(names)]
        phrases = np.array([f"p{take % 2}" for take in range(len(ids))], dtype=object)
        write(
            Embeddings(ids, centers + rng.normal(size=centers.shape), names, columns={"phrase": phrases}),
            tmp_path / f"{group}.npz",
        )


VECTORS = ("--train-embeddings", "dev.npz", "--enroll-embeddings", "new.npz", "--test-embeddings", "new.npz")


@pytest.mark.parametrize("cohort", [(), ("--cohort-embeddings", "coh.npz")])
@pytest.mark.parametrize("phrase", [(), ("--phrase-from", "column:phrase")])
def test_from_embeddings(cli, vectors, tmp_path, cohort, phrase):
    methods = ("--methods", "raw,z,s,lgsm:dim=0")
    run = cli("compare", *VECTORS, *cohort, *phrase, "--center", "dev.npz", *QUICK, *methods)
    assert run.exit_code == 0, run.stderr
    found = results(tmp_path)
    flat, raw = (found["methods"][name]["figures"] for name in ("lgsm:dim=0", "raw"))
    assert flat["eer"] == pytest.approx(raw["eer"], abs=0.02)  # no norm: only what is beyond its vertex moves
    assert found["not_run"] == {}
    evaluation = found["data"]["evaluation"]
    assert evaluation["speakers"] == 12
    assert evaluation["targets"] == (12 * 4 * 3 if not phrase else 12 * 2 * 2)  # nobody is scored against itself
    assert [len(found["cohorts"]), found["cohorts"][0]["enrolments"]] == [
        2 if phrase else 1,
        (60 if cohort else 56) // (2 if phrase else 1),
    ]


@pytest.mark.parametrize("large", [(), ("--memory-limit", "1GB")])
def test_training_trials_are_centred_without_their_speakers(cli, vectors, tmp_path, large):
    dev, new = read_embeddings(tmp_path / "dev.npz"), read_embeddings(tmp_path / "new.npz")
    usual = Cosine(dev.vectors.mean(axis=0))
    labels = Labels.of_axes(dev, dev)
    blocks = score_blocks(usual, new, new, dev)
    trials = cohort_matrix(usual.score(new, new))
    evaluation = [LabelledBlocks(blocks.replace(trials=trials), Labels.of_axes(new, new))]
    for scorer, option in ((LeftOutCenter(dev), ""), (usual, ":leave_out=none")):
        training = [LabelledBlocks.own_cohort(cohort_matrix(scorer.score(dev, dev)), labels)]
        run = cli(
            "compare", *VECTORS, "--scorer", f"cosine:center=dev.npz{option}", *large, *QUICK[:-1], f"out{option}"
        )
        assert run.exit_code == 0, run.stderr
        wanted = compare(training, evaluation, ("raw", "z", "s"), bootstrap=20).results()["methods"]
        for name, method in results(tmp_path, f"out{option}")["methods"].items():
            assert method["figures"]["cllr"] == pytest.approx(
                wanted[name]["figures"]["cllr"], rel=1e-3 if large else 1e-9
            )


def test_self_centred_training_scores_are_named_and_corrected_if_asked_for(cli, vectors, tmp_path):
    dev, new = read_embeddings(tmp_path / "dev.npz"), read_embeddings(tmp_path / "new.npz")
    usual = Cosine(dev.vectors.mean(axis=0))
    pairs = {"dev": (dev, dev), "eval": (new, new), "cross-e": (new, dev), "cross-t": (dev, new)}
    for name, pair in pairs.items():
        write(cohort_matrix(usual.score(*pair)), tmp_path / f"{name}.npz")
    speakers = dict(zip([*dev.ids, *new.ids], [*dev.speakers, *new.speakers], strict=True))
    write(speakers, tmp_path / "utt2spk", format="utt2spk")
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK)
    assert run.exit_code == 0, run.stderr
    assert "centred on their own speakers" in run.stderr
    run = cli("compare", *OWN, "--speakers", "utt2spk", "--self-centered", "correct", *QUICK[:-1], "mended")
    assert run.exit_code == 0, run.stderr
    assert "centred on their own speakers" not in run.stderr
    training = [LabelledBlocks.own_cohort(correct_self_centering(cohort_matrix(usual.score(dev, dev))))]
    tables = {name: cohort_matrix(usual.score(*pair)) for name, pair in pairs.items()}
    blocks = ScoreBlocks(tables["eval"], enroll=tables["cross-e"], test=tables["cross-t"], cohort=tables["dev"])
    wanted = compare(training, [LabelledBlocks(blocks, Labels.of_axes(new, new))], ("raw", "z", "s"), bootstrap=20)
    same_figures(results(tmp_path, "mended"), wanted)
    phrases = ("--phrase-from", "re:-([0-3])$")
    run = cli("compare", *OWN, *phrases, "--speakers", "utt2spk", "--self-centered", "correct", *QUICK[:-1], "x")
    assert run.exit_code == 2
    assert "one matrix, but there are 4" in run.stderr
    run = cli("compare", *VECTORS, "--self-centered", "correct", *QUICK[:-1], "x")
    assert "--self-centered is for scores" in run.stderr


def test_from_embeddings_with_a_key(cli, vectors, file, tmp_path):
    lines = [
        f"new{i}-0 new{j}-{k} {'target' if i == j else 'nontarget'}"
        for i in range(12)
        for j in range(12)
        for k in (1, 2, 3)
    ]
    file("key", "\n".join(lines) + "\n")
    run = cli("compare", *VECTORS, "--key", "key", *QUICK)
    assert run.exit_code == 0, run.stderr
    assert results(tmp_path)["data"]["evaluation"]["trials"] == len(lines)
    file("trials", "\n".join(line.rpartition(" ")[0] for line in lines[:100]) + "\n")
    run = cli("compare", *VECTORS, "--key", "key", "--trials", "trials", *QUICK)
    assert run.exit_code == 2
    assert "trials of the key have no score" in run.stderr
    run = cli("compare", *VECTORS, "--key", "key", "--trials", "trials", "--unmatched", "drop", *QUICK)
    assert run.exit_code == 0, run.stderr
    assert results(tmp_path)["data"]["evaluation"]["trials"] == 100


def test_speakers_of_both_sides_are_refused_loudly(cli, files, tmp_path):
    blocks, _ = files
    known = speakers_of(blocks)
    write(
        {name: speaker.replace("new", "dev") for name, speaker in known.items()}, tmp_path / "utt2spk", format="utt2spk"
    )
    run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK)
    assert run.exit_code == 2
    assert "12 speakers are on the training side and on the evaluation side: 'dev0', 'dev1'" in run.stderr
    assert "--allow-overlap" in run.stderr
    assert not (tmp_path / "out").exists()
    run = cli("compare", *OWN, "--speakers", "utt2spk", "--allow-overlap", *QUICK)
    assert run.exit_code == 0
    assert "warning: 12 speakers are on the training side" in run.stderr
    assert "warning: 12 evaluation speakers are in the cohort: 'dev0'" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the training side with one of --train and --train-embeddings"),
        (("--train", "dev.npz"), "there are no evaluation trials"),
        (("--train", "dev.npz", "--train-embeddings", "x"), "give the training side with one of"),
        (("--score-set", "x"), "load_score_set"),
        (OWN, "dev.npz: the scores have no labels; give --train-key, or --train-speakers"),
        ((*OWN, "--train-key", "dev.key"), "eval.npz: the scores have no labels; give --key, or --speakers"),
        ((*OWN, "--speakers", "utt2spk", "--methods", "q"), "there is no method 'q'"),
        ((*OWN, "--speakers", "utt2spk", "--methods", ","), "--methods is empty"),
        ((*OWN, "--speakers", "utt2spk", "--enroll-map", "x"), "--enroll-map has no meaning with --train"),
        ((*OWN, "--cohort-key", "dev.key"), "--cohort-speakers"),
        ((*OWN, "--speakers", "utt2spk", "--trials", "dev.npz"), "so it is not known which belong together"),
        (("--train-embeddings", "dev.npz"), "--enroll-embeddings, --test-embeddings"),
    ],
)
def test_bad_input_is_refused(cli, files, arguments, message):
    run = cli("compare", *arguments, "-o", "out")
    assert run.exit_code == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_key_must_cover_the_trials(cli, files, tmp_path):
    blocks, labels = files
    part = blocks.trials.to_trials(labels).select(np.arange(50))
    write(part, tmp_path / "part.key", format="csv")
    run = cli("compare", *OWN, "--train-speakers", "utt2spk", "--key", "part.key", *QUICK)
    assert run.exit_code == 2
    assert "382 of the 432 scored trials are not in the key, first ('e1', 't14')" in run.stderr


def test_few_targets_are_warned_of(cli, files, tmp_path):
    blocks, labels = files
    write(blocks.trials.to_trials(labels).select(np.arange(180)), tmp_path / "few.csv")
    command = ["few.csv" if name == "eval.npz" else name for name in OWN]
    run = cli("compare", *command, "--speakers", "utt2spk", *QUICK)
    assert run.exit_code == 0, run.stderr
    assert "warning: only 15 target trials on the evaluation side: the figures are not reliable" in run.stderr
    assert "so these figures are not reliable" in run.stdout.replace("\n", " ")


def test_a_second_run_resumes(cli, files, tmp_path):
    for expected in ([], ["raw", "z", "s"]):
        run = cli("compare", *OWN, "--speakers", "utt2spk", *QUICK)
        assert run.exit_code == 0
        assert results(tmp_path)["run"]["resumed"] == expected
