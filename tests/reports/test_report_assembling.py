"""From a manifest to a page: the promises in plain words, and the facts beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_samples import verdict

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.privacy.promises import read_promises
from polyseme.release import AsIs, Manifest, Sets
from polyseme.reports.assembly import attribute_line, fact_line, promise_line, release_page
from polyseme.reports.contents import Outcome
from polyseme.reports.page import render_page
from polyseme.results.views.formats import quantity
from polyseme.schema import Attribute, Distributions, Domain, Role
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters
from polyseme.strata import Strata


def published(models: dict[str, dict[str, Any]], l: int = 3, d: float | None = 4.0, p: float = 1.0) -> Sets:
    line = LineDistance.ranks(14)
    structure = Clusters(np.arange(14)) if d is None else line.structure(d)
    attribute = Attribute(
        "income",
        Role.SENSITIVE,
        Domain(tuple(f"class {index}" for index in range(14)), ordered=True),
        None if d is None else line,
        read_promises(models),
    )
    return Sets(attribute, Strata.alone(Mechanism(make_design("simple", structure, l), p)), d)


SEMANTIC = published({"semantic-diversity": {"l": 3, "d": 4, "mechanism": "simple"}})
AGE = AsIs(Attribute("age", Role.QUASI_IDENTIFIER))


def known(worst: float | None = 1 / 3) -> Any:
    return SimpleNamespace(worst_posterior=worst, epsilon=math.inf, identifiable=True, expected_mse=1e-6)


def test_semantic_diversity_in_plain_words() -> None:
    line = promise_line(SEMANTIC)
    assert line.text == (
        "Each record shows 3 candidates for income, at least 4 apart. An attacker who knows the method and nothing "
        "else about a person, with a uniform prior, guesses right with probability at most 0.333."
    )
    assert line.models == ("semantic-diversity (l=3, d=4, mechanism=simple)",)


def test_closeness_and_ldp_in_plain_words() -> None:
    line = promise_line(published({"closeness": {"t": 0.2}, "ldp": {"epsilon": math.log(2)}}, d=None, p=0.25))
    assert "at least" not in line.text
    assert "With probability 0.25 they are drawn around the true value, otherwise independently of it" in line.text
    assert "moves an attacker's belief about its income by at most 0.2" in line.text
    assert "more than 2 times as likely" in line.text
    assert "guesses right" not in line.text


def test_closeness_to_a_reference_says_who_is_meant_and_how_far_others_get() -> None:
    plain = published({"closeness": {"t": 0.3, "ground": "ordered"}}, d=None, p=0.25)
    known = Distributions(reference=np.full(14, 1 / 14))
    text = promise_line(replace(plain, strata=Strata.alone(plain.mechanism, known))).text
    assert "moves the belief of an attacker with the published distribution of income by at most 0.3" in text
    assert "counted along their order" in text
    # Sets of 3 of 14 at p = 1/4: in to out as 1 + (1/3) / (3/14) to 1.
    others = math.tanh(math.log(1 + (0.25 / 0.75) / (3 / 14)) / 4)
    assert f"with another prior, by at most {quantity(others)}" in text


def test_the_strictest_diversity_decides() -> None:
    models = {"diversity": {"l": 4}, "entropy-diversity": {"l": 2.5}}
    assert fact_line(published(models, l=4, d=None), known()).promised == 0.25


def test_lines_of_attributes() -> None:
    assert attribute_line(SEMANTIC).published == "sets of 3, at least 4 apart"
    assert attribute_line(SEMANTIC).protected
    assert attribute_line(AGE).published == "as it is"


def test_facts_are_measured_against_the_promise() -> None:
    exact = SEMANTIC.mechanism.worst_posterior()
    line = fact_line(SEMANTIC, known(exact))
    assert line.promised == pytest.approx(1 / 3)
    assert exact == pytest.approx(0.506, abs=5e-4)
    assert line.exceeded
    assert (line.design, line.size, line.l, line.d, line.p) == ("simple", 14, 3, 4.0, 1.0)


def test_a_page_of_a_release() -> None:
    manifest = Manifest((AGE, SEMANTIC), records=1_000, rows=1_000, dropped=7, seeded=True)
    made = release_page(manifest, verdicts=[verdict()], facts={"income": known()})
    assert made.title == "Release of 1,000 records"
    assert (made.dropped, made.for_publication, made.sticky) == (7, False, False)
    assert made.outcome is Outcome.HOLDS
    assert made.findings is None
    text = render_page(made)
    assert "7 left out for missing values" in text
    assert "Not for publication." in text


def test_findings_bring_what_they_know() -> None:
    manifest = Manifest((SEMANTIC,), records=10, rows=10)
    found: Any = SimpleNamespace(
        attack="bayes", attribute="income", success=0.9, bound=0.3, exceeded=True, baseline=0.2, knows="all", helps="x"
    )
    bare: Any = SimpleNamespace(attack="linkage", attribute=None, success=0.9, bound=None, exceeded=False)
    made = release_page(manifest, verdicts=[verdict()], findings=[found, bare])
    assert made.findings is not None
    assert (made.findings[0].baseline, made.findings[0].knows, made.findings[0].helps) == (0.2, "all", "x")
    assert made.findings[1].baseline is None
    assert made.outcome is Outcome.EXCEEDED


def test_an_epsilon_beyond_all_measure_is_still_put_into_words() -> None:
    line = promise_line(published({"ldp": {"epsilon": 1_000}}, p=0.5))
    assert "more than e^1000 times as likely" in line.text
