"""``evenscore info``: what is in the files, and what looks wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.output import print_json, print_lines, print_table, printable, progress_bar
from evenscore.errors import EvenscoreError

if TYPE_CHECKING:
    from evenscore.tables import TrialList

__all__ = ["EXAMPLES", "info"]

EXAMPLES = """
evenscore info dev.scores
evenscore info dev.scores --key dev.trials    # do the two agree?
evenscore info xvector.scp utt2spk dev.h5     # several, of any kind
zcat big.gz | evenscore info - --json         # figures for a program
"""


@with_records
def info(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files of any kind; '-' is standard input.")],
    key: opt.Key = None,
    *,
    repairs: opt.ReadingChoices,
    json: opt.Json = False,
) -> None:
    """Tell what is in the files, and what looks wrong.

    Prints kind and format, sizes, label counts, the range of the scores in each class, and things that are seldom
    meant so: constant scores, targets that score below non-targets, ids that differ only in case, and more. With --key,
    it also tells which trials stand only in the scores or only in the key. A file that cannot be read does not keep the
    others from being shown.
    """
    from evenscore.cli.app import with_options
    from evenscore.files import read_trials

    labels = None if key is None else read_trials(key)
    reports, wrong = [], list[EvenscoreError]()
    with progress_bar() as progress:
        for number, path in enumerate(files):
            progress("reading", number / len(files))
            try:
                reports.append(_report(path, repairs, labels))
            except EvenscoreError as error:
                wrong.append(error)
    if json and reports:
        print_json(reports)
    for report in [] if json else reports:
        _print_report(report)
    for one in wrong[:-1]:
        typer.echo(f"error: {printable(with_options(str(one), 'info'))}", err=True)
    if wrong:
        raise wrong[-1]


def _report(path: str, repairs: opt.ReadingChoices, key: TrialList | None) -> dict[str, Any]:
    from evenscore.cli.findings import compare_with_key, facts_of, suspicions_of
    from evenscore.cli.inputs import TRIALS, kind_of
    from evenscore.errors import FileError
    from evenscore.files import read, sniff, spooled

    with spooled(path) as local:  # standard input can be read only once
        format = repairs.from_format or sniff(local).name
        table: Any = read(local, **{**repairs.options, "format": format})
    comparison, notes = None, list[str]()
    if key is not None:
        if kind_of(table) not in TRIALS:
            raise FileError(path, "it holds no trials, so there is nothing to compare with the key; leave out --key")
        comparison, notes, table = compare_with_key(table.to_trials(), key)
    facts = facts_of(table)
    report = {"file": path, "kind": kind_of(table), "format": format, **facts}
    if comparison is not None:
        report["key"] = comparison
    report["suspicious"] = [*notes, *suspicions_of(table, facts)]
    return report


_APART = ("file", "scores", "measures", "suspicious")  # what does not stand in the list of facts


def _print_report(report: dict[str, Any]) -> None:
    rows = [(name.replace("_", " "), _cell(value)) for name, value in report.items() if name not in _APART]
    print_table(rows, title=report["file"])
    summaries = {**report.get("scores", {}), **report.get("measures", {})}
    if summaries:
        names = ("count", "min", "mean", "max", "std")
        print_table(
            [(group, *(_cell(summary.get(name, "")) for name in names)) for group, summary in summaries.items()],
            header=("scores", *names),
            numbers=True,
        )
    print_lines([*(f"! {line}" for line in report["suspicious"]), ""])


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        if "first" in value:
            return _cell(value["count"])
        return ", ".join(f"{_cell(item)} {name.replace('_', ' ')}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
