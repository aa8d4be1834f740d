"""Runs commands with faults: each is a fork of a process that has loaded the program once."""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

FAULTS = ("SIGKILL", "ENOSPC", "EIO", "EINTR", "SHORT", "SECOND")  #: in the order of shim.c
PATIENCE = 180  # seconds for a run that takes less than one
SHIM = "EVENSCORE_FAULTS_SHIM"
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "COLUMNS": "200", "POLARS_MAX_THREADS": "1"}


@dataclass
class Run:
    """How a run ended, and a second one on the same output, which ran while this one was stopped."""

    code: int
    said: str  #: on standard error
    calls: dict[str, int] = field(default_factory=dict)  #: that could have met each fault
    removing: bool = False  #: whether the call that failed removes or closes something
    modules: tuple[str, ...] = ()  #: that it has imported, beside those that were there
    loops: tuple[tuple[str, str], ...] = ()  #: compiled loops that it has loaded, and for which type
    second: Run | None = None


class Bench:
    """A folder with inputs, in which commands run with faults."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.shim = ctypes.CDLL(os.environ[SHIM])

    def run(self, arguments: tuple[str, ...], fault: str = "SIGKILL", call: int = 0) -> Run:
        """Run a command in a fork of this process."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            self._in_child(arguments, fault, call, writer)
        os.close(writer)
        second = None
        if fault == "SECOND" and call and _stops(child):
            second = self.run(arguments)
            os.kill(child, signal.SIGCONT)
        with open(reader) as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        file = self.folder / f"stderr-{child}"
        said = file.read_text(errors="replace")
        file.unlink()
        return Run(os.waitstatus_to_exitcode(status), said, **json.loads(told or "{}"), second=second)

    def _in_child(self, arguments: tuple[str, ...], fault: str, call: int, writer: int) -> NoReturn:
        code = 70
        try:
            signal.alarm(PATIENCE)
            os.chdir(self.folder)
            for stream, name in ((1, "stdout"), (2, f"stderr-{os.getpid()}")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
            sys.argv = ["evenscore", *arguments]
            from evenscore.cli.app import main

            known = set(sys.modules)
            self.shim.faults_arm(os.fsencode(self.out), ctypes.c_long(call), FAULTS.index(fault))
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            sys.stdout.flush()
            calls = {name: self.shim.faults_seen(place) for place, name in enumerate(FAULTS)}
            told = {"calls": calls, "removing": bool(self.shim.faults_removing()), **_loaded(known)}
            os.write(writer, json.dumps(told).encode())
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def restore(self, state: Path | None) -> None:
        """Begin anew: with nothing, or with what was there before."""
        shutil.rmtree(self.out, ignore_errors=True)
        if state is None:
            self.out.mkdir()
        else:
            shutil.copytree(state, self.out)


def _stops(child: int) -> bool:
    """Wait until a process stops or ends, and tell which of them."""
    found = os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return found is not None and found.si_code == os.CLD_STOPPED


def _loaded(known: set[str]) -> dict[str, Any]:
    from evenscore.compiled import LOOPS

    loops = [(loop.__name__, kind) for loop in LOOPS for kind in sorted(loop._ready)]
    return {"modules": [name for name in sys.modules if name not in known], "loops": loops}


def load_as(run: Run) -> None:
    """Load what a run had to, so that the next ones need not."""
    from evenscore.compiled import LOOPS

    for name in run.modules:
        with suppress(ImportError):  # parts of a library that are made rather than found
            import_module(name)
    for loop in LOOPS:
        for name, kind in run.loops:
            if loop.__name__ == name and kind in loop.kinds:
                loop.prepare(kind)
    if "evenscore.report.page" in run.modules:
        _prepare_reports()
    gc.freeze()


def _prepare_reports() -> None:
    page = import_module("evenscore.report.page")
    page._plotly()
    page._templates = functools.cache(page._templates)
    for name in page._templates().list_templates(["html"]):
        page._templates().get_template(name)


def load_program(commands: set[str]) -> None:
    """Load what all commands need, and make the parsers of some; nothing of it starts threads."""
    import typer.main

    from evenscore.cli.app import app
    from evenscore.files import chunked_output

    chunked_output._LISTED_BYTES = 200  # so that tiny parquet datasets have several parts
    typer.main.get_command = functools.cache(typer.main.get_command)
    for name in commands:
        typer.main.get_command(app).get_command(None, name)
    gc.freeze()


def with_shim(program: str, arguments: list[str]) -> int:
    """Compile the shim, and start a program with it."""
    with tempfile.TemporaryDirectory(prefix="evenscore-faults-") as folder:
        library = Path(folder) / "shim.so"
        source = Path(__file__).with_name("shim.c")
        subprocess.run(
            ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True
        )
        environment = {**os.environ, **QUIET, SHIM: str(library), "LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, program, *arguments], env=environment, check=False).returncode
