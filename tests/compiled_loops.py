"""All compiled loops of the package, compiled or loaded."""

import importlib
from pathlib import Path

#: Those that take longest to compile; the rest takes about as long as these together.
LONG = {"top_moments", "ranked_members", "ranked_tables", "cross_tables", "scaled_tables", "weigh_columns"}


def all_loops():
    """Import every module with loops, and return them."""
    import evenscore
    from evenscore import compiled

    package = Path(evenscore.__file__).parent
    for path in sorted(package.rglob("*kernel*.py")):
        importlib.import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
    return compiled.LOOPS


def prepare_share(place, shares):
    """Compile what is one process's share of all loops, unless the cache has them."""
    loops = sorted(all_loops(), key=lambda loop: (loop.__name__ not in LONG, loop.__name__))
    work = [(loop, kind) for loop in loops for kind in loop.kinds]
    for each, kind in work[place::shares]:
        each.prepare(kind)
