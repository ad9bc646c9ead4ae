"""A release: the published data and a manifest with every public parameter.

The manifest says how each column was published, which sets are possible and how likely each is, so that estimation,
verification and other programs need nothing else. It holds no secret: no key, no seed, no row order.
"""

from polyseme.release.columns import AsIs, Column, Generalized, Grouped, Sets
from polyseme.release.data import FORMAT, MANIFEST, file_digest
from polyseme.release.facts import About, Applied, People
from polyseme.release.manifest import COMBINED, Manifest
from polyseme.release.release import SEEDED, Release

__all__ = [
    "COMBINED",
    "FORMAT",
    "MANIFEST",
    "SEEDED",
    "About",
    "Applied",
    "AsIs",
    "Column",
    "Generalized",
    "Grouped",
    "Manifest",
    "People",
    "Release",
    "Sets",
    "file_digest",
]
