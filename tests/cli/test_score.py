"""``evenscore score``: the numbers of the library, and those of ``normalize`` on score files of the same embeddings."""

import re
from dataclasses import fields

import numpy as np
import pytest

from evenscore import (
    Cosine,
    DotProduct,
    Embeddings,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    average_embeddings,
    make_cohort,
    read_scores,
    save_model,
    score_embeddings,
    write,
)
from evenscore.cli.norm_options import CohortChoices
from evenscore.norms import NormOptions
from evenscore.sources import LeftOutCenter

ENROLL, TEST, COHORT = 6, 9, 40
SIDES = ("--enroll", "e.npz", "--test", "t.npz")
WITH_COHORT = (*SIDES, "--cohort", "c.npz")


def recorded(prefix, count, people, dtype=np.float64, seed=0):
    """Utterances of some people, with gender."""
    rng = np.random.default_rng([seed, *prefix.encode()])
    vectors = rng.normal(size=(count, 5)).astype(dtype)
    who = [f"{people}{n % 7}" for n in range(count)]
    gender = ["f" if n % 7 < 4 else "m" for n in range(count)]
    return Embeddings([f"{prefix}{n}" for n in range(count)], vectors, who, columns={"gender": gender})


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture
def sets(tmp_path):
    """Embeddings whose first four speakers of the trials are in the cohort, too."""
    made = {"e": recorded("e", ENROLL, "s"), "t": recorded("t", TEST, "s"), "c": recorded("c", COHORT, "c")}
    for name, embeddings in made.items():
        write(embeddings, tmp_path / f"{name}.npz")
    return made


@pytest.fixture
def listed(tmp_path):
    """Labelled trials that repeat their enrolments and tests, in no order."""
    rng = np.random.default_rng(3)
    pairs = rng.permutation(ENROLL * TEST)[:30]
    enroll, test = pairs // TEST, pairs % TEST
    trials = TrialList.from_pairs([f"e{n}" for n in enroll], [f"t{n}" for n in test], labels=enroll % 7 == test % 7)
    write(trials, tmp_path / "list", format="wespeaker")
    return trials


@pytest.fixture
def run(cli, tmp_path):
    """Score, and return what was written."""

    def run(*arguments, output="out.npz"):
        result = cli("score", *arguments, "-o", output)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == result.stderr == ""
        return read_scores(tmp_path / output)

    return run


@pytest.fixture
def refused(cli, tmp_path):
    """Run something that must be refused without an output; return the sentence."""

    def run(*arguments, command="score"):
        result = cli(command, "-o", "out.npz", *arguments)
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "out.npz").exists()
        return result.stderr

    return run


