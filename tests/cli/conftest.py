import pytest
from typer.testing import CliRunner

from evenscore.cli.app import app


def runner():
    """Return a runner that keeps standard error apart, as old versions of click do only on request."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in an empty directory, as a new user would; returns exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("EVENSCORE_DEBUG", raising=False)

    def run(*arguments, input=None):
        return runner().invoke(app, [str(argument) for argument in arguments], input=input)

    return run


@pytest.fixture
def invoke():
    """Run an app of the test's own."""
    return lambda app, arguments, **options: runner().invoke(app, arguments, **options)


@pytest.fixture
def file(tmp_path):
    """Write a file into the directory of the test and return its name."""

    def write(name, content):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return name

    return write
