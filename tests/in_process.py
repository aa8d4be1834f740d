"""The command line without a process of its own: an interpreter and its imports take longer than most commands."""

from typer.testing import CliRunner

from evenscore.cli.app import app


def runner():
    """Return a runner that keeps standard error apart, as old versions of click do only on request."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def run_command(*arguments, input=None):
    """Run ``evenscore`` with these arguments; returns exit_code, stdout and stderr."""
    return runner().invoke(app, [str(argument) for argument in arguments], input=input)
