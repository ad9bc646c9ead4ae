"""The studies by name, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from polyseme.studies.reproduce.conference import mondrian
from polyseme.studies.reproduce.journal import (
    efficiency,
    errors,
    histograms,
    posterior,
    violation_measured,
    violation_theory,
    worked_example,
)
from polyseme.studies.reproduce.le_diversity import buckets
from polyseme.studies.reproduce.ours import attacks, learnt
from polyseme.studies.reproduce.printed import examples
from polyseme.studies.reproduce.rule_paper import rules
from polyseme.studies.reproduce.sensitive_qids import age_occupation, questions, times
from polyseme.studies.reproduce.study import Study

__all__ = ["STUDIES"]

_ALL = (
    worked_example.STUDY,
    examples.STUDY,
    violation_theory.STUDY,
    violation_measured.STUDY,
    posterior.STUDY,
    errors.STUDY,
    histograms.STUDY,
    efficiency.STUDY,
    mondrian.STUDY,
    age_occupation.STUDY,
    questions.BY_L,
    questions.BY_T,
    times.STUDY,
    buckets.STUDY,
    rules.STUDY,
    learnt.STUDY,
    attacks.STUDY,
)

STUDIES: Mapping[str, Study] = MappingProxyType({study.name: study for study in _ALL})
