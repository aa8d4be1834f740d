"""Cases of files and figures: `convert`, `info`, `formats`, errors, `evaluate`, `plot`."""

from case_run import Case

# Files


def convert(name, given, out, options=""):
    """Make a case of one convert command."""
    return Case(name=f"convert/{name}", commands=(f"convert {given} {out} {options}",), files=(out,))


READ_SCORES = (
    *("kaldi.scores", "wespeaker.scores", "wespeaker_norm.scores", "speechbrain.scores", "espnet.scores"),
    *("nist.tsv", "nist21.tsv", "asvspoof5.tsv", "table.tsv", "windows.scores", "packed.scores.gz"),
    *("table.parquet", "list.npz", "matrix.npz", "matrix.zarr", "bosaris.h5", "sidekit.h5", "dca.h5", "pybosaris.h5"),
)
READ_KEYS = (
    *("kaldi.key", "kaldi.list", "voxceleb.trials", "nist_key.tsv", "bosaris_key.h5", "bosaris_old_key.h5"),
    *("bosaris_ndx.h5", "pybosaris_key.h5"),
)
READ_VECTORS = (
    *("vec_by_id.npz", "vec.npy", "vec.h5", "vec_by_id.h5", "vec.parquet", "vec_text.ark", "vec.ark", "vec.scp"),
)
TEXT = ("kaldi", "wespeaker", "speechbrain", "espnet", "nist")
CONVERT = [
    *(convert(f"read-{name}", name, "out.csv") for name in READ_SCORES),
    convert("read-factors", "factors.scores", "out.csv", "--from wespeaker-factors"),
    convert("read-bob", "bob.scores", "out.csv", "--from bob"),
    convert("read-score-column", "asvspoof5.tsv", "out.csv", "--score-column cm-score"),
    *(convert(f"read-{name}", name, "out.csv") for name in READ_KEYS),
    *(convert(f"read-{name}", name, "out.npz") for name in READ_VECTORS),
    convert("read-utt2spk", "fmt.utt2spk", "out", "--to spk2utt"),
    convert("read-spk2utt", "fmt.spk2utt", "out", "--to utt2spk"),
    *(convert(f"write-{name}", "table.csv", "out", f"--to {name}") for name in TEXT),
    *(convert(f"write-{name}", "table.csv", f"out.{name}") for name in ("tsv", "parquet", "npz", "zarr", "h5")),
    convert("write-factors", "factors.scores", "out", "--from wespeaker-factors --to wespeaker-factors"),
    convert("write-voxceleb", "kaldi.key", "out", "--to voxceleb"),
    convert("write-kaldi-key", "voxceleb.trials", "out", "--to kaldi"),
    convert("write-old-key", "kaldi.key", "out.h5", "--to bosaris-old-key"),
    convert("write-key-npz", "kaldi.key", "out.npz"),
    convert("write-matrix-npz", "kaldi.scores", "out.npz", "--matrix"),
    convert("write-matrix-zarr", "matrix.npz", "out.zarr"),
    convert("write-matrix-h5", "matrix.npz", "out.h5"),
    *(convert(f"write-vectors-{end}", "vec.npz", f"vectors.{end}") for end in ("ark", "parquet", "h5", "zarr", "npy")),
    convert("write-vectors-scp", "vec.npz", "vectors.scp"),
    convert("write-vectors-ark-text", "vec.npz", "vectors", "--to kaldi-ark-text"),
    convert("vectors-with-speakers", "vec.scp", "out.npz", "--speakers vec.utt2spk"),
    convert("with-key", "kaldi.scores", "out.csv", "--key kaldi.key"),
    convert("with-speakers", "kaldi.scores", "out.csv", "--speakers fmt.utt2spk"),
    convert("together", "pa.scores pb.scores", "out.scores"),
    convert("unmatched-drop", "trials.scores", "out.csv", "--key trials_gaps.key --unmatched drop"),
    convert("missing-skip", "nan.scores", "out.scores", "--missing skip"),
    convert("columns", "table.csv", "out.parquet"),
]

# Errors: exit code 2, the culprit is named, nothing is written

