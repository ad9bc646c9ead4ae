"""Campaigns whose prior is a lie, too steep or badly sourced, and documents that are too much for a device."""

from __future__ import annotations

import json
from copy import deepcopy

from survey import questions

from polyseme.collection.campaigns import make_campaign
from polyseme.device.campaign import compact, fingerprint
from polyseme.policy import Policy

ONE = 2**53
VALUES = ("flu", "cold", "cough", "asthma", "migraine", "hiv")
OFFICIAL = (0.234, 0.233, 0.233, 0.2, 0.099, 0.001)
"""As official statistics have it: the most frequent value is 234 times as frequent as the rarest."""
SOURCE = {"en": "Statistical Office, 2025", "de": "Statistisches Amt, 2025"}
RARE = 991 / 2**53
"""1.1e-13, as a weight that is exact."""


def campaign(prior=None, source=SOURCE, l=2, values=VALUES, **collection):
    """A campaign with one protected question."""
    protect = {"diversity": {"l": l}}
    column = {"role": "sensitive", "domain": list(values), "protect": protect}
    policy = {"attributes": {"illness": column | ({} if prior is None else {"prior": list(prior)})}}
    questionnaire = questions(**collection)
    questionnaire["questions"] = {"illness": {"text": {"en": "Your illness?", "de": "Ihre Krankheit?"}}}
    if prior is not None and source is not None:
        questionnaire["questions"]["illness"]["source"] = source
    return make_campaign(Policy.loads(json.dumps(policy)), questionnaire)


def document(**settings):
    """The document of an honest campaign, to be changed."""
    return json.loads(campaign(**settings).data)


def with_sampling(given, sampling, prior, posterior, l=2):
    """The document with another sampling document and another promise."""
    made = deepcopy(given)
    values = made["columns"][0]["domain"]["values"]
    known = fingerprint("illness", values, sampling)
    made["sampling"]["illness"]["strata"] = [{"excluded": [], "document": sampling, "fingerprint": known}]
    made["promises"]["illness"] = {"l": l, "posterior": posterior, "priors": [prior]}
    made["questions"]["illness"]["source"] = SOURCE
    return made


def forged(rare=RARE):
    """`hiv` is said to be so rare that it stands beside `flu` only, and seldom: a set with it gives its owner away."""
    weights = [2**50, 2**50, 2**50, 2**50, max(1, round(rare * 2**53))]
    prior = [0.5, *(weight / (2 * sum(weights)) for weight in weights)]
    sets = [[0, code] for code in range(1, 6)]
    sampling = {"kind": "table", "l": 2, "p53": ONE, "size": 6, "sets": sets, "weights": weights}
    made = with_sampling(document(), sampling, prior, 0.5)
    made["columns"][0]["mechanism"]["design"] = "sharp"
    return made


def alone():
    """Sets of one candidate: the answer itself."""
    sampling = {"kind": "clusters", "l": 1, "p53": ONE, "size": 6}
    return with_sampling(document(), sampling, None, 1.0, l=1)


def changed(given, **promise):
    """The document with another promise."""
    made = deepcopy(given)
    made["promises"]["illness"].update(promise)
    return made


def sourceless():
    made = document(prior=OFFICIAL)
    del made["questions"]["illness"]["source"]
    return made


def half_sourced():
    made = document(prior=OFFICIAL)
    del made["questions"]["illness"]["source"]["de"]
    return made


REFUSED = {
    "forged": (forged, "factor of"),
    "one candidate": (alone, "a set of one candidate is the answer itself"),
    "nothing promised": (lambda: changed(document(), posterior=None), "nothing is promised"),
    "share of zero": (lambda: changed(document(), priors=[[0.5, 0.5, 0, 0, 0, 0]], posterior=1.0), "a share is 0"),
    "no source": (sourceless, "nothing says where it comes from"),
    "broken promise": (lambda: changed(document(), posterior=0.49), "0.49 is promised, but a set can give 0.5"),
}
"""What devices refuse to answer, and why; each can be read, so that what was collected before can be released."""


def small(given):
    return compact(given).decode()


def _order(count):
    return {"order": list(range(count))}


def line(count, l):
    ahead = [place + 1 for place in range(count)]
    return {"kind": "line", "l": l, "p53": ONE, **_order(count), "ahead": ahead, "weights": [1] * count, "tight": []}


def circle(count, l, **more):
    return {"kind": "circle", "l": l, "p53": ONE, **_order(count), "ahead": [n + 1 for n in range(count)], **more}


def listed(count, l, neighbors=None):
    later = neighbors or [list(range(code + 1, count)) for code in range(count)]
    return {"kind": "listed", "l": l, "p53": ONE, "neighbours": later, "weights": [1] * count, "excluded": []}


def clusters(count, l, **more):
    return {"kind": "clusters", "l": l, "p53": ONE, "size": count, **more}


def table(count, sets):
    """Sets of two values, all in lexicographic order."""
    pairs = [[a, b] for a in range(count) for b in range(a + 1, count)][:sets]
    return {"kind": "table", "l": 2, "p53": ONE, "size": count, "sets": pairs, "weights": [1] * len(pairs)}


def two_sided(count):
    """Every value of one half may stand with every value of the other: many pairs, and no set of three."""
    half = count // 2
    return [list(range(half, count)) if code < half else [] for code in range(count)]


TOO_MUCH = {
    "line 4,000 / 1,000": lambda: line(4_000, 1_000),
    "circle 3,000 / 200": lambda: circle(3_000, 200, weights=[1] * 3_000),
    "listed 700 / 3": lambda: listed(700, 3),
    "clusters 1,000,000 / 500,000": lambda: clusters(1_000_000, 500_000),
    "clusters with weights, one value too many": lambda: clusters(39_216, 20, weights=[1] * 39_216),
    "circle with weights, one value too many": lambda: circle(1_415, 2, weights=[1] * 1_415),
    "listed, no set at all": lambda: listed(10_000, 3, [list(range(5_000, 10_000, 50))] * 5_000 + [[]] * 5_000),
    "listed, too many sets": lambda: listed(1_002, 2),
    "table, too many sets": lambda: table(1_002, 500_001),
    "candidates": lambda: clusters(2_000, 1_001),
}
JUST_ENOUGH = {
    "clusters with weights": lambda: clusters(39_215, 20, weights=[1] * 39_215),
    "circle with weights": lambda: circle(1_414, 2, weights=[1] * 1_414),
    "clusters": lambda: clusters(100_000, 1_000),
    "70,000 codes": lambda: clusters(70_000, 10, weights=[1] * 70_000),
    "listed": lambda: listed(90, 3),
    "circle": lambda: circle(10_000, 40),
}
"""The work of each is counted, and some cannot be told apart from those that are too much but by one value."""
