"""Merge, show, check and convert every profile that LLVM-based compilers produce.

    >>> import profkit
    >>> merged = profkit.merge(["a.profraw", "b.profraw"], output="all.profdata")
    >>> merged.report["totals"]["files"]
    2

Each function runs the command of that name in this process, without the interpreter's lock. Keyword arguments that are not
listed are the command's options: ``profkit.show(path, top=5)`` is ``profkit show path --top 5``. ``True`` stands for an
option without a value, a list for an option that is given several times, and ``None`` and ``False`` for none.

A path is a ``str`` or an ``os.PathLike``; ``bytes``, ``bytearray`` and other buffers are the contents of a file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Union

from . import _native
from ._errors import Error, FileError
from ._native import __version__

__all__ = [
    "Answer",
    "Error",
    "FileError",
    "Merged",
    "Merger",
    "Profile",
    "Table",
    "__version__",
    "diff",
    "doctor",
    "match",
    "merge",
    "read",
    "show",
]

Path = Union[str, "os.PathLike[str]", "os.PathLike[bytes]"]
Contents = Union[bytes, bytearray, memoryview]
Source = Union[Path, Contents]
Weight = Union[int, float, str, Fraction]
_Given = tuple[bytes, Union[bytes, bytearray, None], str, Union[str, None]]


class Answer(dict[str, Any]):
    """The JSON document that a command prints with ``--format json``."""

    code: int
    """The exit code: 0, or 1 if a file is bad, or 3 if a condition of the caller was not met."""
    messages: str
    """What the command prints on standard error."""

    def __init__(self, document: dict[str, Any], command: tuple[str, tuple[Source, ...], dict[str, Any]], code: int, messages: str) -> None:
        super().__init__(document)
        self._command = command
        self.code = code
        self.messages = messages

    def text(self) -> str:
        """The answer for people. The command runs again for it."""
        command, sources, options = self._command
        return _run(command, sources, {**options, "format": "text"})[1].decode()

    def __reduce__(self) -> Any:
        return (Answer, (dict(self), self._command, self.code, self.messages))


@dataclass(frozen=True)
class Merged:
    """The result of a merge."""

    report: dict[str, Any]
    """What was kept, repaired and dropped, and why: docs/guide/merge.md lists the fields."""
    messages: str
    """What the command prints on standard error."""
    bytes: bytes | None = field(repr=False)
    """The profile; ``None`` if it was written to a file."""


def merge(
    inputs: Source | Iterable[Source],
    *,
    output: Path | None = None,
    weights: Sequence[Weight] | None = None,
    ids: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> Merged:
    """Merges profiles, folders and archives of them, and profiles in memory.

    ``weights``, ``ids`` and ``names`` have an element for each input. ``names`` are those in reports; ``ids`` identify
    inputs in merges that do not depend on their order (``order_free=True``). Without ``output`` the profile is in memory.
    """
    given = _given(inputs, weights, ids, names)
    words = [b"merge", *_words({**options, "output": output if output is not None else "-"})]
    code, data, messages, report = _native.call(words, given)
    return Merged(json.loads(report or b"{}"), messages, data if output is None else None)


class Merger:
    """A sum of profiles that goes on elsewhere: what :meth:`to_bytes` returns is a part, which another merger adds.

    A merger adds an input or a part once, however often it is delivered, and the result does not depend on the order. Each
    input has an id: by default that of its file on this machine; inputs in memory need ``ids``. Keyword arguments are
    options of ``profkit merge`` that decide what is added up. Threads may share a merger. Mergers can be pickled.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._sum = _native.Merger(_words(options))

    def add(
        self,
        inputs: Source | Iterable[Source],
        *,
        weights: Sequence[Weight] | None = None,
        ids: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        missing_ok: bool = False,
    ) -> None:
        """Adds profiles. Many at once are faster than one after another. Damaged ones are in the report, and no errors; with
        ``missing_ok``, so are files that do not exist."""
        self._sum.add(_given(inputs, weights, ids, names), missing_ok)

    def merge(self, part: Contents | Merger, *, name: str = "a part") -> None:
        """Adds a part, or all that another merger has."""
        self._sum.add_part(name, part.to_bytes() if isinstance(part, Merger) else _bytes(part))

    def to_bytes(self) -> bytes:
        """The part: a file for :func:`merge` and the other functions, and for :meth:`from_bytes`."""
        return self._sum.encode()

    @classmethod
    def from_bytes(cls, part: Contents, **options: Any) -> Merger:
        """Makes a merger of a part. ``options`` are those that the part was made with."""
        merger = cls(**options)
        merger.merge(part)
        return merger

    def finish(self, *, output: Path | None = None, **options: Any) -> Merged:
        """Makes the profile. ``options`` are further ones of ``profkit merge``, such as ``text=True``."""
        part = self.to_bytes()
        return merge(part, output=output, names=["the part"], **{**self._options, **options})

    @property
    def repeated(self) -> list[str]:
        """The names of inputs that were left out, because they were there already."""
        return self._sum.repeated()

    def __len__(self) -> int:
        """The number of inputs, those of parts included."""
        return self._sum.inputs()

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> Any:
        return (_merger, (self.to_bytes(), self._options))


