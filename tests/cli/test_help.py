"""The help of every command fits on a screen and shows what everybody needs."""

import pytest
import typer.main

from evenscore.cli.app import COMMANDS, app

ROOT = typer.main.get_command(app)


def command(name):
    return ROOT.get_command(ROOT.make_context("evenscore", [], resilient_parsing=True), name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_on_a_screen_of_80_columns(name, run):
    text = run(f"{name} --help").stdout
    assert len(text.splitlines()) <= 40
    assert text.index("Usage:") < text.index("Examples:") < text.index("Options:")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_in_one_of_the_two_helps(name, run):
    whole = run(f"{name} --help-all").stdout
    short = run(f"{name} --help").stdout
    for param in command(name).params:
        if param.param_type_name == "option":
            assert param.help
            assert param.opts[0] in whole
            assert param.opts[0] in short  # by its name at least


def test_commands_are_listed_without_loading_them(run):
    text = run("--help").stdout
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []
    assert len(text.splitlines()) <= 40


def test_options_are_few():
    options = [param for name in COMMANDS for param in command(name).params if param.param_type_name == "option"]
    assert len(options) <= 160


def test_large_data_options_are_those_of_four_commands():
    for name in COMMANDS:
        known = {param.opts[0] for param in command(name).params}
        wanted = {"--workers", "--scheduler", "--memory-limit"}
        assert known & wanted == (wanted if name in ("fit", "score", "normalize", "evaluate") else set()), name