def close(ours, theirs, tolerance=1e-9):
    return np.allclose(ours.scores, theirs.scores, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(("name", "scorer"), [("cosine", Cosine()), ("dot", DotProduct())])
def test_raw_scores_of_a_matrix_and_of_a_list(run, sets, listed, name, scorer):
    matrix = run(*SIDES, "--scorer", name)
    assert isinstance(matrix, ScoreMatrix)
    assert matrix.enroll_ids.tolist() == sets["e"].ids.tolist()
    assert close(matrix, scorer.score(sets["e"], sets["t"]).in_memory())
    for output in ("out.npz", "out.csv", "out"):
        out = run(*SIDES, "--scorer", name, "--trials", "list", output=output)
        assert [out.pair(n) for n in range(30)] == [listed.pair(n) for n in range(30)]
        assert np.array_equal(out.labels, listed.labels)
        assert close(out, score_embeddings(sets["e"], sets["t"], listed, scorer=scorer))


@pytest.mark.parametrize("method", ["z", "t", "zt", "tz", "s", "as", "at", "az"])
def test_same_as_normalize_from_score_files(cli, run, sets, listed, tmp_path, dtype, method):
    """Cohort scores made by ``score`` and given to ``normalize`` lead to the same numbers."""
    for name, embeddings in sets.items():
        vectors = embeddings.vectors.astype(dtype)
        write(Embeddings(embeddings.ids, vectors, embeddings.speakers), tmp_path / f"{name}.npz")
    own = {name: speaker.replace("c", "s") for name, speaker in zip(sets["c"].ids, sets["c"].speakers, strict=True)}
    own |= {name: speaker for side in "et" for name, speaker in zip(sets[side].ids, sets[side].speakers, strict=True)}
    write(own, tmp_path / "utt2spk", format="utt2spk")
    for enroll, test, output in (("e", "t", "S"), ("e", "c", "Se"), ("c", "t", "St"), ("c", "c", "Si")):
        run("--enroll", f"{enroll}.npz", "--test", f"{test}.npz", output=f"{output}.npz")
    run(*SIDES, "--trials", "list", output="S.list.npz")
    # A narrower choice has a smaller standard deviation, which makes the rounding of float32 scores larger than 1e-6.
    top = ("--top-k", "15") if method.startswith("a") else ()
    blocks = ("--enroll", "Se.npz", "--test", "St.npz", "--cohort", "Si.npz", "--speakers", "utt2spk", *top)
    tolerance = 1e-9 if dtype is np.float64 else 1e-6
    for trials, extra in (("S.npz", ()), ("S.list.npz", ("--trials", "list"))):
        done = cli("normalize", "--method", method, "--trials", trials, *blocks, "-o", "expected.npz")
        assert done.exit_code == 0, done.stderr
        out = run(*WITH_COHORT, *extra, "--norm", method, *top, "--speakers", "utt2spk")
        assert close(out, read_scores(tmp_path / "expected.npz"), tolerance)


@pytest.mark.parametrize(
    ("method", "arguments", "options"),
    [
        ("as", ("--top-k", "0.25", "--select", "cross"), {"top_k": 0.25, "select": "cross"}),
        ("as", ("--top-k", "99", "--excess", "clip", "--combine", "sqrt2"), {"top_k": 1.0, "combine": "sqrt2"}),
        ("az", ("--top-k", "9", "--drop-top", "2", "--ddof", "1"), {"top_k": 9, "drop_top": 2, "ddof": 1}),
        ("s", ("--statistic", "trimmed", "--trim", "0.2"), {"statistic": "trimmed", "trim": 0.2}),
        ("t", ("--statistic", "median", "--std-floor", "0.4"), {"statistic": "median", "std_floor": 0.4}),
        ("as", ("--convention", "hyperion", "--top-k", "7", "--ddof", "1"),
         {"convention": "hyperion", "top_k": 7, "ddof": 1}),
        ("z", ("--zero-std", "one", "--vanished", "raw"), {}),
    ],
)  # fmt: skip
def test_options_of_the_norms(run, sets, listed, method, arguments, options):
    expected = score_embeddings(sets["e"], sets["t"], listed, cohort=sets["c"], method=method, **options)
    assert close(run(*WITH_COHORT, "--trials", "list", "--norm", method, *arguments), expected)


@pytest.mark.parametrize("memory", [(), ("--memory-limit", "50MB")])
@pytest.mark.parametrize("name", ["raw", "raw.npz", "matrix.npz", "matrix.zarr"])
def test_scores_that_are_given_are_normalized(cli, sets, listed, tmp_path, name, memory):
    trials = score_embeddings(sets["e"], sets["t"], listed)
    if name.startswith("matrix"):
        trials = score_embeddings(sets["e"], sets["t"]).take(range(ENROLL)[::-1], range(1, TEST))
    found = []
    for sign in (1, -1):
        given = trials.rescored(sign * trials.scores)
        write(given, tmp_path / name)
        done = cli("score", *WITH_COHORT, "--trials", name, "--norm", "as:top_k=9", *memory, "-o", "out.npz")
        assert done.exit_code == 0, done.stderr
        assert ("unlike those that --scorer makes of the same trials (correlation -1.00" in done.stderr) == (sign < 0)
        found.append(read_scores(tmp_path / "out.npz"))
        expected = score_embeddings(sets["e"], sets["t"], given, cohort=sets["c"], method="as", top_k=9)
        assert type(found[-1]) is type(expected)
        assert close(found[-1], expected)
    assert not close(*found)


def test_trials_must_be_trials(refused, sets, tmp_path):
    write(sets["c"], tmp_path / "vectors.npz")
    assert "vectors.npz: it holds embeddings" in refused(*WITH_COHORT, "--norm", "s", "--trials", "vectors.npz")


def test_the_help_explains_every_option_of_the_norms(cli):
    text = re.sub(r"\s+", " ", cli("normalize", "--help").stdout)
    names = ["convention", *(field.name for field in fields(NormOptions))]
    assert [name for name in names if f" {name}" not in text] == []


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("--cohort-unit", "speaker"), {"unit": "speaker"}),
        (("--cohort-unit", "speaker", "--cohort-length-norm", "before"), {"unit": "speaker", "length_norm": "before"}),
        (("--cohort-size", "11", "--seed", "5"), {"size": 11, "seed": 5}),
        (("--cohort-size", "11", "--cohort-pick", "kmeans"), {"size": 11, "pick": "kmeans"}),
        (("--exclude-speakers", "bad"), {"exclude_speakers": ["c1", "nobody"]}),
    ],
)
def test_cohorts(run, sets, file, arguments, options):
    file("bad", "c1\nnobody\n")
    cohort = make_cohort(sets["c"], **options)
    expected = score_embeddings(sets["e"], sets["t"], cohort=cohort, method="s", scorer="dot")
    assert close(run(*WITH_COHORT, "--scorer", "dot", "--norm", "s", *arguments), expected)