def _merger(part: bytes, options: dict[str, Any]) -> Merger:
    return Merger.from_bytes(part, **options)


class Table:
    """Rows for data frames: ``pyarrow.table(t)``, ``polars.DataFrame(t)``. docs/formats/tables.md lists the columns."""

    def __init__(self, profile: Profile, name: str) -> None:
        self._profile = profile
        self._name = name
        self._arrow: _native.ArrowFile | None = None

    def _file(self) -> _native.ArrowFile:
        if self._arrow is None:
            self._arrow = _native.ArrowFile(self._profile._export("arrow", self._name))
        return self._arrow

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._file().__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._file().columns()

    def rows(self) -> list[dict[str, Any]]:
        """The rows as in the JSON of ``profkit export``: hashes are texts, and what is not known is left out."""
        document = json.loads(self._profile._export("json", self._name))
        rows: list[dict[str, Any]] = document["rows"]
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __reduce__(self) -> Any:
        return (Table, (self._profile, self._name))


class Profile:
    """A profile of any kind, whose contents are read when they are asked for."""

    def __init__(self, source: Source, **options: Any) -> None:
        self._source = _bytes(source) if _is_contents(source) else source
        self._options = options

    @property
    def kind(self) -> str:
        """What the file is: ``profkit doctor`` has the same words."""
        files = doctor(self._source)["files"]
        kind: str = files[0]["kind"]
        return kind

    def summary(self, **options: Any) -> Answer:
        """The totals, build ids and hottest functions: what :func:`show` returns."""
        return show(self._source, **{**self._options, **options})

    def table(self, name: str) -> Table:
        """A table: ``functions``, ``counters``, ``lines``, ``values``, ``traces`` or ``contexts``."""
        return Table(self, name)

    def functions(self) -> Table:
        """A row for each function."""
        return self.table("functions")

    def counters(self) -> Table:
        """A row for each counter."""
        return self.table("counters")

    def _export(self, to: str, table: str) -> bytes:
        return _run("export", (self._source,), {**self._options, "to": to, "table": table, "output": "-"})[1]

    def __reduce__(self) -> Any:
        return (_profile, (self._source, self._options))


def _profile(source: Source, options: dict[str, Any]) -> Profile:
    return Profile(source, **options)


def read(source: Source, **options: Any) -> Profile:
    """Opens a profile. ``options`` are those of ``profkit export``, such as ``binaries``.

    Raises :class:`Error` if the file is no profile.
    """
    profile = Profile(source, **options)
    answer = doctor(source)
    for file in answer["files"]:
        if file.get("verdict") in ("foreign", "unreadable"):
            raise Error(answer.text(), file=file.get("path"))
    return profile