SHORT = {
    "BLOCKS": "--trials trials.scores --enroll-cohort enroll.scores --test-cohort test.scores",
    "OWN": "--speakers own.utt2spk --cohort-speakers own_cohort.utt2spk",
    "TRAIN": "--train dev.scores --train-key dev.key",
    "ONE": "--trials own_trials.scores --enroll-cohort own_one_enroll.scores",
    "SIDES": "--enroll-embeddings xenroll.npz --test-embeddings xtest.npz",
}
#: Name, culprit, command.
REFUSED = """
bad-line             bad_line.scores:3    convert bad_line.scores out.csv
bad-number           bad_number.scores:3  convert bad_number.scores out.csv
nan-score            nan.scores:3         convert nan.scores out.csv
nan-in-normalize     nan.scores:3         normalize --norm z --trials nan.scores --enroll-cohort enroll.scores -o out
twice                twice.scores         convert twice.scores out.csv
empty                empty.scores         convert empty.scores out.csv
missing-file         nowhere.scores       convert nowhere.scores out.csv
missing-cohort-file  nowhere.npz          normalize --norm z --trials trials.scores --enroll-cohort nowhere.npz -o out
garbage              garbage.bin          convert garbage.bin out.csv
broken-npz           broken.npz           convert broken.npz out.csv
broken-hdf5          broken.h5            convert broken.h5 out.csv
unknown-format       nonsense             convert kaldi.scores out --to nonsense
unknown-norm         quux                 normalize --norm quux BLOCKS -o out
unknown-norm-option  topp                 normalize --norm as:topp=3 BLOCKS -o out
bad-norm-value       top_k                normalize --norm as:top_k=-3 BLOCKS -o out
top-k-above-cohort   500                  normalize --norm as:top_k=500 BLOCKS -o out
unknown-convention   nobody               normalize --norm as:convention=nobody BLOCKS -o out
no-cohort-scores     enroll               normalize --norm z --trials trials.scores -o out
no-cohort-itself     cohort               normalize --norm zt BLOCKS -o out
no-model             --model              normalize --norm lgsm BLOCKS -o out
mismatched-cohort    dev_spk00_e0         normalize --norm z --trials dev.scores --enroll-cohort enroll.scores -o out
mismatched-key       eval_spk30_e0        evaluate trials.scores --key other.key
unmatched-key        eval_spk30_e         evaluate trials.scores --key trials_gaps.key
nobody-in-cohort     own_spk              normalize --norm z ONE OWN -o out
unknown-command      normalise            normalise --norm s
unknown-option       --nonsense           convert kaldi.scores out.csv --nonsense 3
unknown-calibration  quux                 calibrate --calibration quux TRAIN trials.scores -o out
no-labels            trials.scores        evaluate trials.scores
one-class            target               fit --norm lgsm --scores one.scores --key one.key -o m.json
broken-model         broken.json          normalize --norm lgsm --model broken.json BLOCKS -o out
no-embedding         eval_spk30_e0        score SIDES --trials trials.key -o out
unknown-scorer       quux                 score SIDES --scorer quux -o out
unknown-plot         quux                 plot quux trials.scores --key trials.key -o out.svg
unknown-output       nowhere              convert kaldi.scores nowhere/out.csv
"""
ERRORS = [
    Case(
        name=f"errors/{name}",
        commands=(" ".join(SHORT.get(word, word) for word in command.split()),),
        code=2,
        culprit=culprit,
    )
    for name, culprit, command in (line.split(maxsplit=2) for line in REFUSED.strip().splitlines())
]

# What is in files

COUNTS = tuple(f"0.{key}" for key in ("kind", "enrolments", "tests", "trials", "missing"))
INFO = [
    Case(
        name="info/scores-with-key",
        commands=("info trials.scores --key trials.key --json",),
        json=(*COUNTS, "0.labels", "0.scores.target", "0.scores.nontarget"),
    ),
    Case(name="info/text", commands=("info trials.scores --key trials.key",)),
    Case(name="info/gaps", commands=("info matrix.npz --json",), json=(*COUNTS, "0.scores.all")),
    Case(name="info/store", commands=("info trials.zarr --json",), json=(*COUNTS, "0.scores.all")),
    Case(name="info/key", commands=("info kaldi.key --json",), json=("0.kind", "0.format", "0.trials", "0.labels")),
    Case(name="info/hdf5", commands=("info bosaris.h5 --json",), json=(*COUNTS, "0.format")),
    Case(
        name="info/vectors",
        commands=("info vec.npz --json",),
        json=("0.kind", "0.format", "0.vectors", "0.dimensions", "0.speakers", "0.lengths"),
    ),
    Case(name="info/several", commands=("info vec.scp fmt.utt2spk table.csv --json",), json=("1.kind", "2.trials")),
    Case(name="formats/text", commands=("formats",)),
    Case(name="formats/json", commands=("formats --json",), json=("0.name",)),
]

