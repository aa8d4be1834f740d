"""Whether what would be released works: `make release-check`.

Builds the wheel and the sdist of the last commit, installs each into clean environments, with the oldest dependencies
that it allows on the oldest Python of the search path and with the newest on the newest, runs the demo there, and, from
the wheel, the tests without any extras. Version, changelog and citation must agree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from email.parser import Parser
from itertools import product
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Return the exit code: 0 if all is well."""
    problems = disagreements(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = built(folder)
        oldest = folder / "oldest.txt"
        oldest.write_text("\n".join(lower_bounds(wheel)))
        pairs = list(zip(pythons(), (oldest, None), strict=True))  # the oldest may not exist for the newest Python
        for (python, constraints), artifact in product(pairs, (wheel, sdist)):
            problems += tried(python, artifact, constraints, folder)
    for problem in problems:
        print(f"release-check: {problem}", file=sys.stderr)
    print("release-check: " + (f"problems: {len(problems)}" if problems else "all is well"))
    return 1 if problems else 0


def disagreements(root: Path) -> list[str]:
    """Return what version, changelog and citation do not agree about."""

    def first(pattern: str, path: str) -> str:
        found = re.search(pattern, (root / path).read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else "nothing"

    version = first(r'^__version__ = "(.+)"$', "src/evenscore/_version.py")
    heading = first(r"^## \[(.+?)\]", "CHANGELOG.md")
    cited = first(r"^version: (.+)$", "CITATION.cff")
    wanted = "Unreleased" if "dev" in version else version
    found = []
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, but the package is {version}; make them agree")
    if heading != wanted:
        found.append(f"CHANGELOG.md begins with [{heading}], but the package is {version}; begin with [{wanted}]")
    return found


def pythons() -> list[str]:
    """Return the oldest and the newest Python that are here and can make environments."""
    names = [f"python3.{minor}" for minor in range(10, 30)]
    there = [
        path for path in map(shutil.which, names) if path and not _run([path, "-c", "import ensurepip"]).returncode
    ]
    return [there[0], there[-1]] if there else [sys.executable, sys.executable]


def built(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist from a copy of what git tracks, so that nothing else gets in."""
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    python = _environment(sys.executable, folder / "build")
    subprocess.run([python, "-m", "pip", "install", "-q", "build"], check=True)
    made = folder / "dist"
    subprocess.run([python, "-m", "build", "--outdir", made, source], check=True, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = made.glob("*.whl"), made.glob("*.tar.gz")
    return wheel, sdist


def lower_bounds(wheel: Path) -> list[str]:
    """Return the oldest versions that a wheel allows, its extras aside, as constraints of pip."""
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        needs = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])
    found = (re.match(r"([\w.-]+)[^;]*?>=\s*([\d.]+)", need) for need in needs if "extra ==" not in need)
    return [f"{bound[1]}=={bound[2]}.*" for bound in found if bound]


def tried(python: str, artifact: Path, constraints: Path | None, folder: Path) -> list[str]:
    """Install an artifact, run the demo and, of a wheel, the tests; return what went wrong."""
    start = time.perf_counter()
    name = f"{artifact.name}, {'oldest' if constraints else 'newest'} dependencies, {Path(python).name}"
    place = folder / "environment"
    shutil.rmtree(place, ignore_errors=True)
    inside = _environment(python, place)
    has_tests = artifact.suffix == ".whl"
    install = [inside, "-m", "pip", "install", "-q", f"{artifact}[test]" if has_tests else artifact]
    steps = {
        "pip install": [*install, "-c", constraints] if constraints else install,
        "evenscore demo": [place / "bin" / "evenscore", "demo", "-o", place / "demo"],
    }
    if has_tests:
        steps["pytest"] = [inside, "-m", "pytest", "-q", "-n", "auto", "-m", "not slow", "tests"]
    for step, command in steps.items():
        result = _run(command, folder / "source" if step == "pytest" else place)
        if result.returncode:
            print(f"{name}: {step} failed\n{result.stdout[-4000:]}", flush=True)
            return [f"{name}: {step} failed"]
    passed = f" ({result.stdout.splitlines()[-1]})" if has_tests else ""
    print(f"{name}: {', '.join(steps)} went well{passed}, in {time.perf_counter() - start:.0f} s", flush=True)
    return []


def _environment(python: str, place: Path) -> Path:
    """Make an environment and return its Python."""
    subprocess.run([python, "-m", "venv", place], check=True)
    return place / "bin" / "python"


def _run(command: list[object], place: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command away from the sources of this checkout, and keep what it says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=place,
        env={**environment, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
