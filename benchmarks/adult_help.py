"""What the other columns of the Adult records say, in two releases; for `adult_reconstruction.py`.

`+clear`    in the paper's release every attribute has l = 5, or one value less than there are. Sex and income have two
            values, so that their sets of one are the values: these two columns help.
`+sets`     in the same release, the sets of education and of its number help too.
`+columns`  a release that publishes all columns but age and occupation as they are: all of them help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.auxiliary import MOST_KINDS, Help, with_help
from polyseme.inference.sets.smooth import Smooth
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.calibration import choose, mechanism_for
from polyseme.privacy.promises import Diversity, Promises
from polyseme.semantics.distances import LineDistance
from polyseme.tables.groups import kinds_of

__all__ = ["Columns", "helped"]

Array = np.ndarray

CLEAR = {"sex": 9, "income": 14}
SETS = {"education": 3, "education-num": 4}
NUMBERS = {"education-num": 4, "capital-gain": 10, "capital-loss": 11, "hours-per-week": 12}
# All but the survey's weight, which is no attribute of a person.
WORDS = {"workclass": 1, "education": 3, "marital-status": 5, "relationship": 7, "race": 8, "country": 13, **CLEAR}


class Columns:
    """The columns beside age and occupation."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        words = {name: [row[place].rstrip(".") for row in rows] for name, place in WORDS.items()}
        numbers = {name: [int(row[place]) for row in rows] for name, place in NUMBERS.items()}
        self.table = pa.RecordBatch.from_pydict({**words, **numbers})

    def helping(self, l: int, stream: SystemStream) -> Mapping[str, list[Help]]:
        """For each of the three ways, the columns that help."""
        names = self.table.schema.names
        kinds = kinds_of([(self.table, None)], names, MOST_KINDS)
        as_they_are = {
            name: Help(name, kinds[name].places({name: self.table.column(name)}, self.table.num_rows)) for name in names
        }
        clear = [as_they_are[name] for name in CLEAR]
        sets = [Help(name, self._likeliest(name, l, stream)) for name in SETS]
        return {"+clear": clear, "+sets": [*clear, *sets], "+columns": list(as_they_are.values())}

    def _likeliest(self, name: str, l: int, stream: SystemStream) -> Array:
        """The candidate of each record that is published most often, when the column is published in sets."""
        _, codes = np.unique(np.asarray(self.table.column(name)), return_inverse=True)
        size = int(codes.max()) + 1
        sets = mechanism_for(choose(size, None, Promises.of(Diversity(l=min(l, size - 1))))).sample(codes, stream)
        published = np.bincount(sets.ravel(), minlength=size)
        return sets[np.arange(len(sets)), np.argmax(published[sets], axis=1)]


def helped(sets: Sequence[Array], mechanisms: Sequence[Mechanism], helping: Sequence[Help]) -> Array:
    """The table of age bands x occupation by `smooth`, with the help of columns."""
    ones, here = np.ones(len(sets[0]), dtype=np.int64), np.zeros(len(sets[0]), dtype=np.int64)
    order = (LineDistance.ranks(mechanisms[0].size), None)
    reports = Reports(tuple(sets), here, ones, 1, distances=order)
    return Smooth().fit(with_help(reports, helping, mechanisms), mechanisms).values[0]
