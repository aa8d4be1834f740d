"""Options of earlier versions keep working, in no help; each becomes an option that the command really has."""

import shlex

import pytest
from typer.main import get_command

from evenscore.cli.app import app
from evenscore.cli.old_spellings import SPELLINGS, Bare, Gone, Part, modern

# What README, docs, recipes and scripts of the last version used.
USED = [
    ("fit", "--scores s --key k --dim 1 --tol 1e-8 --max-iter 50 -o m", "--norm lgsm:dim=1:tol=1e-8:max_iter=50"
     " --scores s --key k -o m"),
    ("fit", "--method evidence --scores s --enroll-speakers u -o m",
     "--norm evidence --scores s --enroll-speakers u -o m"),
    ("fit", "--enroll e --test t --no-min-divergence --starts=2 -o m", "--norm lgsm:min_divergence=false:starts=2"
     " --enroll-embeddings e --test-embeddings t -o m"),
    ("normalize", "--method lgsm --model m --trials s --enroll e --test t --cohort c --cohort-key k -o o",
     "--norm lgsm --model m --trials s --enroll-cohort e --test-cohort t --cohort c --cohort-key k -o o"),
    ("normalize", "--method as --top-k 300 --select=cross --trials s -o o", "--norm as:top_k=300:select=cross"
     " --trials s -o o"),
    ("score", "--enroll e --test t --norm as --top-k 50 --cohort c --seed 3 --cohort-size 9 -o o",
     "--cohort-unit utterance:seed=3:size=9"
     " --norm as:top_k=50 --enroll-embeddings e --test-embeddings t --cohort-embeddings c -o o"),
    ("calibrate", "--method pav --smoothing 0 --train d s -o o", "--calibration pav:smoothing=0 --train d s -o o"),
    ("calibrate", "--saturate --prior 0.1 --l2 1 s -o o", "--calibration saturating:p_target=0.1:l2=1 s -o o"),
    ("calibrate", "--prior 0.1 --shared-variance --method unsupervised s -o o",
     "--calibration unsupervised:p_target=0.1:shared_variance=true s -o o"),
    ("compare", "--train d --train-key k --trials s --enroll e --test t --seed 4 -o r",
     "--bootstrap 1000:seed=4 --train d --train-key k --trials s --enroll-cohort e --test-cohort t -o r"),
    ("compare", "--train-embeddings d --scorer plda --plda C:/p.json --cohort-unit speaker --cohort-pick=kmeans",
     "--cohort-unit speaker:pick=kmeans --scorer plda:model=C:/p.json --train-embeddings d"),
    ("score", "--enroll-map m --enroll-length-norm both --center c",
     "--scorer cosine:center=c --enroll-map m:length_norm=both"),
    ("choose-cohort", "--train d --method as --top-k 10,30", "--train d --norm as --top-k 10,30"),
    ("adapt", "--model m --scores s --enroll e --test t --prior 0.1 -o n",
     "--model m --scores s --enroll-cohort e --test-cohort t --prior 0.1 -o n"),
    ("evaluate", "s --key k --bootstrap 9 --seed 1 --json", "--bootstrap 9:seed=1 s --key k --json"),
    ("evaluate", "a b --key k --paired --level 0.9 --csv", "--bootstrap 0:level=0.9 a b --key k --paired --table=csv"),
    ("demo", "--seed 3", "--simulation-seed 3"),
    ("plot", "hist s --calibration c -o f", "hist s --model c -o f"),
    ("plot", "det s --bootstrap=50 --level=0.9 -o f", "--bootstrap 50:level=0.9 det s -o f"),
    ("calibrate", "--cross-validate --key k s -o o", "--cross-validate 5 --key k s -o o"),
    ("calibrate", "--folds 4 --cross-validate --key k s -o o", "--cross-validate 4 --key k s -o o"),
    ("normalize", "--trials s -o o -- --method", "--trials s -o o -- --method"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "old", "new"), USED)
def test_old_spellings_mean_what_they_meant(command, old, new):
    assert modern(command, shlex.split(old)) == shlex.split(new)
    assert modern(command, shlex.split(new)) == shlex.split(new)


def options_of(command):
    root = get_command(app)
    return {name for one in root.get_command(None, command).params for name in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("command", SPELLINGS)
def test_old_spellings_lead_to_options_and_are_none(command):
    options = options_of(command)
    led_to = options | options_of("normalize") if command == "score" else options  # where it leads with a norm
    for old, new in SPELLINGS[command].items():
        if isinstance(new, Bare):
            assert old in options
            continue
        if not isinstance(new, Gone):
            assert (new.of if isinstance(new, Part) else new).partition("=")[0] in led_to
        assert old not in options
