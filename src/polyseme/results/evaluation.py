"""How far estimates are from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from polyseme.results.base import Result, restored, written

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Evaluation", "Preserved"]


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
    learning  what predictors trained on each table are worth, where that was asked for
    """

    tables: Mapping[str, Mapping[str, float]]
    learning: Mapping[str, Mapping[str, Preserved]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The document of `evaluate --json`: the metrics by name; of several tables, by question first."""
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
