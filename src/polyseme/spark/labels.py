"""Rows as they travel become rows as they are published: labels in place of codes, the users' names, no places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from polyseme.release import Grouped
from polyseme.spark.drawing import Layout
from polyseme.spark.packing import FEW
from polyseme.spark.types import spark_type
from polyseme.tables.coding.codes import label_array

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["group_labels", "labelled"]


def labelled(frame: DataFrame, layout: Layout) -> DataFrame:
    """The columns of the release, in their order."""
    from pyspark.sql import functions as sql

    job = layout.job
    columns: list[Column] = []
    for number, (item, packing) in enumerate(zip(job.columns, layout.packings)):
        names = layout.names(number)
        if packing is not None:
            labels = _labels(job.labels[item.name])
            found = [sql.get(labels, packing.code(names, place)) for place in range(packing.candidates)]
            made = found[0] if job.form == "long" else sql.array(*found)
        else:
            made = _of_group(item, names[0]) if isinstance(item, Grouped) else sql.col(names[0])
        columns.append(made.alias(item.name))
    return frame.select(*columns)


def _of_group(item: Grouped, codes: str) -> Column:
    """All values of a group; where the domain has many, they have come as texts."""
    from pyspark.sql import functions as sql

    values = group_labels(item)
    if len(values) > FEW:
        return _typed(sql.col(codes), values.type)
    labels = _labels(values)
    return sql.transform(sql.col(codes), lambda code: sql.element_at(labels, code + 1))


def group_labels(item: Grouped) -> pa.Array:
    """The values of an attribute that is published by group, by code."""
    domain = item.attribute.domain
    return label_array(domain.values if domain is not None else ())


def _labels(labels: pa.Array) -> Column:
    """All labels of a domain as one constant: a text that is split once, since a plan of 70,000 literals is slow."""
    from pyspark.sql import functions as sql

    texts = [str(text) for text in labels.cast(pa.string()).to_pylist()]
    mark = _unused(texts)
    # An empty label at the end must stay: no limit on the number of pieces.
    return _typed(sql.split(sql.lit(mark.join(texts)), mark, -1), labels.type)


def _typed(texts: Column, kind: pa.DataType) -> Column:
    """Labels in their own type."""
    return texts if kind == pa.string() else texts.cast(f"array<{spark_type(kind).simpleString()}>")


def _unused(texts: list[str]) -> str:
    """A character that no label has, and that means itself in a regular expression.

    >>> _unused(["a", chr(1)]) == chr(2)
    True
    """
    used = set().union(*texts)
    return next(chr(code) for code in range(1, 0xD800) if chr(code) not in used and chr(code) not in r".^$|?*+()[]{}\\")
