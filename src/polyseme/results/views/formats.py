"""One way to write a number, wherever it is shown; and many names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

__all__ = [
    "chance",
    "count",
    "counted",
    "day",
    "moment",
    "parameters",
    "percent",
    "plain",
    "points",
    "quantity",
    "some",
    "yes_no",
]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NOTHING = "–"
_LEAST_SHARE = 0.0005
"""Less than that is rounded to 0.0%."""
_EXACT = 1e-12
"""So much below 1 is rounding, not a share."""
_NAMED = 12
"""Names that a list of many begins with: more would fill the screen."""


def count(number: float) -> str:
    """A number of records.

    >>> count(12345.6), count(-3.2), count(float("nan"))
    ('12,346', '−3', '–')
    """
    if not math.isfinite(number):
        return NOTHING
    return f"{round(number):,}".replace("-", "−")


def percent(share: float | None) -> str:
    """A share of people; one that is not 0% or 100% is never rounded to it.

    >>> percent(1 / 3), percent(None), percent(0.0001), percent(0.9999), percent(1.0)
    ('33.3%', '–', '< 0.1%', '> 99.9%', '100.0%')
    """
    if share is None or math.isnan(share):
        return NOTHING
    if 0.0 < share < _LEAST_SHARE:
        return "< 0.1%"
    return "> 99.9%" if 1.0 - _LEAST_SHARE < share < 1.0 - _EXACT else f"{share:.1%}"


def chance(share: float | None) -> str:
    """How often something happens; never rounded to nothing or to certainty.

    >>> chance(1 / 3), chance(2.64e-4), chance(0.99999), chance(1.0), chance(None)
    ('33.3%', '0.026%', 'over 99.9%', '100%', '–')
    """
    if share is None or math.isnan(share):
        return NOTHING
    if 0.0 < share < _LEAST_SHARE:
        return f"{quantity(100 * share, 2)}%"
    if 1.0 - _LEAST_SHARE < share < 1.0 - 1e-9:
        return "over 99.9%"
    return "100%" if share >= 1.0 - 1e-9 else f"{share:.1%}"


def counted(number: float, thing: str, things: str = "") -> str:
    """How many there are of something.

    >>> counted(1, "record"), counted(1200, "record"), counted(2, "class", "classes")
    ('1 record', '1,200 records', '2 classes')
    """
    return f"{count(number)} {thing if round(number) == 1 else things or f'{thing}s'}"


def quantity(number: float | None, digits: int = 3) -> str:
    """A probability, parameter or measure to `digits` significant digits, or in powers of ten.

    >>> quantity(1 / 3), quantity(3.14159e-6), quantity(math.inf), quantity(None), quantity(1.0)
    ('0.333', '3.14 × 10⁻⁶', '∞', '–', '1')
    """
    if number is None or math.isnan(number):
        return NOTHING
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    if float(number).is_integer() and abs(number) < 1e9:
        return count(number)
    exponent = math.floor(math.log10(abs(number)))
    if -4 <= exponent < 7:
        return _short(f"{number:,.{max(digits - 1 - exponent, 0)}f}")
    mantissa, power = f"{number:.{digits - 1}e}".split("e")
    return f"{_short(mantissa)} × 10{str(int(power)).translate(_SUPERSCRIPTS)}"


def _short(text: str) -> str:
    """Without the zeros after the last digit, and with a true minus sign."""
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def points(mse: float | None) -> str:
    """The typical error of a share, in percentage points, from its squared error.

    >>> points(4e-6)
    '0.2'
    """
    if mse is None or not math.isfinite(mse):
        return NOTHING
    return quantity(100 * math.sqrt(max(mse, 0.0)), 2)


def parameters(values: Mapping[str, Any]) -> str:
    """The parameters of a model.

    >>> parameters({"l": 3, "d": 2.0})
    'l=3, d=2'
    """
    return ", ".join(f"{name}={_parameter(value)}" for name, value in values.items())


def _parameter(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return quantity(value, 4)


def yes_no(value: bool | None) -> str:
    """An answer; a dash when it is not known or there is no question."""
    return NOTHING if value is None else "yes" if value else "no"


def plain(text: object) -> str:
    """Text without control characters, which could steer a terminal.

    >>> plain(f"a{chr(27)}[2Jb")
    'a�[2Jb'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


def name_of(column: object) -> str:
    """The name of a column in a sentence, also of one whose header is empty.

    >>> name_of("age"), name_of("")
    ('age', 'the column without a name')
    """
    return plain(column) if str(column).strip() else "the column without a name"


def some(names: Sequence[str]) -> str:
    """Names, the first ones where there are many.

    >>> some(["a", "b"])
    'a, b'
    >>> some([*"abcdefghijklmn"])
    'a, b, c, d, e, f, g, h, i, j, k, l and 2 more'
    """
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def moment(text: str) -> str:
    """A moment as people write it, in the zone in which it was announced.

    >>> moment("2026-12-01T08:00:00+00:00"), moment("2026-12-01T08:00:00+01:00")
    ('1 December 2026, 08:00 UTC', '1 December 2026, 08:00 UTC+01:00')
    """
    found = datetime.fromisoformat(text)
    return f"{found.day} {found:%B %Y, %H:%M} {found.tzname()}"


def day(text: str) -> str:
    """A date as people write it.

    >>> day("2026-11-07"), day("")
    ('7 November 2026', '')
    """
    if not text:
        return ""
    found = date.fromisoformat(text)
    return f"{found.day} {found:%B %Y}"
