"""What has to be known about a file before it can be read."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["TableOptions"]


class TableOptions(TypedDict, total=False):
    """How a table is stored.

    separator  what separates the fields of a text table; found out when it is None
    encoding   how the characters of a text table are written
    sheet      which sheet of a workbook is the table; the first one when it is None
    decimal    what stands before the fraction of a number in a text: point or comma
    dates      how dates are written in a text, such as dd.mm.yyyy; ISO 8601 when it is None
    """

    separator: str | None
    encoding: str
    sheet: str | None
    decimal: str
    dates: str | None
