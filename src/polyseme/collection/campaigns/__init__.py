"""Campaigns: a policy and its questions become the document from which devices draw.

`document.py` plans, refuses and warns, `questions.py` reads the questions, `columns.py` is the way back: the columns of
a release of what was collected. `overview.py` puts a detached signature beside a document.
"""

from polyseme.collection.campaigns.columns import columns_of, manifest_of
from polyseme.collection.campaigns.document import Made, cautions, make_campaign
from polyseme.collection.campaigns.overview import Summary, open_campaign, summary

__all__ = ["Made", "Summary", "cautions", "columns_of", "make_campaign", "manifest_of", "open_campaign", "summary"]
