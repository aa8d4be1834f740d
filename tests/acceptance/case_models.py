"""Cases of what is trained: score models, calibrations, PLDA, `compare`, and the public API of Python."""

import numpy as np
from case_run import Case

BLOCKS = "--trials trials.scores --enroll-cohort enroll.scores --test-cohort test.scores"
FOUR = f"{BLOCKS} --cohort cohort.scores --cohort-key cohort.key"
GAPS = "--trials trials_gaps.scores --enroll-cohort enroll_gaps.scores --test-cohort test_gaps.scores"
OWN = (
    "--trials own_trials.scores --enroll-cohort own_enroll.scores --test-cohort own_test.scores"
    " --cohort own_cohort.scores --speakers own.utt2spk --cohort-speakers own_cohort.utt2spk"
)
TRAIN = "--train dev.scores --train-key dev.key"
SIDES = "--enroll-embeddings xenroll.npz --test-embeddings xtest.npz"
VECTORS = f"{SIDES} --cohort-embeddings xcohort.npz --trials x.trials"
KNOWN = "--speakers utt2spk --cohort-speakers cohort.utt2spk"
EM = ":tol=1e-15:max_iter=20000:residuals=gaussian"
BEHIND_EM = 1e-6

CALIBRATIONS = {
    "logistic": "logistic",
    "gaussian": "gaussian",
    "pav": "pav",
    "bayesian": "bayesian",
    "saturating": "saturating:l2=1e-3",
    "unsupervised": "unsupervised",
}
#: Model files of today's program, and the commands that made them.
MODEL_FILES = {
    **{
        f"lgsm{d}.json": f"fit --norm lgsm:dim={d}{EM} --scores dev.scores --key dev.key -o lgsm{d}.json"
        for d in (0, 1, 2)
    },
    "lgsm2_densities.json": "fit --norm lgsm:dim=2 --scores dev.scores --key dev.key -o lgsm2_densities.json",
    **{
        f"{name}.json": f"calibrate {TRAIN} --calibration {spec} --save {name}.json"
        for name, spec in CALIBRATIONS.items()
    },
    "fusion.json": "calibrate --train dev.scores --train dev2.scores --train-key dev.key --save fusion.json",
    "bounded.json": "calibrate --train clear.scores --train-key clear.key --calibration saturating --save bounded.json",
    "plda.json": "plda xdev.npz --shrinkage 0 --lda-dim 5 -o plda.json",
    "verifier.npz": "verifier --norm as:top_k=20 --cohort-embeddings xcohort.npz --calibration logistic.json"
    " -o verifier.npz",
}

# The score model


def lgsm(name, rest, model="lgsm2", out="out.scores"):
    """Make a case of scoring with a model file of today."""
    command = f"normalize --norm lgsm --model models/{model}.json {rest} -o {out}"
    return Case(name=f"lgsm/{name}", commands=(command,), files=(out,))


def fit(name, norm, data, use=FOUR, tol=BEHIND_EM):
    """Make a case of training, with the likelihood and the LLRs that the model gives."""
    commands = (
        f"normalize --norm lgsm --model m.json {use} -o out.scores",
        f"fit --norm {norm} {data} -o m.json --json",
    )
    return Case(name=f"fit/{name}", commands=commands[::-1], files=("out.scores",), tol=tol)


