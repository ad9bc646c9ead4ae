"""What k, l and t a table has, and which columns make its records unique.

No value of the table is in it: names of columns, and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from polyseme.kernel.errors import people_words
from polyseme.results.base import Result

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Choice", "ColumnRisk", "Risk", "SensitiveRisk", "SizeBand"]


@dataclass(frozen=True)
class SizeBand:
    """Classes of similar size: from `low` to `high` records (None: or more), how many, and the records in them."""

    low: int
    high: int | None
    classes: int
    records: int


@dataclass(frozen=True)
class ColumnRisk:
    """What one quasi-identifier tells, and what becomes of the classes of those who do not know it.

    distinct         different values
    distinction      distinct over records
    separation       share of the pairs of records with different values; None for fewer than two records
    unique_without   records that are still alone in their class
    k_without        the smallest class
    classes_without  the number of classes
    """

    name: str
    distinct: int
    distinction: float | None
    separation: float | None
    unique_without: int
    k_without: int | None
    classes_without: int


@dataclass(frozen=True)
class SensitiveRisk:
    """What classes tell about one sensitive attribute; None where there is no record to tell of.

    known          the quasi-identifiers that form the classes: all but the attribute itself
    records        in these classes
    values         different values, a missing one among them
    missing        records without a value
    l              the fewest different values in a class
    entropy_l      the smallest effective number of values: e to the entropy of a class
    largest_share  the largest share of one value in a class: how sure the surest guess is
    guessed        share of all records that are guessed right by who takes the most frequent value of each class
    baseline       the same for who takes the most frequent value of the table
    t              the largest distance of a class from the table, on `ground`: "equal", or "ordered" for numbers
    t_equal        the same where all values are equally far apart
    homogeneous    records in classes with a single value
    """

    name: str
    known: tuple[str, ...]
    records: int
    values: int
    missing: int
    l: int | None
    entropy_l: float | None
    largest_share: float | None
    guessed: float | None
    baseline: float | None
    t: float | None
    ground: str
    t_equal: float | None
    homogeneous: int

    @property
    def homogeneous_share(self) -> float | None:
        return self.homogeneous / self.records if self.records else None


@dataclass(frozen=True)
class Choice:
    """A column that was taken as a quasi-identifier without a request, or left out, and why."""

    name: str
    role: str
    why: str

    @property
    def taken(self) -> bool:
        return self.role == "quasi-identifier"


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Result):
    """The risks of a table, measured on its equivalence classes.

    records            in a class
    suppressed         rows with `*` in every quasi-identifier, set aside
    quasi_identifiers  the columns that form the classes
    k                  records of the smallest class; None without records
    unique             records that are alone in their class
    classes            how many there are
    sizes              how large they are
    columns            what each quasi-identifier adds
    sensitive          what classes tell about each sensitive attribute
    choices            how the quasi-identifiers were found, where none were named
    people             whose records they are, where a column says so: `k`, `unique`, `sizes` and what is told about
                       sensitive attributes are then about people, of whom each is in a class once
    """

    records: int
    suppressed: int
    quasi_identifiers: tuple[str, ...]
    k: int | None
    unique: int
    classes: int
    sizes: tuple[SizeBand, ...] = ()
    columns: tuple[ColumnRisk, ...] = ()
    sensitive: tuple[SensitiveRisk, ...] = ()
    choices: tuple[Choice, ...] = ()
    people: int | None = None

    @property
    def units(self) -> int:
        """What was counted: people where it is known whose the records are, and records otherwise."""
        return self.records if self.people is None else self.people

    @property
    def memberships(self) -> int:
        """The sizes of all classes together; a person with records in several classes is in each."""
        return self.records if self.people is None else sum(band.records for band in self.sizes)

    @property
    def l(self) -> int | None:  # noqa: E743 - the field's own letter
        """The fewest different values that a class has, of any sensitive attribute."""
        return min((item.l for item in self.sensitive if item.l is not None), default=None)

    @property
    def t(self) -> float | None:
        """The largest distance of a class from the table, of any sensitive attribute."""
        return max((item.t for item in self.sensitive if item.t is not None), default=None)

    @property
    def unique_share(self) -> float | None:
        """The share of records, or people, that are alone in their class."""
        return self.unique / self.units if self.records else None

    @property
    def average_size(self) -> float | None:
        """Records, or people, to a class."""
        return self.memberships / self.classes if self.classes else None

    @property
    def prosecutor_risk(self) -> float | None:
        """How often who looks for one person, and knows that they are in the table, finds them: 1 / k at worst."""
        return 1 / self.k if self.k else None

    @property
    def marketer_risk(self) -> float | None:
        """The share of records, or people, found by an attacker who looks for everybody: classes over their sizes."""
        return self.classes / self.memberships if self.records else None

    def to_dict(self) -> dict[str, Any]:
        """The document of `risk --json`."""
        return {
            "k": self.k,
            "l": self.l,
            "t": self.t,
            "unique": self.unique,
            "unique_share": self.unique_share,
            "classes": self.classes,
            "average_size": self.average_size,
            "prosecutor_risk": self.prosecutor_risk,
            "marketer_risk": self.marketer_risk,
            "counts": "rows" if self.people is None else "people",
            "people": self.people,
            "records": self.records,
            "suppressed": self.suppressed,
            "quasi_identifiers": list(self.quasi_identifiers),
            "sizes": [asdict(band) for band in self.sizes],
            "columns": [asdict(column) for column in self.columns],
            "sensitive": [_document(item) for item in self.sensitive],
            "choices": [asdict(choice) for choice in self.choices],
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            document["records"],
            document["suppressed"],
            tuple(document["quasi_identifiers"]),
            document["k"],
            document["unique"],
            document["classes"],
            tuple(SizeBand(**band) for band in document["sizes"]),
            tuple(ColumnRisk(**column) for column in document["columns"]),
            tuple(_sensitive(entry) for entry in document["sensitive"]),
            tuple(Choice(**choice) for choice in document["choices"]),
            document.get("people"),
        )

    def __repr__(self) -> str:
        found = f"k = {self.k}, {self.unique:,} unique" if self.records else "nothing to measure"
        whose = "" if self.people is None else f" of {people_words(self.people)}"
        return f"<Risk of {self.records:,} records{whose}: {found}>"

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.risk_view import risk_view

        return risk_view(self.to_dict())

    def _repr_html_(self) -> str:
        from polyseme.results.views.risk_view import risk_table

        return risk_table(self.to_dict())


def _document(item: SensitiveRisk) -> dict[str, Any]:
    return {**asdict(item), "known": list(item.known), "homogeneous_share": item.homogeneous_share}


def _sensitive(entry: Mapping[str, Any]) -> SensitiveRisk:
    given = {key: value for key, value in entry.items() if key != "homogeneous_share"}
    return SensitiveRisk(**{**given, "known": tuple(given["known"])})
