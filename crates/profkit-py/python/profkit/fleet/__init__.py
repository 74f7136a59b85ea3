"""Merges on many machines: three functions that every engine can call.

``premerge`` makes parts of inputs, ``combine`` makes one part of several, ``finish`` makes the profile. All are pure: the same
inputs give the same bytes, so an engine may run a task again, or twice at a time, and a part that is delivered twice counts once.
Each input must go to one task: parts that share some of their inputs cannot be added, and are an error of kind ``overlap``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from .. import Contents, Merged, Merger, Path

__all__ = ["combine", "finish", "premerge"]

_ROWS_AT_ONCE = 4096
"""Adding many inputs at once is faster; each row is some hundred bytes."""


def premerge(rows: Iterable[Mapping[str, Any]], **options: Any) -> bytes:
    """Makes a part of the inputs of manifest rows: ``uri``, and perhaps ``id`` (else the URI) and ``weight`` (else 1).

    A file that is damaged or missing is in the report of the part. ``options`` are those of :class:`profkit.Merger`.
    """
    merger = Merger(**options)
    rest = iter(rows)
    # A manifest may be longer than memory: its rows are read as they are needed.
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        merger.add(
            [row["uri"] for row in some],
            ids=[id_of(row) for row in some],
            weights=[row.get("weight") or 1 for row in some],
            missing_ok=True,
        )
    return merger.to_bytes()


def combine(parts: Iterable[Contents], **options: Any) -> bytes:
    """Makes one part of several."""
    merger = Merger(**options)
    for part in parts:
        merger.merge(part)
    return merger.to_bytes()


def finish(part: Contents, *, output: Path | None = None, **options: Any) -> Merged:
    """Makes the profile of a part."""
    return Merger.from_bytes(part).finish(output=output, **options)


def id_of(row: Mapping[str, Any]) -> str:
    """What identifies the input of a manifest row."""
    return str(row.get("id") or row["uri"])
