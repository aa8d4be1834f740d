import pytest
from typer.testing import CliRunner

from evenscore.cli.app import app


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in an empty directory, as a new user would; returns exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("EVENSCORE_DEBUG", raising=False)

    def run(*arguments, input=None):
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)

    return run


@pytest.fixture
def file(tmp_path):
    """Write a file into the directory of the test and return its name."""

    def write(name, content):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return name

    return write
