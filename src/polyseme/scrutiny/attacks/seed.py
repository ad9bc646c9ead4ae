"""The attacker who has or guesses the seed of an experiment; nothing is promised against it."""

from __future__ import annotations

from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.scene import Scene

__all__ = ["attack", "lacks"]


def lacks(scene: Scene) -> str:
    return "" if scene.seeded else "a seed"


def attack(scene: Scene) -> tuple[Finding, ...]:
    """With the seed, decoys can be drawn again."""
    finding = Finding(
        "seed",
        None,
        success=1.0,
        bound=None,
        baseline=0.0,
        exceeded=False,
        knows="the seed, or guesses it",
        gains="which candidates are decoys",
        helps="publish a run without a seed",
    )
    return (finding,) if scene.seeded else ()
