"""How fast tables are estimated, after counting. Run: python benchmarks/estimation.py"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TypeVar

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import containment
from polyseme.inference.likelihood import SetLikelihood
from polyseme.inference.sets.estimate import estimate_table
from polyseme.inference.sets.linear import Inverse
from polyseme.inference.sets.maximum import linear_start
from polyseme.inference.solver import GAP, Solution, expectation_maximization, maximize
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.line import LineDistance

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def plain(size: int, l: int) -> Mechanism:
    return Mechanism(make_design("balanced", Clusters(np.arange(size)), l))


def smooth(size: int) -> Floats:
    places = np.linspace(-2.0, 3.0, size)
    weight = np.exp(-0.5 * places**2) + 0.05
    return np.asarray(weight / weight.sum())


def grouped(codes: list[Ints], mechanisms: list[Mechanism], seed: int) -> Reports:
    """Sets of all records, identical combinations counted by their packed codes."""
    stream = SystemStream.seeded(seed)
    sets = [mechanism.sample(column, stream) for column, mechanism in zip(codes, mechanisms)]
    key, base = np.zeros(len(codes[0]), dtype=np.int64), 1
    for rows, mechanism in zip(sets, mechanisms):
        for column in rows.T:
            key = key * mechanism.size + column
            base *= mechanism.size
    distinct, counts = np.unique(key, return_counts=True)
    columns: list[Ints] = []
    for mechanism in reversed(mechanisms):
        for _ in range(mechanism.l):
            distinct, column = np.divmod(distinct, mechanism.size)
            columns.append(column)
    columns.reverse()
    unpacked, place = [], 0
    for mechanism in mechanisms:
        unpacked.append(np.stack(columns[place : place + mechanism.l], axis=1))
        place += mechanism.l
    return Reports(tuple(unpacked), np.zeros(len(counts), dtype=np.int64), counts, 1)


def bell(size: int) -> Floats:
    weight = np.exp(-0.5 * np.linspace(-3.0, 3.0, size) ** 2)
    return np.asarray(weight / weight.sum())


def two_humps(size: int) -> Floats:
    places = np.linspace(-3.0, 3.0, size)
    weight = np.exp(-0.5 * ((places + 1.0) / 0.5) ** 2) + 0.5 * np.exp(-0.5 * ((places - 1.5) / 0.4) ** 2) + 1e-3
    return np.asarray(weight / weight.sum())


def maximum(likelihood: SetLikelihood, mechanism: Mechanism) -> Solution:
    return maximize(likelihood, start=linear_start(likelihood, [mechanism]))


def large_line(records: int = 10_000_000) -> None:
    print(f"\nF = 148, l = 3, d = 10, {records:,} reports, smooth truths   (promised: 3 s, ratio 10)")
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(148).structure(10), 3))
    for shape in (smooth, bell, two_humps):
        truth = experiment(1).choice(148, size=records, p=shape(148))
        reports = grouped([truth], [mechanism], 1)
        likelihood, building = timed(partial(SetLikelihood.of, reports.sets, reports.counts, [mechanism]))
        fast, seconds = min((timed(partial(maximum, likelihood, mechanism)) for _ in range(3)), key=itemgetter(1))
        reference, slow = timed(partial(expectation_maximization, likelihood, limit=3_000))
        reached = "" if reference.gap <= GAP else " (stopped)"
        print(
            f"  {shape.__name__:10s} {len(reports.counts):,} sets, set up in {building:.2f} s;"
            f"  ml {seconds:.2f} s, gap {fast.gap:.0e}, {fast.steps} steps;"
            f"  plain EM {slow:.2f} s, gap {reference.gap:.0e}, {reference.steps} steps{reached};"
            f"  ratio {slow / seconds:.1f}"
        )
    question = partial(estimate_table, reports, [mechanism], ["v"], [range(148)])
    table, whole = timed(partial(question, estimator="ml"))
    print(f"  ml with standard errors and intervals for all cells: {whole:.2f} s, gap {table.gap:.1e}")
    table, whole = timed(question)
    print(f"  choosing between ml and shrink as well: {whole:.2f} s, chose {table.estimator}")


def four_plain(records: int = 1_000_000) -> None:
    sizes = (16, 16, 16, 8)
    print(f"\ninverse for four plain attributes {' x '.join(map(str, sizes))}, {records:,} records")
    mechanisms = [plain(size, 2) for size in sizes]
    generator = experiment(2)
    codes = [generator.choice(size, size=records, p=smooth(size)) for size in sizes]
    reports = grouped(codes, mechanisms, 2)
    _, counting = timed(partial(containment, reports, mechanisms))
    _, seconds = timed(partial(Inverse().fit, reports, mechanisms))
    print(f"  {seconds:.2f} s with its variances, of which counting {counting:.2f} s   (promised: 1 s after counting)")


def census(records: int = 2_458_285) -> None:
    print(f"\ntwo-way tables of a census shape, {records:,} records, attributes of 2 to 18 values")
    generator = experiment(3)
    for left, right in ((18, 17), (18, 5), (9, 2), (13, 12)):
        mechanisms = [plain(left, min(3, left - 1)), plain(right, min(3, right - 1) or 1)]
        codes = [generator.choice(size, size=records, p=smooth(size)) for size in (left, right)]
        reports = grouped(codes, mechanisms, 3)
        question = partial(estimate_table, reports, mechanisms, ["a", "b"], [range(left), range(right)])
        table, seconds = timed(partial(question, estimator="ml"))
        chosen, whole = timed(question)
        print(
            f"  {left:2d} x {right:2d}  {len(reports.counts):7,} distinct  ml {seconds:5.2f} s  gap {table.gap:.1e}"
            f"  chosen by the data {whole:5.2f} s ({chosen.estimator})   (promised: 2 s)"
        )


def main() -> None:
    large_line()
    four_plain()
    census()


if __name__ == "__main__":
    main()
