"""What is wrong is said in one sentence that names options of the command line; nothing is left half-written."""

import pytest

BLOCKS = "--trials $D/eval/trials.scores --enroll-cohort $D/eval/enroll.scores --test-cohort $D/eval/test.scores"
VECTORS = "--enroll-embeddings $D/x.npz --test-embeddings $D/x.npz"
SUGGESTED = {
    "normalise": "normalize",
    f"normalize --norm asnorm {BLOCKS} -o out": "'as'",
    f"normalize --norm as-norm {BLOCKS} -o out": "'as'",
    f"normalize --norm AS_Norm {BLOCKS} -o out": "'as'",
    f"normalize --norm lgms {BLOCKS} -o out": "'lgsm'",
    f"normalize --norm as:top_n=5 {BLOCKS} -o out": "'top_k'",
    f"normalize --norm as:topk=5 {BLOCKS} -o out": "'top_k'",
    f"normalize --norm s:combin=mean {BLOCKS} -o out": "'combine'",
    f"normalize --top-k 5 {BLOCKS} -o out": "as:top_k=",
    f"normalize --topn=5 {BLOCKS} -o out": "as:top_k=",
    f"normalize {BLOCKS} --enrol-cohort x -o out": "--enroll-cohort",
    f"normalize {BLOCKS} -o out --to kaldy": "'kaldi'",
    "fit --norm lgsm:dims=2 --scores $D/dev/scores.scores -o m.json": "'dim'",
}
NAMED = {
    "normalize --norm z --trials $D/eval/trials.scores -o out": "--enroll-cohort",
    "normalize --norm t --trials $D/eval/trials.scores -o out": "--test-cohort",
    f"normalize --norm zt {BLOCKS} -o out": "--cohort",
    f"normalize --norm as:select=profile {BLOCKS} -o out": "--cohort",
    f"normalize --norm evidence {BLOCKS} -o out": "--model",
    f"normalize --norm s --model m.json {BLOCKS} -o out": "--model",
    f"normalize {BLOCKS} --cohort-key $D/eval/cohort.trials -o out": "--cohort",
    f"normalize {BLOCKS} --enroll-key $D/eval/key.trials -o out": "--enroll-cohort",
    f"normalize {BLOCKS} --speakers $D/eval/utt2spk --folds 1 -o out": "--folds",
    f"normalize {BLOCKS} --quality mag -o out": "--quality",
    f"normalize {BLOCKS} {VECTORS} --cohort-embeddings $D/c.npz -o out": "embeddings",
    f"normalize {VECTORS} -o out": "--cohort-embeddings",
    "normalize -o out": "--trials",
    f"normalize {BLOCKS.replace('--trials', '--enroll-cohort')} -o out": "--trials",
    "fit -o m.json": "--scores",
    "fit --norm s --scores $D/dev/scores.scores -o m.json": "lgsm",
    "fit --scores $D/dev/scores.scores -o m.json": "--key",
    "fit --scores $D/dev/scores.scores --key $D/dev/key.trials --speakers $D/dev/utt2spk -o m.json": "--key",
    "fit --scores a --scores b --scores c --key a --key b -o m.json": "--key",
    "fit --scores $D/dev/scores.scores --key $D/dev/utt2spk -o m.json": "utt2spk",
    "fit --scores $D/dev/scores.scores --key $D/eval/cohort.trials -o m.json": "cohort.trials",
    "fit --scores $D/dev/scores.scores --key $D/dev/key.trials -o nowhere/m.json": "nowhere",
    "model show $D/dev/utt2spk": "utt2spk",
    "simulate --cohort-speakers 3 -o one.csv": "one.csv",
}


@pytest.mark.parametrize("line", SUGGESTED)
def test_a_name_that_is_close_is_suggested(line, run):
    assert SUGGESTED[line] in " ".join(run(line, code=2).output.split())


@pytest.mark.parametrize("line", NAMED)
def test_an_error_is_a_sentence_about_the_command_line(line, run, tmp_path):
    result = run(line, code=2)
    message = result.stderr
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert NAMED[line] in message
    assert "`" not in message
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_the_old_output(run, tmp_path, data):
    (tmp_path / "out.scores").write_text("old\n")
    trials = (data / "eval" / "trials.scores").read_text()
    (tmp_path / "bad.scores").write_text(trials + "e0 t99 nan\n")
    run(f"normalize {BLOCKS.replace('$D/eval/trials', 'bad')} -o out.scores", code=2)
    assert (tmp_path / "out.scores").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.scores", "out.scores"]


def test_an_unexpected_failure_is_a_sentence_too(run, monkeypatch):
    monkeypatch.setattr("evenscore.norms.registry.normalize", lambda *a, **k: 1 / 0)
    result = run(f"normalize {BLOCKS} -o out", code=1)
    assert result.stderr.startswith("error: unexpected ZeroDivisionError")
    assert "Traceback" not in result.output
