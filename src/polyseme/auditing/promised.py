"""What was promised for the records of a stratum, in the terms of the adversaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.auditing.seen import Part
from polyseme.distances.structure import Floats
from polyseme.errors import InvalidInput, ReleaseError
from polyseme.mechanism import Mechanism
from polyseme.recipes import PROMISES, closeness_of_epsilon, ground_from
from polyseme.recipes.ground import Ground
from polyseme.recipes.promises import Promises, read_promises
from polyseme.release import PublishedAttribute
from polyseme.strata import Stratum

__all__ = ["given", "guess_bound", "promised_for", "promises_of"]


@dataclass(frozen=True, eq=False)
class _Within(Ground):
    """A ground of the whole domain, for differences over the values of a stratum."""

    ground: Ground
    stratum: Stratum
    name = "within"

    def work(self, difference: Floats) -> Floats:
        whole = np.zeros((*difference.shape[:-1], self.stratum.size))
        whole[..., self.stratum.allowed] = difference
        return self.ground.work(whole)


def promises_of(item: PublishedAttribute) -> Promises:
    models = item.attribute.protection.models if item.attribute.protection is not None else {}
    known = {name: promise for name, promise in models.items() if name in PROMISES}
    try:
        return read_promises(known, item.domain.size, item.attribute.distance is not None) if known else Promises()
    except InvalidInput:
        raise ReleaseError(f"column '{item.name}': its promises cannot be read", "run polyseme verify") from None


def given(shares: Floats | None, stratum: Stratum) -> Floats | None:
    """A distribution over the domain, given that the value is one of the stratum's."""
    if shares is None or not shares[stratum.allowed].sum() > 0.0:
        return None
    return np.asarray(shares[stratum.allowed] / shares[stratum.allowed].sum())


def guess_bound(promises: Promises, mechanism: Mechanism, prior: Floats | None) -> float:
    """What is promised about a guess: 1/l where a diversity was promised, else what the mechanism allows at worst."""
    least, asked_by = promises.least_size
    worst = 1.0 / least if asked_by else mechanism.worst_posterior(prior)
    return 1.0 if np.isnan(worst) else worst


def promised_for(part: Part) -> dict[str, Any]:
    """What was promised for the records of a stratum, as `attack_sets` takes it."""
    promises, stratum, attribute = promises_of(part.item), part.stratum, part.item.attribute
    prior, reference = (given(shares, stratum) for shares in (part.item.domain.prior, part.item.domain.reference))
    closeness, ldp = promises.closeness, promises.ldp
    limits = [closeness_of_epsilon(ldp.epsilon)] if ldp is not None else []
    if closeness is not None and reference is None and closeness.ground == "equal":
        limits.append(closeness.t)
    promised: dict[str, Any] = {
        "prior": prior,
        "bound": guess_bound(promises, stratum.mechanism, prior),
        "t_any": min(limits, default=None),
    }
    if promises.semantic is not None and attribute.distance is not None:
        distance = attribute.distance.among(stratum.allowed) if stratum.excluded else attribute.distance
        promised |= {"distance": distance, "d": promises.semantic.d}
    if closeness is not None:
        ground = ground_from(closeness.ground, attribute.distance)
        ground = _Within(ground, stratum) if stratum.excluded and closeness.ground != "equal" else ground
        promised |= {"t": closeness.t, "reference": reference, "ground": ground}
    return promised
