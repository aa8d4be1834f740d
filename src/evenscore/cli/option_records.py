"""Options that belong together: a record of them is one parameter of a command, and several options of its users.

A record may name a panel (``PANEL``): in the help of every command its options stand together under this title, after
those that everybody needs.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

__all__ = ["given_options", "option_name", "with_records"]


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes each field of its record parameters as an option of its own.

    Commands that have the same record have the same options, explained in the same words.
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
    """Return how an option is written on the command line."""
    return f"--{field.replace('_', '-')}"


def given_options(record: Any) -> list[str]:
    """Return the options of a record that have another value than by default, as they are written."""
    return [option_name(field.name) for field in fields(record) if getattr(record, field.name) != field.default]


def _parameters(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    parameters = []
    for field in fields(record):
        option = copy.copy(hints[field.name].__metadata__[0])  # records may share an option, but not a panel
        option.rich_help_panel = getattr(record, "PANEL", None)
        kind: Any = Annotated[hints[field.name].__origin__, option]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
        )
    return parameters
