"""Campaigns: a policy and its questions become the pinned document from which devices draw their own sets.

`making.py` plans and refuses, `cautions.py` warns, `questions.py` reads what people are asked, `columns.py` is the way
back: the columns of a release of what was collected. `signing.py` puts a detached signature beside a document.
"""

from polyseme.campaigns.cautions import cautions
from polyseme.campaigns.columns import columns_of, manifest_of
from polyseme.campaigns.folder import open_campaign
from polyseme.campaigns.making import Made, make_campaign
from polyseme.campaigns.showing import Summary, summary

__all__ = ["Made", "Summary", "cautions", "columns_of", "make_campaign", "manifest_of", "open_campaign", "summary"]