def show(*profiles: Source, **options: Any) -> Answer:
    """What a profile contains: docs/formats/show-json.md. Several profiles are added up."""
    return _answer("show", profiles, options)


def doctor(*paths: Source, **options: Any) -> Answer:
    """What files are, and what is wrong with them: docs/formats/doctor-json.md."""
    return _answer("doctor", paths, options)


def match(profile: Source, *binaries: Path, **options: Any) -> Answer:
    """How much of a profile the functions of binaries can use: docs/formats/match-json.md."""
    return _answer("match", (profile, *binaries), options)


def diff(old: Source, new: Source, **options: Any) -> Answer:
    """What changed between two profiles: docs/formats/diff-json.md."""
    return _answer("diff", (old, new), options)


def _answer(command: str, sources: tuple[Source, ...], options: dict[str, Any]) -> Answer:
    sources = tuple(_bytes(source) if _is_contents(source) else source for source in sources)
    code, output, messages = _run(command, sources, {**options, "format": "json"})
    return Answer(json.loads(output), (command, sources, options), code, messages)


def _run(command: str, sources: tuple[Source, ...], options: dict[str, Any]) -> tuple[int, bytes, str]:
    with ExitStack() as stack:
        paths = []
        for source in sources:
            if _is_contents(source):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="profkit-"))
                path = os.path.join(folder, "memory")
                with open(path, "wb") as file:
                    file.write(source)  # type: ignore[arg-type]
                paths.append(os.fsencode(path))
            else:
                paths.append(os.fsencode(source))  # type: ignore[arg-type]
        words = [command.encode(), *_words(options), b"--", *paths]
        code, output, messages, _ = _native.call(words, [])
        return code, output, messages


def _words(options: dict[str, Any]) -> list[bytes]:
    words: list[bytes] = []
    for name, value in options.items():
        option = b"--" + name.rstrip("_").replace("_", "-").encode()
        if isinstance(value, (list, tuple)):
            words.extend(option + b"=" + _word(name, one) for one in value)
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(option + b"=" + _word(name, value))
    return words


def _word(name: str, value: Any) -> bytes:
    if isinstance(value, (str, os.PathLike)):
        return os.fsencode(value)
    if isinstance(value, (int, float)):
        return str(value).encode()
    raise TypeError(f"{name}: expected text, a number, a path or a list of these, and not {type(value).__name__}")


def _is_contents(source: object) -> bool:
    return not isinstance(source, (str, os.PathLike))


def _bytes(source: object) -> bytes:
    if isinstance(source, (bytes, bytearray)):
        return source if isinstance(source, bytes) else bytes(source)
    try:
        return bytes(memoryview(source))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"expected a path or the contents of a file, and not {type(source).__name__}") from None


def _given(
    inputs: Source | Iterable[Source],
    weights: Sequence[Weight] | None,
    ids: Sequence[str] | None,
    names: Sequence[str] | None,
) -> list[_Given]:
    if isinstance(inputs, (str, bytes, bytearray, memoryview, os.PathLike)):
        inputs = [inputs]
    given: list[_Given] = []
    sources = list(inputs)
    for what, values in (("weights", weights), ("ids", ids), ("names", names)):
        if values is not None and len(values) != len(sources):
            raise ValueError(f"there are {len(values)} {what} for {len(sources)} inputs")
    for index, source in enumerate(sources):
        weight = _weight(weights[index]) if weights is not None else "1"
        id = ids[index] if ids is not None else None
        if _is_contents(source):
            name = names[index] if names is not None else id or f"input {index + 1}"
            given.append((os.fsencode(name), _bytes(source), weight, id))
        else:
            given.append((os.fsencode(source), None, weight, id))  # type: ignore[arg-type]
    return given


def _weight(weight: Weight) -> str:
    if isinstance(weight, (float, Fraction)):
        # Weights are exact decimal fractions, and never written with an exponent.
        return f"{float(weight):.9f}".rstrip("0").rstrip(".")
    return str(weight)