@pytest.mark.parametrize("length_norm", ["none", "before", "after", "both"])
def test_enrolments_of_several_utterances(run, sets, file, length_norm):
    file("models", "m1 e0 e2\nm2 e3\nm1 e4\nm3 e0\n")
    models = {"m1": ["e0", "e2", "e4"], "m2": ["e3"], "m3": ["e0"]}
    out = run(*SIDES, "--scorer", "dot", "--enroll-map", "models", "--enroll-length-norm", length_norm)
    assert out.enroll_ids.tolist() == ["m1", "m2", "m3"]
    expected = average_embeddings(sets["e"], models, length_norm=length_norm)
    assert close(out, DotProduct().score(expected, sets["t"]).in_memory())


def test_speakers_of_averaged_enrolments(run, sets, file, tmp_path):
    """A model's speaker is its own in the map, else that of its utterances."""
    file("models", "m1 e0 e2\nm2 e3 e4\n")
    spoken = {**{f"e{n}": "x" for n in (0, 2)}, "m2": "y", **{f"t{n}": f"t{n}" for n in range(TEST)}}
    write(spoken, tmp_path / "utt2spk", format="utt2spk")
    own = {name: "x" if n % 3 == 0 else "y" if n % 3 == 1 else "z" for n, name in enumerate(sets["c"].ids)}
    write(own, tmp_path / "cohort.utt2spk", format="utt2spk")
    models = average_embeddings(sets["e"], {"m1": ["e0", "e2"], "m2": ["e3", "e4"]}).with_speakers(["x", "y"])
    tests, cohort = sets["t"].with_speakers(spoken), sets["c"].with_speakers(own)
    expected = score_embeddings(models, tests, cohort=cohort, method="s")
    maps = ("--speakers", "utt2spk", "--cohort-speakers", "cohort.utt2spk")
    assert close(run(*WITH_COHORT, "--enroll-map", "models", "--norm", "s", *maps), expected)


@pytest.mark.parametrize("source", ["gender", "column:gender"])
@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_conditions(cli, run, sets, tmp_path, source, unit):
    gender = {
        name: value
        for embeddings in sets.values()
        for name, value in zip(embeddings.ids, embeddings.columns["gender"], strict=True)
    }
    write(gender, tmp_path / "gender", format="utt2spk")
    cohort = make_cohort(sets["c"], unit=unit)
    expected = score_embeddings(sets["e"], sets["t"], cohort=cohort, method="s", condition="gender")
    assert not close(score_embeddings(sets["e"], sets["t"], cohort=cohort, method="s"), expected)
    arguments = ("--norm", "s", "--conditions", source, "--cohort-unit", unit)
    assert close(run(*WITH_COHORT, *arguments), expected)


def test_conditions_of_score_files(cli, run, sets, file, tmp_path):
    gender = "".join(f"e{n} -\n" if n == 0 else f"e{n} f\n" for n in range(ENROLL))
    file("gender", gender + "".join(f"t{n} m\n" for n in range(TEST)))
    file("cohort.gender", "".join(f"c{n} {'fm'[n % 2]}\n" for n in range(COHORT)))
    maps = ("--conditions", "gender", "--cohort-conditions", "cohort.gender")
    out = run(*WITH_COHORT, "--norm", "s", *maps)
    for enroll, test, output in (("e", "t", "S"), ("e", "c", "Se"), ("c", "t", "St")):
        run("--enroll", f"{enroll}.npz", "--test", f"{test}.npz", output=f"{output}.npz")
    blocks = ("--trials", "S.npz", "--enroll", "Se.npz", "--test", "St.npz")
    assert cli("normalize", "--method", "s", *blocks, *maps, "-o", "n.npz").exit_code == 0
    assert close(out, read_scores(tmp_path / "n.npz"))


