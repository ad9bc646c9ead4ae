"""Designs of maximum entropy over clusters: at most one value of each.

The clusters of a set form a chain in which any two may stand together (elementary symmetric polynomials); within a
cluster a value is drawn by its share. So with `c(v)` the cluster of v and `s_v` its share of the cluster

    rho_v = rho_c(v) * s_v        Pi[v, u] = s_v s_u Pi_c[c(v), c(u)]   for different clusters, 0 within one

and 70,000 values in 2,000 clusters cost what 2,000 values cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from polyseme.designs import ring as spectra
from polyseme.designs.chain import Chain, EvenChain, Steps
from polyseme.designs.distribution import MaximumEntropy, compatible_sets
from polyseme.designs.information import INFORMATION_LIMIT, chain_sums, error_from, information_from, tilted_sums
from polyseme.designs.leaders import any_of, on_chain, peeled
from polyseme.designs.maximum_entropy import fit
from polyseme.designs.ring import Spectrum, document, whole
from polyseme.designs.samplers import (
    CHUNK,
    TABLE_LIMIT,
    ChainSampler,
    DistinctSampler,
    Sampler,
    TableSampler,
    alias_cells,
    sort_rows,
)
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Clusters

__all__ = ["ClustersDesign", "cluster_masses", "cluster_steps", "fit_clusters"]

_IN_PROPORTION = 1e-9
"""Relative errors up to which a prior has the shares of the design: what a fit is good to."""
_EQUAL = 1e-12
"""Relative differences of targets that are rounding: clusters are then drawn alike, without a fit."""
_NONE = np.empty(0, dtype=np.int64)


def cluster_masses(clusters: Clusters, masses: Floats) -> Floats:
    """The sum of `masses` (by code) over each cluster."""
    return np.asarray(np.bincount(clusters.labels, masses, clusters.count), dtype=np.float64)


def cluster_steps(count: int, full: Ints = _NONE) -> Steps:
    """Chains of clusters in ascending order; `full` are clusters that are in every set."""
    return Steps(np.arange(1, count + 1, dtype=np.int64), full)


def fit_clusters(
    clusters: Clusters,
    l: int,
    target: Floats,
    shares: Floats | None,
    full: Ints,
    name: str = "balanced",
    start: Floats | None = None,
) -> ClustersDesign:
    """The design whose clusters have inclusion `target`; `shares` by code, None for equal ones."""
    if np.ptp(target) <= _EQUAL * target.max():
        return ClustersDesign(clusters, l, None, shares, full, name)
    steps = cluster_steps(clusters.count, full)
    log_weights = fit(lambda weights: Chain(steps, l, weights), target, start=start)
    return ClustersDesign(clusters, l, log_weights, shares, full, name)


class ClustersDesign(MaximumEntropy):
    """Clusters by weight, values within a cluster by share.

    log_weights  of the clusters; None when all are alike
    shares       of the values in their clusters; None when all are alike
    full         clusters of which every set holds a value
    """

    structure: Clusters

    def __init__(
        self,
        clusters: Clusters,
        l: int,
        log_weights: Floats | None,
        shares: Floats | None,
        full: Ints,
        name: str = "balanced",
    ) -> None:
        super().__init__(clusters, l, name)
        labels = clusters.labels
        self._given, self._given_shares = log_weights, shares
        self.clusters = clusters.count
        steps = cluster_steps(self.clusters, full)
        self.chain = EvenChain(steps, l) if log_weights is None else Chain(steps, l, log_weights)
        self._sizes = np.bincount(labels, minlength=self.clusters)
        self.shares: Floats = 1.0 / self._sizes[labels] if shares is None else shares
        self._members: Ints = np.argsort(labels, kind="stable").astype(np.int64)
        self._start: Ints = (np.cumsum(self._sizes) - self._sizes).astype(np.int64)
        self._plain = self.clusters == self.size and bool(np.array_equal(labels, np.arange(self.size)))
        self._straight = bool(np.array_equal(self._members, np.arange(self.size)))
        self.draws = self._cluster_draws() + (0 if self._plain else l)

    @property
    def alike(self) -> bool:
        """Whether all clusters are drawn alike and have one size and equal shares."""
        return self._given is None and self._given_shares is None and int(np.ptp(self._sizes)) == 0

    def _cluster_draws(self) -> int:
        if self._given is None:
            return max(self.l - 1, 1)
        return 1 if self._listed else self.l

    @cached_property
    def _listed(self) -> bool:
        return self.l * comb(self.clusters, self.l) <= TABLE_LIMIT

    @cached_property
    def _sampler(self) -> Sampler:
        if self._given is None:
            return DistinctSampler(self.clusters, self.l)
        if not self._listed:
            return ChainSampler(self.chain)
        singles = ClustersDesign(Clusters(np.arange(self.clusters)), self.l, None, None, _NONE)
        sets = singles.sets()
        probability = np.exp(self.chain.log_probability(sets))
        possible = probability > 0
        return TableSampler(sets[possible], probability[possible], self.clusters)

    @cached_property
    def _aliases(self) -> tuple[Floats, Ints] | None:
        """Alias cells of each cluster, side by side, when shares differ."""
        if self._given_shares is None:
            return None
        keep, alias = np.ones(self.size), np.arange(self.size, dtype=np.int64)
        for first, count in zip(self._start.tolist(), self._sizes.tolist(), strict=True):
            group = slice(first, first + count)
            keep[group], inner = alias_cells(self.shares[self._members[group]])
            alias[group] = first + inner
        return keep, alias

    def _pick(self, clusters: Ints, uniforms: Floats) -> Ints:
        """A value of each cluster, by share."""
        spot = uniforms * self._sizes.take(clusters)
        place = spot.astype(np.int64)
        cell = place + self._start.take(clusters)
        if self._aliases is not None:
            keep, alias = self._aliases
            cell = np.where(spot - place < keep.take(cell), cell, alias.take(cell))
        return cell if self._straight else self._members.take(cell)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        if self._plain:
            return self._sampler.sample(codes, uniforms)
        out = np.empty((len(codes), self.l), dtype=np.int64)
        inner = self._sampler.draws
        for start in range(0, len(codes), CHUNK):
            chunk = slice(start, start + CHUNK)
            own = self.structure.labels.take(codes[chunk])
            clusters = self._sampler.sample(own, uniforms[:inner, chunk])
            rows = out[chunk]
            for column in range(self.l):
                cluster = np.ascontiguousarray(clusters[:, column])
                picked = self._pick(cluster, uniforms[inner + column, chunk])
                rows[:, column] = np.where(cluster == own, codes[chunk], picked)
            if not self._straight:
                sort_rows(rows)
        return out

    def log_probability(self, sets: Ints) -> Floats:
        clusters = np.sort(self.structure.labels[sets], axis=1)
        value = self.chain.log_probability(clusters) + np.log(self.shares)[sets].sum(axis=1)
        return np.where(compatible_sets(self.structure, sets), value, -np.inf)

    @cached_property
    def _inclusion(self) -> Floats:
        return self.chain.inclusion[self.structure.labels] * self.shares

    def inclusion(self) -> Floats:
        return self._inclusion

    def joint(self, codes: Ints) -> Floats:
        labels = self.structure.labels
        own, which = np.unique(labels[codes], return_inverse=True)
        joint = np.concatenate([self.chain.joint(own[s : s + 64]) for s in range(0, max(len(own), 1), 64)])
        out: Floats = joint[which][:, labels] * self.shares * self.shares[codes][:, None]
        out[labels[codes][:, None] == labels[None, :]] = 0.0
        out[np.arange(len(codes)), codes] = self.inclusion()[codes]
        return out

    def lightest(self, cost: Floats) -> Floats:
        labels = self.structure.labels
        cheapest = np.full(self.clusters, np.inf)
        np.minimum.at(cheapest, labels, cost)
        # Swap the cheapest value of the cluster for the value itself.
        least: Floats = self.chain.lightest(cheapest)[labels] - cheapest[labels] + cost
        return least

    @property
    def even(self) -> bool:
        return self.alike and self.clusters == self.size

    def spectrum(self, p: float) -> Spectrum:
        if self.clusters <= spectra.DENSE:
            return spectra.cluster_spectrum(self.chain, self.structure.labels, self.shares, p)
        return spectra.alike_spectrum(self.clusters, self.size, self.l, p) if self.alike else super().spectrum(p)

    def matched_trace(self) -> float | None:
        if self.clusters <= spectra.DENSE:
            return spectra.cluster_trace(self.chain, self.structure.labels, self.shares)
        return spectra.alike_trace(self.clusters, self.l, self.shares) if self.alike else super().matched_trace()

    def least_error(self, prior: Floats, p: float = 1.0) -> float | None:
        mass = cluster_masses(self.structure, prior)
        in_proportion = np.allclose(self.shares * mass[self.structure.labels], prior, rtol=_IN_PROPORTION)
        covered = self.clusters == self.size or (p == 1.0 and in_proportion)
        if p == 0.0 or self.clusters > INFORMATION_LIMIT or not covered:
            return super().least_error(prior, p)
        squares = cluster_masses(self.structure, self.shares**2)
        return error_from(chain_sums(self.chain, mass, p), self.chain.inclusion, mass, squares, p)

    def information(self, prior: Floats, p: float) -> Floats | None:
        if p == 0.0 or self.size > INFORMATION_LIMIT:
            return super().information(prior, p)
        score = p * prior / self.inclusion() + (1.0 - p) / self.l
        return information_from(tilted_sums(self.chain, self.structure.labels, self.shares, score), self.inclusion(), p)

    def leading(self, score: Floats, least: float = -np.inf) -> Floats | None:
        labels, shares = self.structure.labels, self.shares
        if self._given is None and self.clusters == self.size:
            return peeled(score, least, labels, shares, any_of(self.size, self.l), self.size)
        plain = Chain(self.chain.steps, self.l, np.zeros(self.clusters)) if self._given is None else self.chain
        return peeled(score, least, labels, shares, on_chain(plain), self.l * self.clusters)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        shares, full = self._given_shares, self.chain.steps.tight.tolist()
        return document(
            "clusters",
            self.l,
            p,
            size=self.size if self._plain else None,
            labels=None if self._plain else self.structure.labels.tolist(),
            weights=None if self._given is None else whole(self._given),
            shares=None if shares is None else whole(np.log(shares)),
            full=full or None,
        )

    def parameters(self) -> Mapping[str, Any]:
        given: dict[str, Any] = {}
        if self._given is not None:
            given["log_weights"] = self._given.tolist()
        if self._given_shares is not None:
            given["shares"] = self._given_shares.tolist()
        if self.chain.steps.tight.size:
            given["full"] = self.chain.steps.tight.tolist()
        return given
