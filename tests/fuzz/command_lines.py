"""Command lines as nobody would type them: any option of a command with any value, files of all kinds among them."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from evenscore.cli.app import app
from evenscore.files import FORMATS
from fuzz.mutations import mutated
from fuzz.sound_files import records, sound
from in_process import run_command

__all__ = ["run_odd_command"]

WORDS = (
    "", "-", "x", "0", "-1", "1", "3", "0.5", "nan", "1e400", "all", "lgsm", "as:top_k=3", "as:top_k=x", "s",
    "evidence",
    "lgsm:dim=9", "logistic", "pav", "gaussian:", "re:(", "re:(.)", "../x", "no-such-file", "é\u202e\x1b[0m",
    "1000:seed=1", ".", "cosine", "plda", "target", "10MB", "-5GB", "a,b", "s,as,raw", ":::", "=", "kaldi",
)  # fmt: skip
SLOW = {"demo"}


@cache
def commands() -> dict[str, list[tuple[str, bool, bool]]]:
    """Return the options of every command, whether each takes a value, and whether it is an argument."""
    from typer.main import get_command

    root: Any = get_command(app)
    found = {}
    for name in root.list_commands(None):
        command = root.get_command(None, name)
        parameters = [p for p in command.params if p.name != "help"]
        found[name] = [
            (p.opts[0] if p.opts[0].startswith("-") else "", not getattr(p, "is_flag", False), p.required)
            for p in parameters
        ]
    return found


def run_odd_command(rng: random.Random, folder: Path) -> None:
    """Run a command; whatever it says, it must be a sentence."""
    files = []
    for number in range(3):
        name = rng.choice(sorted(FORMATS))
        main, data = next(iter(rng.choice(sound(name)).items()))
        path = folder / f"f{number}{Path(main).suffix}"
        path.write_bytes(mutated(data, [data], rng) if rng.random() < 0.2 else data)
        files.append(str(path))
    model = folder / "m.json"
    model.write_bytes(next(iter(rng.choice(records()).values())))
    values = [*files * 4, str(model), str(folder / "out"), str(folder / "out.npz"), *WORDS]
    name = rng.choice(sorted(set(commands()) - SLOW))
    line = [name]
    for option, takes_value, needed in commands()[name]:
        if needed or rng.random() < 0.12:
            line += ([option] if option else []) + ([rng.choice(values)] if takes_value else [])
    line = [str(folder / "out") if word == "-" else word for word in line]
    result = run_command(*line)
    told = result.exception is None or isinstance(result.exception, SystemExit)
    if not told or result.exit_code not in (0, 1, 2) or "unexpected " in result.stderr or "Traceback" in result.stderr:
        raise AssertionError(f"{line}: exit {result.exit_code}: {result.stderr[-500:]} {result.exception!r}")