def test_a_center(run, sets):
    scorer = Cosine(mean=sets["c"].vectors.mean(axis=0))
    expected = score_embeddings(sets["e"], sets["t"], cohort=sets["c"], method="s", scorer=scorer)
    assert close(run(*WITH_COHORT, "--norm", "s", "--center", "c.npz"), expected)


def test_a_center_without_the_speakers_of_each_pair(cli, run, sets, tmp_path):
    wanted = score_embeddings(sets["e"], sets["t"], scorer=LeftOutCenter(sets["e"]))
    assert close(run(*SIDES, "--scorer", "cosine:center=e.npz:leave_out=speakers"), wanted)
    write(Embeddings(sets["e"].ids, sets["e"].vectors), tmp_path / "nobody.npz")
    refused = cli("score", *SIDES, "--scorer", "cosine:center=nobody.npz:leave_out=speakers", "-o", "x.npz")
    assert refused.exit_code == 2
    assert "nobody.npz have no speakers to leave out" in refused.stderr


def test_plda(cli, run, sets):
    from evenscore.files.models import load_plda

    assert cli("plda", "c.npz", "-o", "p.json").exit_code == 0
    scorer = load_plda("p.json")
    expected = score_embeddings(sets["e"], sets["t"], cohort=sets["c"], method="zt", scorer=scorer)
    assert close(run(*WITH_COHORT, "--norm", "zt", "--scorer", "plda", "--plda", "p.json"), expected, 1e-8)


def test_the_score_model(cli, run, sets, tmp_path):
    model = ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.2]], beta=[[0.1], [0.1]], sigma2=[0.1, 0.1])
    save_model(model, tmp_path / "m.json")
    out = run(*WITH_COHORT, "--norm", "lgsm", "--model", "m.json")
    expected = score_embeddings(sets["e"], sets["t"], cohort=sets["c"], method="lgsm", model=model)
    assert close(out, expected)


def test_one_file_for_everything(run, sets, file):
    """Trials within the cohort leave out their own utterances and speakers."""
    file("list", "c1 c3 nontarget\nc0 c7 target\n")
    trials = TrialList.from_pairs(["c1", "c0"], ["c3", "c7"])
    expected = score_embeddings(sets["c"], sets["c"], trials, cohort=sets["c"], method="as", top_k=4)
    same = ("--enroll", "c.npz", "--test", "c.npz", "--cohort", "c.npz", "--trials", "list")
    assert close(run(*same, "--norm", "as", "--top-k", "4"), expected)


