"""Spelling: the one rule by which two ways of writing are, or are not, the same value.

A table is written by one program, read by another and described by a person. So one value comes as `30`, `30.0`,
`30.00` or ` 30`, as `True` or `true`, as a number in one file and as text in the next. Every part that asks whether two
values are the same (conditions, labels of domains, trees, lattices, matrices, taxonomies and hierarchies, record keys,
semantic rules, duplicates in a policy, an original beside its release) compares their *spellings*, the texts that
`spelled` gives; what is shown or published stays as it was written:

    the same                          because
    30, 30.0, 30.00, 30., " 30"       a column with a gap becomes floats, a report has fixed digits; blanks are not seen
    5, +5; 0, -0; .5, 0.5             the sign of zero, a plus and a zero before the point change no number
    1e+05, 1.0E5, 100000; 1e-7        that is how programs write large and small floats
    true, True, TRUE (and false)      Arrow, pandas and spreadsheets write truth values so
    2024-01-31, 2024-01-31T00:00:00   pandas has no dates, only times, and leaves midnight out where nothing else occurs
    10:00 and 10:00:00.000 of a day   digits of a second that are zero
    é as one character or as two      canonically equivalent in Unicode: they look the same

    not the same                      because
    007 and 7                         leading zeros make a code: a postcode, a ward, a policy reads 007 as text, too
    1e3 and 1000                      digits around a bare e are a code: among hexadecimal names 0e12 and 0e34 are two
    yes, 1 and true; M and m          words and codes mean what the policy says; case tells codes apart
    "1,5" and 1.5; 1 000 and 1000     what a comma or a blank means depends on the country
    12:00+00:00 and 13:00+01:00       one instant, but a record says which clock it was read from

Spellings of values of different types can be the same (the number 30 and the text "30"), because a text file does not
tell them apart. Most values are spelled as they are written, so most columns cost one look.

Two layers lie on top of the rule, both for texts that are known to be something narrower than text:

    record keys          `spelled_key`: 005 and 5 are one person, see there
    domains of numbers   a policy that declares numbers says that the column holds numbers; texts that the rule does not
                         find among them are read as numbers, as `type: number` reads them (see `codes`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

# The functions below import polars: taxonomies are listed and distances declared by commands that start without it.
if TYPE_CHECKING:
    import polars as pl

__all__ = ["Label", "different", "names_of", "spelled", "spelled_key", "spelling", "spellings", "with_text", "written"]

Label: TypeAlias = str | int | float | bool
"""A value as a policy declares it."""
_L = TypeVar("_L", bound=Label)

_BLANKS = " \u00a0\u3000"
"""At the end of a text any blank goes, because line ends leave carriage returns there; at its beginning only spaces,
broad or narrow: a tab in front changes what a spreadsheet takes the text for."""
_TRUTH = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_WHOLE = "(?:0|[1-9][0-9]*)"
_DECIMAL = rf"^-?{_WHOLE}\.[0-9]*$"
_SIGNED = rf"^\+(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)$"
_POINTED = r"^-?\.[0-9]+$"
_EXPONENT = rf"^[+-]?(?:(?:{_WHOLE}\.[0-9]*|\.[0-9]+)[eE][+-]?|{_WHOLE}[eE][+-])[0-9]{{1,3}}$"
"""Floats end at 1e308; the digits of a larger power of ten would only fill memory."""
_CLOCK = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]*?)0*)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
)
_AWKWARD = (
    rf"^[{_BLANKS}]|\s$|^[+-]?[0-9]*\.|^\+[0-9]|^-0$|^-?[0-9]+[eE][+-]|^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]"
    r"|^(?:True|TRUE|False|FALSE)$"
)
"""Whatever the rule may change: one look at each text finds that most columns have nothing of the kind."""
_SHORT = (1e-3, 1e15)
"""Floats between these, and zero, are written without an exponent."""
_REPEATED = 8
"""Where every value occurs so often, it is quicker to look at the different ones. Measured on columns of 5 million
texts: finding them takes 0.04 s for three values and 0.8 s when all are different, looking at each text 0.12 s."""
_EXACT = float(1 << 53)
"""Below this a float without a fraction is the whole number that it is written as."""


def spelled(series: pl.Series) -> pl.Series:
    """The spelling of each value of a column; nulls stay nulls.

    >>> import polars as pl
    >>> spelled(pl.Series(["30.00", "True", " 5", "+5", "-0", ".50", "1e+3", "007", "1e3", "male"])).to_list()
    ['30', 'true', '5', '5', '0', '0.5', '1000', '007', '1e3', 'male']
    >>> spelled(pl.Series([30.0, 7.5, 1e16])).to_list(), spelled(pl.Series([True])).to_list()
    (['30', '7.5', '10000000000000000'], ['true'])
    """
    import polars as pl

    if series.dtype.is_float():
        return _spelled_floats(series)
    texts = with_text(series).cast(pl.String)
    return texts if series.dtype.is_integer() or series.dtype == pl.Boolean else _spelled_texts(texts)


def spellings(values: Iterable[Label | date]) -> list[str]:
    """The spellings of declared values.

    >>> spellings([30, 30.0, True, "TRUE", "O80 "])
    ['30', '30', 'true', 'true', 'O80']
    """
    import polars as pl

    return spelled(pl.Series([written(value) for value in values], dtype=pl.String)).to_list()


@lru_cache(maxsize=4096, typed=True)
def spelling(value: Label | date) -> str:
    """The spelling of one value.

    Remembered, because a manifest repeats the same few in all its conditions.
    """
    return spellings([value])[0]


def written(value: Label | date) -> str:
    """A label as a text column writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def different(labels: Iterable[_L]) -> dict[str, _L]:
    """The values that some labels stand for, by their spelling, in the order in which they come.

    Each is written as it comes first, or as it is spelled where some label is.

    >>> different(["30.0", "True", "30", "TRUE"])
    {'30': '30', 'true': 'True'}
    """
    labels = list(labels)
    found: dict[str, _L] = {}
    for label, name in zip(labels, spellings(labels)):
        if name not in found or written(label) == name:
            found[name] = label
    return found


