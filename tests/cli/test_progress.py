import io
import sys
import time

from evenscore import compiled
from evenscore.cli.output import progress_bar
from evenscore.progress import silent


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_gets_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar() as progress:
        progress("reading", 0.5)
    assert progress is silent
    assert sys.stderr.getvalue() == ""


def test_a_terminal_gets_a_bar_for_each_stage(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar() as progress:
        progress("reading [bold]a[/bold]", 0.25)
        progress("writing", 7.0)
        progress("reading [bold]a[/bold]", 1.0)
    drawn = sys.stderr.getvalue()
    assert "reading [bold]a[/bold]" in drawn
    assert "writing" in drawn
    assert "100%" in drawn


def test_a_terminal_is_told_once_why_it_waits_for_the_compiler(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(compiled, "_PATIENCE", 0.0)
    with progress_bar():
        for _ in range(2):
            with compiled._waiting():
                time.sleep(0.2)
    assert sys.stderr.getvalue().count("compiling loops for large data, once on this machine") == 1
    assert compiled._listeners == []
