"""What all commands have in common: help, version, exit codes, sentences instead of tracebacks."""

from typing import Annotated

import pytest
import typer
from typer.main import get_command

import evenscore
from evenscore import FileError, InputError
from evenscore.cli.app import add_command, app, program


def walk(command, words=()):
    """Return every command with the words that call it, groups too."""
    found = {words: command} if words else {}
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            found |= walk(command.get_command(None, name), (*words, name))
    return found


COMMANDS = walk(get_command(app))
NAMES = [" ".join(words) for words in COMMANDS]


def test_version(cli):
    result = cli("--version")
    assert result.exit_code == 0
    assert result.stdout == f"evenscore {evenscore.__version__}\n"


def test_without_arguments_there_is_help(cli):
    result = cli()
    assert "Usage: evenscore" in result.output or "Usage:" in result.output
    assert all(words[0] in result.output for words in COMMANDS)


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help_with_examples_that_fit_a_terminal(cli, words, option):
    result = cli(*words, option)
    assert result.exit_code == 0
    examples = COMMANDS[words].help.partition("Examples:")[2].strip().splitlines()
    assert any(f"evenscore {' '.join(words)}" in line for line in examples)
    assert [line for line in examples if line.strip() not in result.stdout] == []  # a long line would be folded


def test_brackets_in_the_help_are_no_markup(invoke):
    def install(name: Annotated[str, typer.Option(help="Such as evenscore[plot] or [bold].")] = "") -> None:
        """Install evenscore[speech].

        Or [all] of it.
        """

    shown = invoke(program("install", install, "install evenscore[all]"), ["--help"]).stdout
    for text in (
        "Install evenscore[speech].",
        "Or [all] of it.",
        "evenscore[plot] or [bold].",
        "install evenscore[all]",
    ):
        assert text in shown


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_every_option_is_explained(words):
    assert [parameter.name for parameter in COMMANDS[words].params if not parameter.help] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli, shell, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr("typer.testing._get_command", get_command)  # its options are made as the variable says
    result = cli("--show-completion", shell)
    assert result.exit_code == 0
    assert "_EVENSCORE_COMPLETE" in result.stdout.upper() or "EVENSCORE" in result.stdout.upper()


@pytest.mark.parametrize(
    ("line", "found"), [("evenscore inf", "info"), ("evenscore convert a b --to kald", "kaldi-ark")]
)
def test_the_shell_completes_commands_and_formats(invoke, line, found):
    asked = {"_EVENSCORE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert found in invoke(app, [], env=asked, prog_name="evenscore").stdout.split()


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["info"], ["convert", "one"], ["info", "x", "--nonsense"], ["info", "x", "--missing", "maybe"]],
)
def test_wrong_use_exits_with_2(cli, arguments):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr


@pytest.fixture
def run(invoke):
    """Run one command of an app of its own."""

    def run_alone(command, **environment):
        other = typer.Typer(pretty_exceptions_enable=False)

        @other.callback()
        def callback():
            pass

        def wrapped():
            """Do it."""
            command()

        add_command(other, "it", wrapped, "evenscore it")
        return invoke(other, ["it"], env=environment)

    return run_alone


def failing(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("no [bold]good[/bold]"), 2, "error: no [bold]good[/bold]"),
        (FileError("a\nb", "it is\tbroken", line=3), 2, r"error: a\nb:3: it is\tbroken"),
        (FileError("-", "it is empty"), 2, "error: <stdin>: it is empty"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, "error: there is not enough memory for this; use smaller files, or float32 scores"),
        (
            ZeroDivisionError("oh"),
            1,
            "error: unexpected ZeroDivisionError: oh; EVENSCORE_DEBUG=1 shows where it happened",
        ),
        (OSError(28, "No space left on device"), 1, "error: unexpected OSError: [Errno 28] No space left on device; "),
        (typer.Exit(5), 5, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_failures_become_one_sentence_and_a_code(run, error, code, line):
    result = run(failing(error))
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == (1 if line else 0)


def test_debug_shows_the_traceback(run):
    result = run(failing(ZeroDivisionError("oh")), EVENSCORE_DEBUG="1")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: unexpected ZeroDivisionError")


def test_wrong_use_found_by_a_command_is_reported_as_such(run):
    result = run(failing(typer.BadParameter("that does not go together")))
    assert result.exit_code == 2
    assert "that does not go together" in result.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_options_for_large_data_stand_together_and_long_helps_have_panels(words):
    options = [option for option in COMMANDS[words].params if option.param_type_name == "option"]
    panels = {option.opts[0]: getattr(option, "rich_help_panel", None) for option in options}
    large = {"--workers", "--scheduler", "--memory-limit", "--resume"}
    assert {panels[name] for name in large & set(panels)} <= {"Large data"}
    assert sum(panel is None for panel in panels.values()) <= 14  # what everybody needs