def names_of(values: Sequence[Label]) -> list[str]:
    """The spellings of the values of a domain, by which two domains are compared.

    All of them different.

    An old release may list two spellings of one value: such values keep the way they are written.

    >>> names_of([30.0, True, "1", "1.0"])
    ['30', 'true', '1', '1.0']
    """
    names = spellings(values)
    often = Counter(names)
    return [name if often[name] == 1 else written(value) for name, value in zip(names, values)]


def spelled_key(series: pl.Series) -> pl.Series:
    """The spelling of record keys: as `spelled`, and whole numbers have no leading zeros.

    A key that changes between two releases gives a person new decoys, and what both sets have in common is the truth.
    The same numbers are 005 in one file and 5 in another that a spreadsheet has been through. To take two people for
    one is the smaller harm: they share decoys where they share the value.

    >>> import polars as pl
    >>> spelled_key(pl.Series([" 5", "005", "5.0", "+05.00", "A5 ", "A05"])).to_list()
    ['5', '5', '5', '5', 'A5', 'A05']
    """
    return _wherever(spelled(series), r"^[+-]?0[0-9]*(?:\.0*)?$", _without_zeros)


def with_text(series: pl.Series) -> pl.Series:
    """A column as it is, or as text where its values have none of their own: lists, structures, durations, bytes."""
    import polars as pl

    if not (series.dtype.is_nested() or series.dtype in (pl.Duration, pl.Binary)):
        return series
    shown = [None if value is None else str(value) for value in series.to_list()]
    return pl.Series(series.name, shown, dtype=pl.String)


def _spelled_floats(series: pl.Series) -> pl.Series:
    import polars as pl

    if ((series == series.floor()) & (series.abs() < _EXACT)).all():
        return series.cast(pl.Int64).cast(pl.String)
    unsigned = series.set(series == 0.0, 0.0)
    texts = unsigned.cast(pl.String).str.strip_suffix(".0")
    short = (series.abs().is_between(*_SHORT) | (series == 0.0)).all()
    return texts if short else _wherever(texts, "e", _spelled_texts)


def _spelled_texts(texts: pl.Series) -> pl.Series:
    if _REPEATED * cast("int", texts.approx_n_unique()) > len(texts):
        return _normal(texts)
    distinct = texts.unique()
    normal = _normal(distinct)
    return texts if normal.equals(distinct) else texts.replace(distinct, normal)


def _normal(texts: pl.Series) -> pl.Series:
    if (texts.str.len_bytes() != texts.str.len_chars()).any():
        texts = texts.str.normalize("NFC")
    return _wherever(texts, _AWKWARD, _plainer)


def _plainer(texts: pl.Series) -> pl.Series:
    texts = texts.str.strip_chars_start(_BLANKS).str.strip_chars_end().replace(_TRUTH)
    texts = _wherever(texts, _EXPONENT, _written_out)
    texts = _wherever(texts, _SIGNED, lambda found: found.str.strip_prefix("+"))
    texts = _wherever(texts, _POINTED, lambda found: found.str.replace(".", "0.", literal=True))
    texts = _wherever(texts, _DECIMAL, lambda found: found.str.strip_chars_end("0").str.strip_chars_end("."))
    return _wherever(texts.replace("-0", "0"), _CLOCK, _moments)


def _written_out(texts: pl.Series) -> pl.Series:
    """Numbers with an exponent as digits: 1.5e+3 is 1500."""
    import polars as pl

    distinct = texts.unique()
    digits = [format(Decimal(text), "f") for text in distinct.to_list()]
    return texts.replace(distinct, pl.Series(digits, dtype=pl.String))


def _moments(texts: pl.Series) -> pl.Series:
    """Days with times: a blank between them, seconds, and no midnight where no zone says whose."""
    parts = texts.str.extract_groups(_CLOCK).struct.unnest()
    day, minutes, seconds, fraction, zone = (parts[name].fill_null("") for name in parts.columns)
    whole = minutes + seconds.replace("", ":00") + ("." + fraction).replace(".", "")
    zone = zone.replace("Z", "+00:00").str.replace(r"^(...)([0-9]{2})$", "$1:$2")
    midnight = (whole == "00:00:00") & (zone == "")
    return day.zip_with(midnight, day + " " + whole + zone).alias(texts.name)


def _without_zeros(texts: pl.Series) -> pl.Series:
    return texts.str.replace(r"^\+?(-?)0*([0-9]+)(?:\.0*)?$", "$1$2").replace("-0", "0")


def _wherever(texts: pl.Series, pattern: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The texts with those that match a pattern changed."""
    rows = texts.str.contains(pattern).arg_true()
    if not len(rows):
        return texts
    if len(rows) == len(texts):
        return change(texts)
    return texts.clone().scatter(rows, change(texts.gather(rows)))
