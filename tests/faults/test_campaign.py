"""A small part of `make faults`: each kind of fault, at a few calls of a command that goes on in chunks."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from evenscore.cli.app import app
from evenscore.files import FORMATS
from faults.jobs import JOBS
from faults.states import plain

WRITING = {"--output", "--save", "--quality-out", "--plot"}  # options that name what is written
ONLY_PRINT = {"info", "model show", "evaluate", "formats"}


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("gcc"), reason="needs Linux and gcc")
def test_nothing_is_lost_or_left_behind():
    campaign = Path(__file__).with_name("campaign.py")
    command = [sys.executable, campaign, "--every", "43", "--jobs", "score to zarr", "--processes", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "faults, 0 failures" in run.stdout
    assert not re.search(r"': 0\b| 0 told to wait", run.stdout)  # every fault was met


def commands(group, name=""):
    """Return every command with the first names of its options."""
    if not hasattr(group, "list_commands"):
        return {name: {param.opts[0] for param in group.params}}
    found = [commands(group.get_command(None, each), f"{name} {each}".strip()) for each in group.list_commands(None)]
    return {key: options for each in found for key, options in each.items()}


def test_every_option_that_names_a_file_to_write_has_a_job():
    known = commands(typer.main.get_command(app))
    used = {(job.arguments[0], option) for job in JOBS.values() for option in job.arguments}
    for name in known.keys() - ONLY_PRINT:  # a new command writes, or is said to print only
        options = {option.replace("--output", "-o") for option in known[name] & WRITING} or {name}
        assert {(name, option) for option in options} <= used
    for name in ONLY_PRINT:
        assert not known[name] & {*WRITING, "output"}


def formats(job):
    """Return the formats that a job of `convert` may write."""
    source, target = job.arguments[1:3]
    if "--to" in job.arguments:
        return [FORMATS[job.arguments[-1]]]
    kind = "embeddings" if "-x." in source else "scores"
    ending = Path(target.removesuffix(".gz")).suffix
    return [each for each in FORMATS.values() if ending in each.extensions and kind in each.kinds]


def test_every_function_that_writes_a_format_has_a_job():
    written = {each.write for job in JOBS.values() if job.arguments[0] == "convert" for each in formats(job)}
    assert written == {each.write for each in FORMATS.values() if each.write}


def test_only_times_and_what_was_taken_over_are_left_out():
    row = b'<tr><th scope="row"><bdi>%s</bdi></th><td><bdi>%s</bdi></td></tr>\n'
    kept = row % (b"Tooth", b"1.9 s more") + row % (b"EER", b"1.9")
    left = row % (b"Took", b"1.9 s") + row % (b"Finished", b"now") + row % (b"Taken from an earlier run", b"raw, s")
    assert plain("report.html", kept + left) == kept
    assert plain("report.html", row % (b"raw", b"0.4 s")) == row % (b"raw", b"")
    assert plain("other.html", left) == left
    results = b'{\n  "seconds": 3,\n  "run": {\n    "command": "c",%s\n  }\n}'
    times = b'\n    "time": "now",\n    "seconds": 1.5,\n    "resumed": ["s"],\n    "method_seconds": {"s": 0.5}'
    assert plain("results.json", results % times).replace(b"\n\n\n\n", b"") == results % b""
    record = b'{\n  "seconds": 1.5e-05,\n  "fingerprint": "2"\n}'
    assert plain("record.json", record) == b'{\n\n  "fingerprint": "2"\n}'
    assert plain("record.json", b'{\n  "digests": 2,\n  "seconds": 1.5\n}') == b'{\n  "digests": 2,\n\n}'
