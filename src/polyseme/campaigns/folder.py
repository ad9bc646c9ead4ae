"""A campaign on the disk: `campaign.json` with the exact bytes, and beside it perhaps `campaign.sig`."""

from __future__ import annotations

from pathlib import Path

from polyseme.device.campaign import Campaign
from polyseme.errors import CampaignError
from polyseme.files.whole import whole_folder
from polyseme.kernel.work import Cancellation

__all__ = ["DOCUMENT", "SIGNATURE", "open_campaign", "write_campaign"]

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
