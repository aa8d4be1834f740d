import pytest

from in_process import run_command, runner


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in an empty directory, as a new user would; returns exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("EVENSCORE_DEBUG", raising=False)
    return run_command


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
