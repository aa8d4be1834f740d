"""Commands in pipes and on terminals: what goes to which stream, progress, exit codes of those who are stopped."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

BLOCKS = "--trials - --enroll-cohort $D/eval/enroll.scores --test-cohort $D/eval/test.scores"


def test_scores_go_through_a_pipe_and_nothing_else_does(start, data):
    given = (data / "eval" / "trials.scores").read_bytes()
    done = start(
        f"normalize --norm s {BLOCKS} -o -", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = done.communicate(given)
    assert (done.returncode, err) == (0, b"")
    assert [line.split()[:2] for line in out.splitlines()] == [line.split()[:2] for line in given.splitlines()]


def test_a_model_goes_through_a_pipe_and_the_table_to_standard_error(run, tmp_path):
    result = run("fit --scores $D/dev/scores.scores --key $D/dev/key.trials -o -")
    assert result.stdout.startswith("{\n")
    assert "log-likelihood" in result.stderr
    (tmp_path / "m.json").write_text(result.stdout)
    assert "D = 2" in run("model show m.json").stdout


def test_a_reader_that_stops_early_is_no_error(start):
    with start("formats --json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 141


SLOW = """
import sys, time
from evenscore.cli import app, fit
def slow(*args, progress, **options):
    for step in range(1, 40):
        time.sleep(0.05)
        progress and progress(step, 40)
    raise KeyboardInterrupt
import evenscore.model.fit
evenscore.model.fit.fit_score_model = slow
sys.argv = ["evenscore", *sys.argv[1:]]
app.main()
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_bar_on_a_terminal_only(terminal, data, tmp_path):
    line = f"fit --scores {data}/dev/scores.scores --key {data}/dev/key.trials -o m.json".split()
    ours, theirs = pty.openpty() if terminal else os.pipe()
    done = subprocess.run([sys.executable, "-c", SLOW, *line], stderr=theirs, cwd=tmp_path, check=False)
    os.close(theirs)
    written = b""
    while chunk := read_or_nothing(ours):
        written += chunk
    os.close(ours)
    assert done.returncode == 130
    assert (b"of 40" in written) == terminal
    assert terminal or written == b""
    assert list(tmp_path.iterdir()) == []


def read_or_nothing(source):
    try:
        return os.read(source, 1 << 16)
    except OSError:  # the terminal's other end is closed
        return b""


def test_an_interrupted_command_leaves_nothing(start, tmp_path):
    done = start(
        "simulate --speakers 400 --test-per-speaker 8 -o out.csv", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    time.sleep(1.5)
    done.send_signal(signal.SIGINT)
    _, err = done.communicate()
    assert done.returncode in (0, 130, -signal.SIGINT), err  # the last: before Python starts, or after its end
    assert b"Traceback" not in err
    left = [path.name for path in tmp_path.iterdir()]
    assert left == [] or (left == ["out.csv"] and done.returncode != 130)
