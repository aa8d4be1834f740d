"""Options that belong together: a record of them is one parameter of a command, and several options of its users."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

__all__ = ["option_name", "with_records"]


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes each field of its record parameters as an option of its own.

    Commands that have the same record have the same options, explained in the same words. The options of a record with
    a class attribute ``PANEL`` stand together under this title in the help.
    """
    hints = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            records[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field.name: given.pop(field.name) for field in fields(record)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def option_name(field: str) -> str:
    """Return how an option is written on the command line.

    Examples
    --------
    >>> option_name("top_k")
    '--top-k'
    """
    return f"--{field.replace('_', '-')}"


def _parameters(record: type) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    panel = getattr(record, "PANEL", None)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name] if panel is None else _in_panel(hints[field.name], panel),
        )
        for field in fields(record)
    ]


def _in_panel(annotation: Any, panel: str) -> Any:
    option = copy.copy(annotation.__metadata__[0])  # which other records may share
    option.rich_help_panel = panel
    return Annotated[annotation.__origin__, option]
