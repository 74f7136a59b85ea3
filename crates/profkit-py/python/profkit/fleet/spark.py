"""Merges on Apache Spark 4.1 and later: :func:`merge`.

Executors need this package, pyarrow, and access to the inputs: profkit opens them, and not Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql import functions as F

from .. import Error, Merged, Path
from . import combine, finish, premerge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["merge"]

_ROW = "part binary"


def merge(
    manifest: DataFrame,
    *,
    output: Path | None = None,
    tasks: int | None = None,
    fan_in: int = 32,
    finish_options: dict[str, Any] | None = None,
    **options: Any,
) -> Merged:
    """Merges the inputs that a manifest names: the result is that of ``profkit.merge(…, order_free=True)`` on one machine.

    ``manifest`` has a column ``uri``, and perhaps ``id`` (else the URI) and ``weight``. Several rows with one id are one input:
    that with the lowest URI. ``tasks`` is the number of tasks that read inputs, ``fan_in`` that of parts that one task adds up.
    ``options`` are those of :class:`profkit.Merger`, ``finish_options`` further ones of ``profkit merge``, such as ``llvm``. The
    profile is made by the driver.
    """
    if fan_in < 2:
        raise ValueError("fan_in: expected 2 or more")
    inputs = _one_per_id(manifest)
    count = tasks or manifest.sparkSession.sparkContext.defaultParallelism * 4

    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        first = next(batches, None)
        if first is not None:
            rows = (row for batch in chain([first], batches) for row in batch.to_pylist())
            yield _row(premerge(rows, **options))

    def add(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        # A generator: one part is in memory beside the sum.
        yield _row(combine((part.as_py() for batch in batches for part in batch.column("part")), **options))

    parts = inputs.repartitionByRange(count, "id").mapInArrow(read, _ROW)
    while count > fan_in:
        count = -(-count // fan_in)
        # The hash of its bytes, so that a part that is made again goes to the same task.
        salted = parts.withColumn("salt", F.pmod(F.xxhash64("part"), F.lit(count)))
        parts = salted.groupBy("salt").applyInArrow(_streamed(add), _ROW)
    rows = parts.collect()
    if not rows:
        raise Error("the manifest names no inputs", kind="no_inputs")
    part = combine((bytes(row["part"]) for row in rows), **options)
    return finish(part, output=output, **options, **(finish_options or {}))


def _one_per_id(manifest: DataFrame) -> DataFrame:
    if "uri" not in manifest.columns:
        raise ValueError(f"manifest: expected a column uri, found {', '.join(manifest.columns)}")
    id = F.coalesce("id", "uri") if "id" in manifest.columns else F.col("uri")
    weight = F.coalesce(F.col("weight").cast("string"), F.lit("1")) if "weight" in manifest.columns else F.lit("1")
    rows = manifest.select(id.cast("string").alias("id"), F.struct("uri", weight.alias("weight")).alias("input"))
    # The lowest, so that a stage that is computed again sees the same rows.
    rows = rows.groupBy("id").agg(F.min("input").alias("input"))
    return rows.select("id", "input.uri", "input.weight")


def _streamed(add: Any) -> Any:
    # These types of arguments are how Spark knows that a group need not be in memory as a whole.
    def function(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from add(batches)

    function.__annotations__ = {"batches": Iterator[pyarrow.RecordBatch], "return": Iterator[pyarrow.RecordBatch]}
    return function


def _row(part: bytes) -> pyarrow.RecordBatch:
    return pyarrow.record_batch([pyarrow.array([part], pyarrow.binary())], names=["part"])
