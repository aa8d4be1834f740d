"""The one codec of model files: what a file must hold is declared, and what does not fit is refused by its place.

JSON is read with suspicion: limited in size and depth, no repeated keys, no NaN, UTF-8 only.

A `RecordFormat` is a name, a version, and the keys of a JSON object; a `Kind` is a function that checks one value and
returns what it stands for, and `typed` makes one from the annotations of a dataclass. So `path[heads.full.weight.b]:
expected a number, but found text` needs no code of its own.

msgspec would check types as well, but it takes the last of repeated keys, skips keys of a dataclass that it does not
know, and knows nothing of shapes and of NumPy's arrays; all of that would have to be written around it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Generic, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, atomic_output, open_input, reading
from evenscore.tables.arrays import LARGEST_SQUARE

__all__ = [
    "KeyPlace",
    "Kind",
    "ModelFile",
    "RecordFormat",
    "check_header",
    "count",
    "json_object",
    "number",
    "numbers",
    "optional",
    "plain",
    "read_json",
    "shown",
    "table",
    "truth",
    "typed",
    "where",
    "write_object",
]

T = TypeVar("T")
VERSION = 1  # of all files


@dataclass(frozen=True)
class KeyPlace:
    """Where a value stands: a file, and the keys that lead to it."""

    path: PathLike
    name: str = ""

    def key(self, name: str) -> KeyPlace:
        """Return the place of a key of this object."""
        return KeyPlace(self.path, f"{self.name}.{name}" if self.name else name)

    def item(self, number: int) -> KeyPlace:
        """Return the place of an item of this list."""
        return KeyPlace(self.path, f"{self.name}[{number}]")

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error about this place."""
        raise FileError(self.path, problem, part=self.name or None) from None

    def expected(self, what: str, value: Any) -> NoReturn:
        """Raise an error about a value of the wrong kind."""
        self.refuse(f"expected {what}, but found {kind_of(value)}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn what a record says against its values into an error about this place."""
        try:
            yield
        except InputError as error:
            self.refuse(str(error))

    def object(self, value: Any) -> dict[str, Any]:
        """Return an object, or say what stands there instead."""
        return value if isinstance(value, dict) else self.expected("an object", value)

    def fields(self, value: Any, kinds: Mapping[str, Kind], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the values of an object that has just these keys."""
        found = self.object(value)
        for name in kinds:
            if name not in found and name not in optional:
                self.key(name).refuse("the key is missing; write the file again")
        for name in found:
            if name not in kinds:
                known = ", ".join(kinds)
                self.key(shown(name)).refuse(f"there is no such key in version {VERSION}; it knows {known}")
        return {name: kind(self.key(name), found[name]) for name, kind in kinds.items() if name in found}


Kind = Callable[[KeyPlace, Any], Any]  #: checks the value at a place, and returns what it stands for


def number(at: KeyPlace, value: Any) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        at.expected("a number", value)
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if abs(found) <= LARGEST_SQUARE:
        return found
    return at.refuse("the number is not finite" if math.isinf(found) else f"{found:g} is beyond {LARGEST_SQUARE:g}")


def count(at: KeyPlace, value: Any) -> int:
    """Return a whole number from 0."""
    found = number(at, value)
    if found < 0 or found != int(found):
        at.refuse(f"expected a whole number from 0, but found {shown(value)}")
    return int(found)


def truth(at: KeyPlace, value: Any) -> bool:
    """Return true or false."""
    return value if isinstance(value, bool) else at.expected("true or false", value)


def numbers(*shape: int | None, note: str = "", of: Kind = number) -> Kind:
    """Return the kind of a list, or a matrix, of so many numbers (None: any number); ``note`` says which."""
    size, inner = shape[0], of if len(shape) == 1 else numbers(*shape[1:], of=of)
    many = "D numbers" if len(shape) == 1 else "rows of D numbers"
    what = f"a list of {many}" if size is None else f"{size} {many.removeprefix('D ')}{note}"

    def kind(at: KeyPlace, value: Any) -> list[Any]:
        if not isinstance(value, list):
            at.expected(what, value)
        if size is not None and len(value) != size:
            at.refuse(f"expected {what}, but found {len(value)} {'values' if inner is of else 'rows'}")
        at_once = inner is number
        found: list[Any] = [
            item if at_once and type(item) is float and abs(item) <= LARGEST_SQUARE else inner(at.item(place), item)
            for place, item in enumerate(value)
        ]  # good numbers at once: a PLDA has millions of them
        for row in found if inner is not of else ():
            if len(row) != len(found[0]):
                at.refuse(f"its rows have {len(found[0])} and {len(row)} numbers, but need the same number each")
        return found

    return kind


def where(kind: Kind, holds: Callable[[Any], bool], law: str) -> Kind:
    """Return the kind of values that keep to a law besides."""

    def checked(at: KeyPlace, value: Any) -> Any:
        found = kind(at, value)
        return found if holds(found) else at.refuse(f"{law}, but is {found!r}")

    return checked


def optional(kind: Kind, absent: Any = None) -> Kind:
    """Return the kind of values that may be null, which stands for ``absent``."""
    return lambda at, value: absent if value is None else kind(at, value)


def table(kind: Kind) -> Kind:
    """Return the kind of an object with any keys, whose values are of one kind."""
    return lambda at, value: {name: kind(at.key(name), item) for name, item in at.object(value).items()}


def typed(record: type[T], /, *later: str, **own: Kind) -> Callable[[KeyPlace, Any], T]:
    """Return the kind of a dataclass: a key for each field, of the kind that its type tells, or of its ``own``.

    Fields that came ``later`` may be absent, as they are in older files.
    """
    types = {name: hint for name, hint in get_type_hints(record).items() if name not in own}
    kinds = {each.name: own.get(each.name) or _kind(types[each.name]) for each in fields(record)}  # type: ignore[arg-type]

    def kind(at: KeyPlace, value: Any) -> T:
        found = at.fields(value, kinds, optional=later)
        with at.blamed():
            return record(**found)

    return kind


def _kind(hint: Any) -> Kind:
    if get_origin(hint) is Mapping:
        return table(_kind(get_args(hint)[1]))
    kinds: dict[Any, Kind] = {float: number, int: count, bool: truth}
    return kinds.get(hint) or typed(hint)


def plain(value: Any) -> Any:
    """Return a record as objects, lists and numbers for JSON, which has no NaN: what was not measured is null."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFile(Generic[T]):
    """What a model file holds: the model, and what is known about its training."""

    model: T
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecordFormat(Generic[T]):
    """A kind of model file.

    Attributes
    ----------
    name
        What the file says of itself under ``format``.
    keys
        What stands beside ``format``, ``version`` and ``info``.
    model
        The kind of the object of these keys.
    values
        Returns that object of a model.
    largest
        The most bytes of such a file.
    optional
        Further keys, which a file need not have.
    """

    name: str
    keys: tuple[str, ...]
    model: Callable[[KeyPlace, Any], T]
    values: Callable[[T], Mapping[str, Any]] = plain
    largest: int = 1_000_000
    optional: tuple[str, ...] = ()

    @property
    def header(self) -> dict[str, Any]:
        """What an object of this kind says of itself first."""
        return {"format": self.name, "version": VERSION}

    def write(self, model: T, path: PathLike, info: Mapping[str, Any] | None = None) -> None:
        """Write a model, with facts about its training if there are any."""
        values = {**self.header, **self.values(model)}
        if info is not None:
            if not all(isinstance(name, str) for name in info):
                raise InputError("the keys of info must be text")
            values["info"] = dict(info)
        write_object(path, values)

    def read(self, path: PathLike) -> ModelFile[T]:
        """Read a model; anything that does not fit is refused with the key and the reason."""
        return self.model_in(path, read_json(path, largest=self.largest))

    def model_in(self, path: PathLike, values: Mapping[str, Any]) -> ModelFile[T]:
        """Return the model in the object of a file."""
        check_header(path, values, self.name)
        keys = (*self.keys, *self.optional)
        kinds = {"format": _any, "version": _any, **dict.fromkeys(keys, _any), "info": KeyPlace.object}
        found = KeyPlace(path).fields(values, kinds, optional=(*self.optional, "info"))
        model = self.model(KeyPlace(path), {name: found[name] for name in keys if name in found})
        return ModelFile(model=model, info=found.get("info", {}))


def _any(at: KeyPlace, value: Any) -> Any:
    return value


#: Which method's models say so about themselves: for those who name the wrong one.
_METHODS = {"evenscore-score-model": "lgsm", "evenscore-evidence": "evidence"}


def check_header(path: PathLike, values: Mapping[str, Any], format: str, version: int = VERSION) -> None:
    """Refuse an object that is not of the given format, or of a version that this program does not know."""
    name, at = KeyPlace(path, "format"), KeyPlace(path, "version")
    if "format" not in values:
        name.refuse(f"the key is missing; a file of this kind says {format!r}")
    found = values["format"]
    if found != format:
        method = _METHODS.get(found) if isinstance(found, str) else None
        what = f", a model of the method {method}" if method else ""
        name.refuse(f"expected {format!r}, but found {shown(found)}{what}")
    if "version" not in values:
        at.refuse(f"the key is missing; this evenscore reads version {version}")
    found = values["version"]
    if type(found) is not int or found != version:
        problem = f"the file has version {shown(found)}, but this evenscore reads version {version}; "
        at.refuse(problem + "use the evenscore that wrote it, or a newer one")


def read_json(path: PathLike, *, largest: int = 10_000_000) -> dict[str, Any]:
    r"""Read a JSON object, such as facts about speakers, from a file of at most ``largest`` bytes (unpacked).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "speakers.json"
    >>> _ = path.write_text('{"ann": {"gender": "female"}}')
    >>> read_json(path)
    {'ann': {'gender': 'female'}}
    """
    with open_input(path) as stream, reading(path):
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise FileError(path, f"it is larger than {largest // 1000} kB, so it is not a file of this kind")
    return json_object(path, data)


def json_object(path: PathLike, data: bytes) -> dict[str, Any]:
    """Return the JSON object that bytes of a file hold."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(path, f"byte 0x{data[error.start]:02x} is not UTF-8, but JSON files are UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FileError(path, f"this is not JSON: {error.msg} (column {error.colno})", line=error.lineno) from None
    except RecursionError:
        raise FileError(path, "it is nested too deeply for a model file") from None
    except ValueError as error:  # our own refusals, and whole numbers of thousands of digits
        raise FileError(path, str(error)) from None
    if not isinstance(value, dict):
        raise FileError(path, f"expected a JSON object {{...}}, but found {kind_of(value)}")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise InputError(f"the key {key!r} stands twice in one object; keep one of them")
        values[key] = value
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"the value {name} is not finite, and no JSON either")


def write_object(path: PathLike, values: Mapping[str, Any]) -> None:
    """Write an object with one line per key; the keys of inner objects get lines of their own, too."""
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            inner = ",\n".join(f"    {_dumped(name)}: {_dumped(item)}" for name, item in value.items())
            lines.append(f"  {_dumped(key)}: {{\n{inner}\n  }}")
        else:
            lines.append(f"  {_dumped(key)}: {_dumped(value)}")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    with atomic_output(path) as stream:
        stream.write(text.encode("ascii"))


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{shown(value)} cannot be written as JSON: use text, finite numbers, lists") from None


def kind_of(value: object) -> str:
    """Return what JSON calls a value, for a message."""
    kinds = {bool: "true or false", dict: "an object", list: "a list", str: "text", type(None): "null"}
    return kinds.get(type(value), "a number")


def shown(value: object, longest: int = 60) -> str:
    """Return a value for a message, cut off if it is long."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number beyond the range of floating point"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a deep list
        return kind_of(value)
    return text if len(text) <= longest else f"{text[:longest]}..."
