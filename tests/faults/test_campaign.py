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
