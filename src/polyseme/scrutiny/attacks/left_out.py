"""The attacker who misses a record: a person of the table who is nowhere in the release.

    success  =  max over values s of  n(s) / n      with the original
             =  max over values s of  what the method is known to leave out, otherwise

where
    n(s)  people with value s who are left out, of n in all

A method that suppresses as few records as possible suppresses the most frequent values, and says so by what it
publishes: see `polyseme.scrutiny.attacks.audit.classes`. Without the original the success is what a reader of the
release expects, and `worst` in `detail` is the highest that it may be.
"""

from __future__ import annotations

import numpy as np

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene, above

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "people who are left out" if scene.absent is None else ""


def attack(scene: Scene) -> tuple[Finding, ...]:
    """For everybody who is left out, on average."""
    absent, bound = scene.absent, scene.promised.guess
    if absent is None:
        return ()
    expected = float(absent.expected.max())
    success = expected if absent.truth is None else float(absent.truth.max() / absent.truth.sum())
    detail = {
        "left_out": float(absent.records),
        "candidates": float(np.count_nonzero(absent.expected)),
        "expected": expected,
        "worst": absent.worst if absent.truth is None else success,
    }
    if absent.truth is not None:
        detail["values"] = float(np.count_nonzero(absent.truth))
    finding = Finding(
        "left-out",
        absent.attribute,
        success,
        bound,
        float(absent.whole.max()),
        above(success, bound),
        knows=f"that the person was in the table and is left out{_unsaid(absent.by_method, absent.truth is None)}",
        gains="the value, where the records that were left out are alike",
        helps="leave out records of several values (left-out: 0.8), a smaller l, or broader values",
        detail=detail,
    )
    return (finding,)


def _unsaid(by_method: bool, unknown: bool) -> str:
    if not unknown:
        return ""
    known = "how the method leaves out records" if by_method else "how the published values are distributed"
    return f", and {known}; the truth is not known without the original, and the success may be as high as `worst`"
