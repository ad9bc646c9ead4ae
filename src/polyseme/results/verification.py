"""The verdict on every promise, and how far estimates are from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from polyseme.kernel.errors import Problem
from polyseme.models import Verdict
from polyseme.models.base import Place
from polyseme.release import SEEDED
from polyseme.results.attackers import Guessers
from polyseme.results.base import Result, restored, written

__all__ = ["Evaluation", "Preserved", "Verification"]

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Preserved:
    """A score of both predictors and of the best constant.

    original, estimate  s(f) and s(f^)
    difference          s(f^) - s(f)
    constant            the score without any feature
    """

    original: float
    estimate: float
    difference: float
    constant: float

    def to_dict(self) -> dict[str, Any]:
        return written(asdict(self))


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """How far estimates are from the truth: the metrics of each table that was compared.

    tables    by question, such as "income by sex"
    learning  what predictors trained on each table are worth, where requested
    """

    tables: Mapping[str, Mapping[str, float]]
    learning: Mapping[str, Mapping[str, Preserved]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The document of `evaluate --json`: the metrics by name.

        Of several tables, by question first.
        """
        documents = {question: self._document(question) for question in self.tables}
        if len(documents) != 1:
            return documents
        ((question, document),) = documents.items()
        return {**document, "question": question}

    def _document(self, question: str) -> dict[str, Any]:
        document = written(self.tables[question])
        if question in self.learning:
            document["learning"] = {name: score.to_dict() for name, score in self.learning[question].items()}
        return document

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        single = document.get("question")
        documents = {single: document} if isinstance(single, str) else document
        apart = ("learning", "question")
        return cls(
            {
                question: restored({key: value for key, value in entry.items() if key not in apart})
                for question, entry in documents.items()
            },
            {
                question: {name: Preserved(**restored(score)) for name, score in entry["learning"].items()}
                for question, entry in documents.items()
                if "learning" in entry
            },
        )

    def __repr__(self) -> str:
        return f"<Evaluation of {', '.join(self.tables) or 'nothing'}>"

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.terminal import evaluation_view

        return evaluation_view(self.tables, self.learning)

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import evaluation_tables

        return evaluation_tables(self.tables, self.learning)


if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Result):
    """The verdicts on everything that was promised.

    seeded    whether the release was made with a seed, so that nothing holds against those who guess it
    learners  for each protected attribute, what people can guess who know more than the promise reckons with
    offending where in a table something is violated; it is not stored
    remarks   what a reader should hear besides: which records share a value or a set
    """

    verdicts: tuple[Verdict, ...]
    seeded: bool = False
    learners: Mapping[str, Guessers] = field(default_factory=dict)
    offending: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether there was something to check and all of it holds."""
        return bool(self.verdicts) and all(verdict.holds for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """The document of `verify --json`."""
        return {
            "holds": self.holds,
            "seeded": self.seeded,
            "verdicts": [_document(item) for item in self.verdicts],
            "learners": {name: attackers.to_dict() for name, attackers in self.learners.items()},
            "remarks": list(self.remarks),
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        learners = {name: Guessers.from_dict(entry) for name, entry in document.get("learners", {}).items()}
        verdicts = tuple(_verdict(entry) for entry in document["verdicts"])
        return cls(verdicts, bool(document["seeded"]), learners, remarks=tuple(document.get("remarks", ())))

    def __repr__(self) -> str:
        bad = sum(not verdict.holds for verdict in self.verdicts)
        mark = f", {SEEDED}" if self.seeded else ""
        found = "all hold" if self.holds else f"{bad} violated"
        return f"<Verification of {len(self.verdicts)} promises: {found}{mark}>"

    def __rich__(self) -> RenderableType:
        return self.view()

    def view(self, explain: bool = False) -> RenderableType:
        """The tables for a terminal; with `explain` also what each row means."""
        from polyseme.results.views.terminal import verdict_view

        return verdict_view(self.verdicts, self.to_dict()["learners"], self.remarks, explain=explain)

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import verdict_table

        return verdict_table(self.verdicts, self.to_dict()["learners"], self.remarks)


def _document(verdict: Verdict) -> dict[str, Any]:
    """An entry under `verdicts`."""
    document = {**asdict(verdict), "parameters": written(_listed(verdict.parameters))}
    return written({**document, "worst_classes": [asdict(place) for place in verdict.worst_classes]})


def _verdict(entry: Mapping[str, Any]) -> Verdict:
    found = restored(entry)
    places = tuple(Place(**place) for place in found["worst_classes"])
    return Verdict(**{**found, "parameters": restored(found["parameters"]), "worst_classes": places})


def _listed(value: Any) -> Any:
    """Parameters as JSON has them: lists for tuples, however deep."""
    if isinstance(value, Mapping):
        return {str(key): _listed(inner) for key, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, list | tuple) else value
