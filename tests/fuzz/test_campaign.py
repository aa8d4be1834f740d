"""A short campaign: the same inputs in every run. ``make fuzz`` draws others, for minutes."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from evenscore import EvenscoreError
from fuzz import campaign
from fuzz.mutations import mutated
from fuzz.subjects import SUBJECTS, Subject, clean

SLOW = {"command-line", "compared", "odd-numbers", "resumed"}
QUICK = sorted(set(SUBJECTS) - SLOW)


def told(name, number, folder):
    """Try an input, and return the message if it is refused."""
    try:
        SUBJECTS[name].attempt(random.Random(f"{name} {number}"), folder)
    except EvenscoreError as error:
        return str(error).strip()
    return ""


@pytest.mark.parametrize("name", QUICK)
def test_spoilt_files_are_read_or_refused_in_a_sentence(name, tmp_path):
    for number in range(8):
        assert "\n" not in told(name, number, tmp_path)
        clean(tmp_path)


@pytest.mark.parametrize("number", range(15))
@pytest.mark.parametrize("name", ["command-line", "odd-numbers", "resumed"])
def test_odd_command_lines_and_numbers(name, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "\n" not in told(name, number, tmp_path)


def test_an_input_follows_from_its_number():
    first, again, other = (mutated(b"a b 1.5\nc d 2\n" * 5, [b"x"], random.Random(seed)) for seed in (4, 4, 5))
    assert first == again != other


def test_crashes_and_exceptions_are_findings(tmp_path, monkeypatch):
    """The campaign sees an exception, goes on, and survives a process that dies."""
    program = tmp_path / "campaign.py"
    source = Path(campaign.__file__).read_text()
    bad = (
        "import os\nfrom pathlib import Path\n"
        "class Subject:\n"
        "    def attempt(self, rng, folder):\n"
        "        Path(folder, 'n').write_text('x')\n"
        "        kind = rng.randrange(6)\n"
        "        if kind == 0: raise ValueError('told')\n"
        "        if kind == 1: os.abort()\n"
        "        if kind == 2: os.write(2, b'panic')\n"
        "    weight = 1\n"
        "SUBJECTS = {'bad': Subject()}\n"
        "def clean(folder): pass\n"
    )
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "subjects.py").write_text(bad)
    (tmp_path / "compiled_loops.py").write_text("def prepare_share(place, shares): pass\n")
    program.write_text(source.replace("parent.parent)", "parent)"))
    command = [sys.executable, program, "--seed", "3", "--inputs", "12", "--findings", tmp_path / "found"]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True)
    kinds = [random.Random(f"bad 3 {number}").randrange(6) for number in range(12)]
    assert kinds.count(0)
    assert kinds.count(1)
    assert kinds.count(2)
    assert result.returncode == 1
    assert result.stdout.count("ValueError: told") == kinds.count(0)
    assert result.stdout.count("ended the process with -6") == kinds.count(1)
    assert result.stdout.count("wrote to standard error: 'panic'") == kinds.count(2)
    findings = sum(kinds.count(kind) for kind in (0, 1, 2))
    assert f"bad: 12 inputs, {findings} findings" in result.stdout
    assert len(list((tmp_path / "found").glob("bad-3-*/finding.txt"))) == findings


def test_subjects_cover_every_format():
    from evenscore.files import FORMATS

    assert {f"read-{name}" for name in FORMATS} <= set(SUBJECTS)
    assert all(isinstance(one, Subject) for one in SUBJECTS.values())
