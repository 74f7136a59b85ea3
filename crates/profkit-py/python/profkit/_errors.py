"""The exceptions of profkit."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """What went wrong, as text and as values that programs can examine."""

    kind: str
    """What went wrong: the kinds of profkit's errors about data, such as ``truncated``; ``input``, ``usage``, ``gate``
    for the exit codes 1, 2 and 3 of the command; ``system``; those of merges; ``internal`` for a fault of profkit."""
    hint: str | None
    """What to do next."""
    offset: int | None
    """The byte of the file at which the error was found."""
    structure: str | None
    """The part of the file in which the error was found."""
    file: str | None
    """The name of the file."""
    report: dict[str, Any] | None
    """The report of a merge that has no result: docs/guide/merge.md lists its fields."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "input",
        hint: str | None = None,
        offset: int | None = None,
        structure: str | None = None,
        file: str | None = None,
        errno: int | None = None,
        report: bytes | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.offset = offset
        self.structure = structure
        self.file = file
        self.errno = errno
        self.report = json.loads(report) if isinstance(report, bytes) else report

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Any:
        return (_error, (type(self), self.args[0], dict(self.__dict__)))


class FileError(Error, OSError):
    """A file cannot be read or written. ``errno`` is the number of the system's error."""


def _error(kind: type[Error], message: str, values: dict[str, Any]) -> Error:
    error = kind(message)
    error.__dict__.update(values)
    return error