LGSM = [
    *(lgsm(f"dim-{d}", FOUR, f"lgsm{d}") for d in (0, 1, 2)),
    lgsm("densities", FOUR, "lgsm2_densities"),
    lgsm("no-cohort", "--trials trials.scores"),
    lgsm("enroll-side", "--trials trials.scores --enroll-cohort enroll.scores"),
    lgsm("test-side", "--trials trials.scores --test-cohort test.scores"),
    lgsm("no-cohort-scores", BLOCKS),
    lgsm("cohort-unlabelled", f"{BLOCKS} --cohort cohort.scores"),
    lgsm("known-targets", f"{FOUR} --enroll-key enroll.key --test-key test.key"),
    lgsm("known-enroll-targets-dim-1", f"{FOUR} --enroll-key enroll.key", "lgsm1"),
    lgsm("list", f"{FOUR.replace('trials.scores', 'trials_gaps.scores')}", out="out.csv"),
    lgsm("gaps", f"{GAPS} --cohort cohort_gaps.scores --cohort-key cohort_gaps.key"),
    lgsm("gaps-no-cohort-scores", GAPS),
    lgsm("own-speakers", OWN),
    lgsm("own-speakers-dim-1", OWN, "lgsm1"),
    lgsm("zarr", FOUR.replace(".scores", ".zarr"), out="out.zarr"),
    lgsm("embeddings", VECTORS),
    lgsm("embeddings-all-pairs", VECTORS.replace("--trials x.trials", ""), out="out.npz"),
]
DEV = "--scores dev.scores --key dev.key"
FIT = [
    *(fit(f"dim-{d}", f"lgsm:dim={d}{EM}", DEV) for d in (0, 1, 2)),
    Case(
        name="fit/likelihood",
        commands=(f"fit --norm lgsm:dim=2{EM} {DEV} -o m.json --json",),
        json=("log_likelihood", "scores", "matrices", "model.mu", "model.sigma2", "model.variances.nontarget.nu"),
        tol=BEHIND_EM,
    ),
    fit("speaker-map", f"lgsm:dim=1{EM}", "--scores dev.npz --speakers utt2spk"),
    fit("gaps", f"lgsm:dim=1{EM}", "--scores dev_gaps.scores --key dev_gaps.key"),
    fit("zarr", f"lgsm:dim=2{EM}", "--scores dev.zarr --key dev.key"),
    fit("two-matrices", f"lgsm:dim=2{EM}", "--scores pa.scores --key pa.key --scores pb.scores --key pb.key"),
    # EM stops where the likelihood gains no digit more; which iteration that is hangs on the last bit of the sums.
    fit(
        "embeddings",
        f"lgsm:dim=1{EM}",
        "--enroll-embeddings xdev_enroll.npz --test-embeddings xdev_test.npz",
        VECTORS,
        tol=1e-5,
    ),
    Case(
        name="fit/evidence",
        commands=(
            f"fit --norm evidence {DEV} -o m.json",
            f"normalize --norm evidence --model m.json {FOUR} {KNOWN} -o out.scores",
        ),
        check=lambda folder: check_finite(folder / "out.scores", 864),
    ),
]


def check_finite(path, n):
    """Check that a text file has n trials with finite scores: numbers of this model are not those of today."""
    scores = [float(line.split()[2]) for line in path.read_text().splitlines()]
    assert len(scores) == n
    assert np.isfinite(scores).all()


# Calibration


def calibrate(name, arguments, out="out.scores", tol=BEHIND_EM):
    return Case(name=f"calibrate/{name}", commands=(f"calibrate {arguments} -o {out}",), files=(out,), tol=tol)


META = "--quality log:test:dur,min:snr --metadata utt2dur --metadata meta.csv"
CALIBRATE = [
    *(
        calibrate(name, f"{TRAIN} --calibration {spec} trials.scores")
        for name, spec in (
            *CALIBRATIONS.items(),
            ("logistic-prior", "logistic:p_target=0.05:l2=0.01"),
            ("gaussian-shared", "gaussian:shared_variance=true"),
            ("pav-smoothing", "pav:smoothing=2"),
            ("saturating-default", "saturating"),
        )
    ),
    calibrate("default", f"{TRAIN} trials.scores", "out.npz"),
    calibrate("gaps", "--train dev_gaps.scores --train-key dev_gaps.key trials_gaps.scores"),
    calibrate("matrix", "--train dev.npz --train-key dev.key trials.npz", "out.npz"),
    calibrate("zarr", "--train dev.zarr --train-key dev.key trials.zarr", "out.zarr"),
    calibrate("speaker-map", "--train dev.scores --speakers utt2spk trials.scores"),
    calibrate("fusion", "--train dev.scores --train dev2.scores --train-key dev.key trials.scores trials2.scores"),
    calibrate("quality", f"{TRAIN} {META} trials.scores"),
    calibrate(
        "fusion-quality",
        f"--train dev.scores --train dev2.scores --train-key dev.key {META} trials.scores trials2.scores",
    ),
    Case(
        name="calibrate/save-and-load",
        commands=(f"calibrate {TRAIN} --save c.json", "calibrate --load c.json trials.scores -o out.scores"),
        files=("out.scores",),
        tol=BEHIND_EM,
    ),
    *(
        calibrate(
            f"cross-validate-{name}",
            f"--cross-validate {n} --calibration {name} --key trials.key trials.scores --speakers utt2spk",
        )
        for name, n in (("logistic", 12), ("gaussian", 12))
    ),
]
LOADED = {
    **{name: f"calibrate --load models/{name}.json trials.scores -o out.npz" for name in CALIBRATIONS},
    "fusion": "calibrate --load models/fusion.json trials.scores trials2.scores -o out.npz",
    "bounded": "calibrate --load models/bounded.json trials.scores -o out.npz",
    "plda": f"score {SIDES} --scorer plda:model=models/plda.json -o out.npz",
}
SHOWN = ("dim", "mu", "sigma2", "variances")
MODELS = [
    *(Case(name=f"models/{name}", commands=(line,), files=("out.npz",)) for name, line in LOADED.items()),
    *(
        Case(name=f"models/show-{d}", commands=(f"model show models/lgsm{d}.json --json",), json=SHOWN)
        for d in (0, 1, 2)
    ),
    Case(name="models/show-text", commands=("model show models/lgsm2.json",)),
]