def test_standard_output(cli, sets, listed):
    done = cli("score", *SIDES, "--trials", "list", "-o", "-")
    first = done.stdout.splitlines()[0].split()
    assert first[:2] == list(listed.pair(0))
    assert first[3] in ("target", "nontarget")
    plain = cli("score", *SIDES, "--trials", "list", "-o", "-", "--to", "kaldi").stdout.splitlines()
    assert len(plain[0].split()) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((*SIDES, "--norm", "as"), "to normalize scores of embeddings, --cohort-embeddings is needed too"),
        (WITH_COHORT, "the norm lgsm needs a trained model"),
        ((*SIDES, "-o", "no/where.npz"), "no/where.npz: its directory does not exist"),
        ((*WITH_COHORT, "--norm", "q"), "there is no norm 'q'"),
        ((*WITH_COHORT, "--norm", "lgsm"), "needs a trained model"),
        ((*WITH_COHORT, "--norm", "as", "--top-k", "41"), "top_k is 41, but the cohort has only 40 members"),
        ((*WITH_COHORT, "--norm", "as", "--top-k", "x"), "top_k is 'x', but must be a count"),
        ((*WITH_COHORT, "--norm", "s", "--top-k", "5"), "so top_k has no meaning; use 'as'"),
        ((*WITH_COHORT, "--norm", "as", "--convention", "x"), "there is no convention 'x'"),
        ((*WITH_COHORT, "--norm", "s", "--drop-top", "40"), "drop_top is 40"),
        ((*WITH_COHORT, "--norm", "s", "--memory-limit", "much"), "--memory-limit is 'much'"),
        ((*WITH_COHORT, "--norm", "s", "--memory-limit", "0GB"), "--memory-limit is '0GB'"),
        ((*WITH_COHORT, "--norm", "s", "--cohort-size", "41"), "the cohort size is 41, but must be from 1 to 40"),
        ((*WITH_COHORT, "--norm", "s", "--exclude-speakers", "all"), "nobody is left in the cohort"),
        ((*WITH_COHORT, "--norm", "s", "--speakers", "few"), "few has no speaker for enrolment 'e1'"),
        ((*WITH_COHORT, "--norm", "s", "--conditions", "few"), "few has no condition for enrolment 'e1'"),
        ((*WITH_COHORT, "--norm", "s", "--conditions", "column:age"), "no column 'age'"),
        ((*WITH_COHORT, "--norm", "s", "--cohort-conditions", "few"), "give --conditions of the trials, too"),
        ((*SIDES, "--scorer", "plda"), "--scorer plda needs a trained PLDA"),
        ((*SIDES, "--enroll-map", "odd.map"), "utterance 'u1' not in the embeddings"),
        ((*SIDES, "--enroll-map", "all"), "all:1: expected a model and its utterances, found 1 column"),
        ((*SIDES, "--enroll-map", "twice.map"), "twice.map:2: 'e0' belongs to 'm' already"),
        ((*SIDES, "--enroll-length-norm", "before"), "name a file of --enroll-map"),
        ((*SIDES, "--trials", "odd.list"), "enrolment 'e99' not in the embeddings"),
        (("--enroll", "e.npz", "--test", "wide.npz"), "enrolments have 5 dimensions, but tests have 7"),
        (("--enroll", "e.npz", "--test", "list"), "expected embeddings"),
        (("--enroll", "e.npz", "--test", "absent"), "absent: there is no such file"),
    ],
)
def test_refusals(refused, sets, listed, file, tmp_path, arguments, reason):
    file("all", "".join(f"c{n}\n" for n in range(7)))
    file("few", "e0 x\ne5 x\n")
    file("odd.map", "m u1\n")
    file("twice.map", "m e0 e1\nm e0\n")
    file("odd.list", "e99 t0 target\ne0 t0 target\n")
    write(Embeddings(["t0"], np.ones((1, 7))), tmp_path / "wide.npz")
    assert reason in refused(*arguments)


def test_a_cohort_without_spread(refused, run, sets, tmp_path):
    write(Embeddings(["c1", "c2"], np.ones((2, 5))), tmp_path / "c.npz")
    message = refused(*WITH_COHORT, "--norm", "s")
    assert "standard deviation of zero" in message
    assert "give a std_floor, zero_std='one', or a larger cohort" in message
    assert np.isfinite(run(*WITH_COHORT, "--norm", "s", "--std-floor", "0.1").scores).all()


def test_a_cohort_that_vanishes_for_some_trials(refused, run, sets, listed, tmp_path):
    """They are named, and the policy is an option."""
    write(sets["c"].with_speakers(["s1"] * COHORT), tmp_path / "c.npz")
    lost = np.array(["1" in "".join(listed.pair(n)).replace("8", "1") for n in range(30)])  # e1, t1 and t8 are of s1
    message = refused(*WITH_COHORT, "--trials", "list", "--norm", "s")
    assert f"{lost.sum()} trials have no cohort left" in message
    assert " ".join(listed.pair(int(np.argmax(lost)))) in message
    assert "decide with vanished='raw' or 'missing'" in message
    policy = (*WITH_COHORT, "--trials", "list", "--norm", "s", "--vanished")
    raw = run(*SIDES, "--trials", "list", output="raw.npz").scores
    assert np.array_equal(run(*policy, "raw").scores == raw, lost)
    assert len(run(*policy, "missing")) == 30 - lost.sum()


def test_score_files_whose_cohorts_do_not_line_up(run, refused, sets, tmp_path):
    for enroll, test, output in (("e", "t", "S"), ("e", "c", "Se"), ("c", "t", "St")):
        run("--enroll", f"{enroll}.npz", "--test", f"{test}.npz", output=f"{output}.npz")
    write(read_scores(tmp_path / "St.npz").take(np.arange(30), None), tmp_path / "St.npz")
    blocks = ("--trials", "S.npz", "--enroll", "Se.npz", "--test", "St.npz")
    message = refused("--method", "as", "--top-k", "5", "--select", "cross", *blocks, command="normalize")
    assert "select='cross' needs the same cohort on both sides" in message
    message = refused("--method", "zt", *blocks, "--cohort", "S.npz", command="normalize")
    assert "do not line up" in message


def test_cohort_options_have_defaults_that_choose_everybody(sets):
    assert CohortChoices().chosen(sets["c"]) == sets["c"]
