"""A campaign on the disk, its signature, and an overview from its document alone.

On the disk a campaign is `campaign.json` with the exact bytes, and optionally `campaign.sig`: a detached Ed25519
signature over these bytes. The id in a link already pins the document. A signature names its author to people who know
the public key.

The overview has the promises as devices check them, and the error to expect; it can be shown on the terminal.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.collection.campaigns.columns import columns_of
from polyseme.device.campaign import Campaign
from polyseme.kernel.errors import CampaignError
from polyseme.kernel.files import whole_folder
from polyseme.kernel.work import Cancellation
from polyseme.privacy.analysis import Facts, facts, worst_of
from polyseme.release.columns import Sets
from polyseme.results.views.terminal import FittedTable

__all__ = [
    "DOCUMENT",
    "SIGNATURE",
    "ColumnSummary",
    "Summary",
    "campaign_view",
    "open_campaign",
    "read_private_key",
    "sign",
    "signature_holds",
    "summary",
    "write_campaign",
]

DOCUMENT = "campaign.json"
SIGNATURE = "campaign.sig"


def write_campaign(
    campaign: Campaign, folder: Path, overwrite: bool = False, cancellation: Cancellation | None = None
) -> None:
    """Write the document into a folder that appears only when it is whole."""
    with whole_folder(folder, overwrite, (DOCUMENT,), cancellation) as partial:
        (partial / DOCUMENT).write_bytes(campaign.data)


def open_campaign(path: Path) -> Campaign:
    """The campaign in a folder, or in a file."""
    file = path / DOCUMENT if path.is_dir() else path
    try:
        return Campaign.read(file.read_bytes())
    except FileNotFoundError:
        raise CampaignError(f"{file}: no such campaign", "make one with: polyseme campaign new POLICY ...") from None


_MAKE = "make one with: openssl genpkey -algorithm ed25519 -out key.pem"
_CONTEXT = b"polyseme-campaign-1 signature\n"
"""Comes before the bytes, so that the signature is of nothing else."""


def sign(data: bytes, key: Ed25519PrivateKey) -> str:
    """The signature of a document, in base64url."""
    return base64.urlsafe_b64encode(key.sign(_CONTEXT + data)).rstrip(b"=").decode("ascii")


def signature_holds(data: bytes, signature: str, key: Ed25519PublicKey) -> bool:
    """Whether the owner of a key signed these bytes."""
    try:
        key.verify(base64.urlsafe_b64decode(signature.strip() + "=="), _CONTEXT + data)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 key in PEM, without a password."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CampaignError(f"{path}: not a private key in PEM without a password", _MAKE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CampaignError(f"{path}: expected an Ed25519 key", _MAKE)
    return key


@dataclass(frozen=True)
class ColumnSummary:
    """What is known of one protected column.

    promised      the posterior that no set exceeds; None where none is promised
    worst         the same as a device computes it
    uniform       the same for an attacker who takes all values to be equally common
    odds          the largest factor by which a set changes the odds between two of its candidates, for every prior
    mse           expected squared error of a share at the planned number of answers; None where it is not known
    identifiable  whether every value can be distinguished from the others in the end
    """

    name: str
    kind: str
    size: int
    l: int
    p: float
    strata: int
    promised: float | None
    worst: float
    uniform: float
    odds: float
    epsilon: float | None
    mse: float | None
    identifiable: bool | None

    @property
    def error(self) -> float | None:
        """The error of a share, as its root mean square."""
        return None if self.mse is None else float(self.mse**0.5)


@dataclass(frozen=True)
class Summary:
    """A campaign in numbers."""

    id: str
    name: str
    languages: tuple[str, ...]
    bytes: int
    planned: int
    open: tuple[str, ...]
    columns: tuple[ColumnSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """For `campaign show --json`."""
        columns = [{**asdict(item), "error": item.error} for item in self.columns]
        return {**asdict(self), "columns": columns}


def summary(campaign: Campaign, records: int | None = None) -> Summary:
    """A campaign in numbers; `records` instead of the planned number of answers."""
    planned = campaign.collection.planned if records is None else records
    columns = [column for column in columns_of(campaign) if isinstance(column, Sets)]
    found = tuple(_column(campaign, column, planned) for column in columns)
    opened = tuple(item.name for item in campaign.open)
    return Summary(campaign.id, campaign.name, tuple(campaign.languages), len(campaign.data), planned, opened, found)


def _column(campaign: Campaign, column: Sets, planned: int) -> ColumnSummary:
    device = next(item for item in campaign.protected if item.name == column.name)
    known = _facts(column, planned)
    return ColumnSummary(
        name=column.name,
        kind=device.strata[0].sampling.document["kind"],
        size=len(device.labels),
        l=device.l,
        p=device.strata[0].sampling.p,
        strata=len(device.strata),
        promised=device.posterior,
        worst=device.worst_posterior,
        uniform=device.uniform_posterior,
        odds=device.odds,
        epsilon=known.epsilon,
        mse=known.expected_mse,
        identifiable=known.identifiable,
    )


def _facts(column: Sets, planned: int) -> Facts:
    """Of all strata together: the worst of them, as a plan has it."""
    return worst_of([facts(member.mechanism, member.prior, planned) for member in column.strata.members])


_HEAD = (
    ("column", False),
    ("drawn as", False),
    ("values", True),
    ("l", True),
    ("p", True),
    ("groups", True),
    ("promised", True),
    ("device finds", True),
    ("if uniform", True),
    ("odds", True),
    ("expected error", True),
)
_LEGEND = (
    "l: candidates in a set; p: how often the truth is among them for sure; groups: of records with a design of their "
    "own; promised, device finds: the largest probability of a right guess, as the document says and as a device "
    "computes it; if uniform: the same for an attacker who takes all values to be equally common; odds: the largest "
    "factor by which a set changes the odds between two candidates, whatever the prior is; expected error: of a "
    "share, as root mean square, at {planned:,} answers"
)


def campaign_view(found: Summary) -> RenderableType:
    """The promises and the expected errors of a campaign."""
    opened = ", ".join(found.open) or "none"
    return Group(
        Text(found.name, style="bold"),
        Text(f"id {found.id}"),
        Text(f"languages: {', '.join(found.languages)}; document: {found.bytes:,} bytes; open columns: {opened}\n"),
        FittedTable(_HEAD, [_row(item) for item in found.columns]),
        Text(_LEGEND.format(planned=found.planned), style="dim"),
    )


def _row(item: ColumnSummary) -> tuple[str, ...]:
    return (
        item.name,
        item.kind,
        f"{item.size:,}",
        str(item.l),
        f"{item.p:.4g}",
        str(item.strata),
        "-" if item.promised is None else f"{item.promised:.4g}",
        f"{item.worst:.4g}",
        f"{item.uniform:.4g}",
        f"{item.odds:.3g}",
        "-" if item.error is None else f"{item.error:.2g}",
    )