# Figures

FIGURES = ("eer", "eer_threshold", "min_dcf", "act_dcf", "cllr", "min_cllr", "auc", "n_target", "n_nontarget")
POOLED = tuple(f"pooled.{figure}" for figure in FIGURES)
RATES = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")
SPOOFING = ("sasv_eer", "sv_eer", "spf_eer", "min_a_dcf", "act_a_dcf")
LABELLED = "trials.scores --key trials.key"


def evaluate(name, arguments, keys=POOLED, tol=1e-9):
    """Make a case of one evaluate command."""
    return Case(name=f"evaluate/{name}", commands=(f"evaluate {arguments} --json",), json=keys, tol=tol)


EVALUATE = [
    evaluate("pooled", LABELLED),
    Case(name="evaluate/text", commands=(f"evaluate {LABELLED}",)),
    *(evaluate(f"eer-{m}", f"{LABELLED} --eer {m}") for m in ("interpolated", "nearest-mean", "nearest-max", "kaldi")),
    *(
        evaluate(
            f"ties-{m}", f"ties.scores --key ties.key --eer {m}", ("pooled.eer", "pooled.min_dcf", "pooled.min_cllr")
        )
        for m in ("rocch", "interpolated", "nearest-mean", "nearest-max", "kaldi")
    ),
    evaluate(
        "points",
        f"{LABELLED} --points 0.05 --points 0.01,10,1",
        (
            "pooled.min_c_primary",
            "pooled.act_c_primary",
            "pooled.dcf.0.min_dcf",
            "pooled.dcf.1.act_dcf",
            "pooled.dcf.1.min_dcf",
        ),
    ),
    evaluate("no-normalize", f"{LABELLED} --points 0.05 --no-normalize"),
    evaluate("gaps", "trials_gaps.scores --key trials_gaps.key"),
    evaluate("unmatched", "trials.scores --key trials_gaps.key --unmatched drop"),
    evaluate("speaker-map", "trials.scores --speakers utt2spk"),
    evaluate("own-labels", "table.csv"),
    evaluate("zarr", "trials.zarr --key trials.key"),
    evaluate("npy", "trials_store.npy --key trials.key"),
    evaluate(
        "systems",
        "trials.scores trials2.scores --key trials.key",
        tuple(f"systems.{n}.pooled.{k}" for n in (0, 1) for k in RATES),
    ),
    *(
        evaluate(
            f"by-{column.replace(':', '-')}",
            f"{LABELLED} --metadata meta.csv --by {column} {more}",
            (*POOLED, *(f"conditions.{column}.{value}.{k}" for value in values for k in RATES)),
        )
        for column, values, more in (
            ("test:gender", "fm", ""),
            ("enroll:gender", "fm", "--equalize"),
            ("pair:gender", ("f-f", "m-m"), ""),
            ("same:gender", ("same",), ""),
        )
    ),
    *(
        evaluate(
            preset,
            f"trials.scores --key nist.key --preset {preset}",
            ("pooled.eer", "pooled.min_c_primary", "pooled.act_c_primary"),
        )
        for preset in ("sre16", "sre18", "sre19", "sre19-av")
    ),
    evaluate("spoof", "spoof.scores --key spoof.key --spoof a-dcf", SPOOFING),
    evaluate("spoof-asvspoof5", "spoof.scores --key spoof.key --spoof asvspoof5", SPOOFING),
    evaluate("forensic", f"{LABELLED} --forensic", ("pooled.dev_pav", "pooled.llr_bounds")),
    # Another program draws other speakers from a seed: limits of intervals agree roughly.
    evaluate(
        "bootstrap",
        f"{LABELLED} --speakers utt2spk --bootstrap 400",
        ("pooled.intervals.eer", "pooled.intervals.cllr"),
        tol=0.05,
    ),
]
PLOT = [
    Case(name=f"plot/{kind}", commands=(f"plot {kind} {LABELLED} -o out.svg",), files=("out.svg",))
    for kind in ("det", "bayes", "ece", "hist", "qq", "tippett", "reliability")
]
PLOT += [
    Case(
        name="plot/effect",
        commands=("plot effect trials.scores trials2.scores --key trials.key -o out.svg",),
        files=("out.svg",),
    ),
    Case(
        name="plot/det-png",
        commands=("plot det trials.scores trials2.scores --name a --name b --key trials.key -o out.png",),
        files=("out.png",),
    ),
]

CASES = [*CONVERT, *ERRORS, *INFO, *EVALUATE, *PLOT]
