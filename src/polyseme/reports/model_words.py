"""What a privacy model promises about classes of records, in a sentence for readers who have never heard of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from polyseme.models import read_spec
from polyseme.results.views.formats import quantity

__all__ = ["model_sentence"]

Asked: TypeAlias = Mapping[str, Any]


def model_sentence(model: Mapping[str, Mapping[str, Any]], unit: str = "class") -> str:
    """The promise of a model, as a policy or a manifest writes it.

    >>> model_sentence({"k-anonymity": {"k": 5}})
    'Every class has at least 5 records: each looks like at least 4 others.'
    """
    spec = read_spec(model)
    words = _WORDS.get(spec.model.name)
    return words(spec.parameters, unit) if words else f"Every {unit} keeps {spec.model.name}."


def _k(asked: Asked, unit: str) -> str:
    return f"Every {unit} has at least {asked['k']} records: each looks like at least {asked['k'] - 1} others."


def _k_map(asked: Asked, unit: str) -> str:
    return f"Every {unit} fits at least {asked['k']} people of the population."


def _share(share: str, unit: str) -> str:
    return (
        f"No value has more than {share} of a {unit}: an attacker who finds the {unit} of a person and knows nothing "
        f"else guesses right with probability {share} at most."
    )


def _frequency(asked: Asked, unit: str) -> str:
    return _share(f"1/{quantity(asked['l'])}", unit)


def _alpha(asked: Asked, unit: str) -> str:
    return f"Every {unit} has at least {asked['k']} records. {_share(quantity(asked['alpha']), unit)}"


def _distinct(asked: Asked, unit: str) -> str:
    return (
        f"Every {unit} has at least {asked['l']} different values. That does not limit how frequent one of them is, so "
        "a guess may be right far more often than that number suggests."
    )


def _entropy(asked: Asked, unit: str) -> str:
    return f"The values of every {unit} are as mixed (by entropy) as {quantity(asked['l'])} equally frequent ones."


def _recursive(asked: Asked, unit: str) -> str:
    spared = asked["l"] - 2
    after = f", even after {spared} of them {'is' if spared == 1 else 'are'} ruled out" if spared > 0 else ""
    times = quantity(asked["c"])
    return f"The most frequent value of a {unit} is less than {times} times as frequent as the others together{after}."


def _closeness(asked: Asked, unit: str) -> str:
    return (
        f"In every {unit} the values are distributed nearly as in the whole table: the distance between the two "
        f"distributions ({asked['ground']} ground) is at most {quantity(asked['t'])}."
    )


def _beta(asked: Asked, unit: str) -> str:
    return (
        f"No value is more frequent in a {unit} than in the whole table by more than a factor of "
        f"{quantity(1 + asked['beta'])}."
    )


def _delta(asked: Asked, unit: str) -> str:
    factor = f"e^{quantity(asked['delta'])}"
    return f"The share of a value in a {unit} and its share in the whole table differ by a factor below {factor}."


def _similar(asked: Asked, unit: str) -> str:
    many = "no value has more than 1/{l} of it" if asked["represented"] == "frequency" else "it has at least {l} values"
    return (
        f"No two values of a {unit} are similar (more than {quantity(asked['e'])} apart), and {many.format(**asked)}."
    )


def _semantic(asked: Asked, unit: str) -> str:
    l, d = asked["l"], quantity(asked["d"])
    if asked["reading"] == "frequency":
        return (
            f"The values nearer than {d} to any one value have together at most 1/{l} of a {unit}: not even a range or "
            "a branch can be guessed more often."
        )
    if asked["reading"] == "exists":
        return f"Every {unit} has {l} values that are at least {d} apart from each other."
    return f"Every {unit} has at least {l} different values, any two of them at least {d} apart."


_WORDS: Mapping[str, Callable[[Asked, str], str]] = {
    "k-anonymity": _k,
    "k-map": _k_map,
    "alpha-k-anonymity": _alpha,
    "distinct-diversity": _distinct,
    "frequency-diversity": _frequency,
    "diversity": _frequency,
    "entropy-diversity": _entropy,
    "recursive-diversity": _recursive,
    "closeness": _closeness,
    "beta-likeness": _beta,
    "delta-disclosure": _delta,
    "le-diversity": _similar,
    "semantic-diversity": _semantic,
    "semantic-rules": lambda asked, unit: f"No {unit} reveals what the rules forbid.",
}