# Embeddings


def score(name, arguments, out="out.scores"):
    return Case(name=f"score/{name}", commands=(f"score {arguments} -o {out}",), files=(out,))


SCORE = [
    score("cosine", f"{SIDES} --trials x.trials"),
    score("all-pairs", SIDES, "out.npz"),
    score("dot", f"{SIDES} --trials x.trials --scorer dot"),
    score("center", f"{SIDES} --trials x.trials --scorer cosine:center=xcohort.npz"),
    score("kaldi-plda", f"{SIDES} --trials x.trials --scorer plda:model=kaldi.plda"),
    score("models", f"{SIDES} --trials x.models.trials --enroll-map x.models"),
    score("models-length-norm", f"{SIDES} --trials x.models.trials --enroll-map x.models:length_norm=before"),
    score("to-wespeaker", f"{SIDES} --trials x.trials --to wespeaker", "out.txt"),
    score("to-zarr", SIDES, "out.zarr"),
]
TRAIN_PLDA = "plda xdev.npz --shrinkage 0"
PLDA = [
    Case(
        name=f"plda/{name}",
        commands=(*commands, f"score {SIDES} --trials x.trials --scorer plda:model=p.json -o out.scores"),
        files=("out.scores",),
        tol=5e-4,  # EM ends where an iteration gains little, before the numbers settle
    )
    for name, commands in {
        "em": (f"{TRAIN_PLDA} --no-length-norm -o p.json",),
        "length-norm": (f"{TRAIN_PLDA} -o p.json",),
        "lda": (f"{TRAIN_PLDA} --lda-dim 5 -o p.json",),
        "adapted": (f"{TRAIN_PLDA} -o q.json", "plda xcohort.npz --adapt q.json -o p.json"),
    }.items()
]

# Comparison, simulation, demo

FIGURES = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "auc")


def compare(name, arguments, methods, tol=BEHIND_EM):
    keys = tuple(f"report/results.json:methods.{m}.figures.{figure}" for m in methods for figure in FIGURES)
    command = f"compare {arguments} --methods {','.join(methods)} --bootstrap 20 -o report"
    return Case(name=f"compare/{name}", commands=(command,), json=keys, files=("report/report.html",), tol=tol)


CLASSICAL = ("raw", "z", "t", "s", "zt", "as:top_k=10")
EVAL = f"{TRAIN} --trials trials.scores --key trials.key --speakers utt2spk"
CROSS = "--cohort dev_x_eval.scores --cohort eval_x_dev.scores"
COMPARE = [
    compare("scores", f"{EVAL} {CROSS}", CLASSICAL),
    compare("blocks", f"{EVAL} --enroll-cohort eval_x_dev.scores --test-cohort dev_x_eval.scores", ("raw", "s")),
    compare("embeddings", f"--train-embeddings xdev.npz {SIDES} --key x.trials", ("raw", "s", "as:top_k=20")),
    compare("gaussian-calibration", f"{EVAL} {CROSS} --calibration gaussian", ("raw", "s")),
    Case(
        name="demo/demo",
        commands=("demo --methods raw,s --bootstrap 20 -o out --json",),
        files=("out/*/report.html",),
    ),
]


def check_simulated(folder):
    """Check ids and moments: another program draws other scores from a seed."""
    with np.load(folder / "sim" / "trials.npz") as trials, np.load(folder / "sim" / "cohort.npz") as cohort:
        assert trials["scores"].shape == (60, 120)
        assert cohort["scores"].shape == (40, 80)
        assert abs(np.median(trials["scores"]) + 10) < 3
        key = [line.split() for line in (folder / "sim" / "key.trials").read_text().splitlines()]
        assert len(key) == 60 * 120
        assert sum(label == "target" for _, _, label in key) == 30 * 2 * 4


SIMULATE = [
    Case(
        name="simulate/blocks",
        commands=("simulate --speakers 30 --cohort-speakers 20 --seed 3 -o sim",),
        check=check_simulated,
    ),
    Case(
        name="simulate/one-file",
        commands=("simulate --model models/lgsm1.json --speakers 5 -o one.csv", "info one.csv --json"),
        json=("0.trials", "0.labels"),
    ),
]

CASES = [*LGSM, *FIT, *CALIBRATE, *MODELS, *SCORE, *PLDA, *COMPARE, *SIMULATE]
