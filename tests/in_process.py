"""The command line without a process of its own: an interpreter and its imports take longer than most commands."""

import functools

import typer.testing

from evenscore.cli.app import app

# To make the parser of all commands takes longer than most commands, too; as in a program, it is made once.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def runner():
    """Return a runner that keeps standard error apart, as old versions of click do only on request."""
    try:
        return typer.testing.CliRunner(mix_stderr=False)
    except TypeError:
        return typer.testing.CliRunner()


def run_command(*arguments, input=None):
    """Run ``evenscore`` with these arguments; returns exit_code, stdout and stderr."""
    return run_app(app, *arguments, input=input)


def run_app(program, *arguments, input=None):
    """Run another program, such as a recipe's, in the same way."""
    return runner().invoke(program, [str(argument) for argument in arguments], input=input)


def output_of(*arguments, code=0):
    """Run ``evenscore``, look at its exit code, and return all that it printed, what it said first."""
    result = run_command(*arguments)
    assert result.exit_code == code, result.output
    return result.stderr + result.stdout
