"""From a policy and questions to the pinned campaign document: planned and checked.

All problems are found at once: promises of the policy that cannot be kept, what could not be estimated from the planned
number of answers, what devices cannot draw, questions that are missing or not translated. Warnings for the author of a
campaign come before people answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, isfinite, log
from pathlib import Path
from typing import Any, cast

from polyseme.collection.campaigns.columns import placing_of
from polyseme.collection.campaigns.questions import Questions, document_of, read_questions
from polyseme.device.campaign import FORMAT, Campaign, compact, fingerprint
from polyseme.device.fields import LARGEST
from polyseme.device.protected import ODDS_WITH_CONSENT, SLACK, Protected, worst_posterior
from polyseme.device.reports import longest_report
from polyseme.device.sampler import ONE, Sampling
from polyseme.device.terms import LARGEST_REPORT
from polyseme.kernel.documents import Reader
from polyseme.kernel.errors import CampaignError, ImpossibleError, InvalidInput, PolicyError, Problem
from polyseme.kernel.spelling import written
from polyseme.methods import method_named
from polyseme.policy import Policy
from polyseme.policy.domains import declared_domain
from polyseme.publishing.inputs import policy_given
from polyseme.release.codec import entry_of
from polyseme.release.columns import AsIs, Column, Sets
from polyseme.results.plan import AttributePlan, Plan
from polyseme.schema import Attribute, Domain, Resolved, Schema
from polyseme.verbs.plan import plan as plan_of

__all__ = ["Made", "cautions", "make_campaign", "tempered_offer"]

_SHOWN = 24
"""Shares that are written out in a message."""
_RAREST = 1e-6
"""Shares below this are taken for it."""


def cautions(campaign: Campaign) -> tuple[str, ...]:
    """What the campaign does not protect from, though its settings might make one think so."""
    return (*_large_odds(campaign), *_changing_strata(campaign))


def _large_odds(campaign: Campaign) -> Iterator[str]:
    for column in campaign.protected:
        if column.odds > ODDS_WITH_CONSENT * (1.0 + SLACK):
            yield (
                f"a set of '{column.name}' can change the odds between two of its candidates by a factor of "
                f"{column.odds:,.3g}. Respondents read this and must agree. {tempered_offer(column)}"
            )


def tempered_offer(column: Protected) -> str:
    """How to stay below the factor for which people have to agree.

    Nothing where the prior is uniform.
    """
    priors = [[max(share, _RAREST) for share in member.prior] for member in column.strata if member.prior]
    steepest = max((max(prior) / min(prior) for prior in priors), default=1.0)
    if steepest <= ODDS_WITH_CONSENT:
        return ""
    power = floor(100 * log(ODDS_WITH_CONSENT) / log(steepest)) / 100
    knows = steepest ** (1.0 - power)
    return (
        f"To stay below {ODDS_WITH_CONSENT}, {_advice(priors, power)}. An attacker who knows the shares as they are "
        f"now can then be up to {knows / (knows + column.l - 1):.1%} sure of an answer."
    )


def _advice(priors: list[list[float]], power: float) -> str:
    advice = f"temper the prior: raise every share to the power {power:g} and divide by their sum"
    if len(priors) > 1 or len(priors[0]) > _SHOWN:
        return advice
    raised = [share**power for share in priors[0]]
    shares = ", ".join(f"{share / sum(raised):.4g}" for share in raised)
    return f"{advice}, which gives prior: [{shares}]"


def _changing_strata(campaign: Campaign) -> Iterator[str]:
    """Warnings about sticky sets in several strata, which devices draw independently."""
    for column in campaign.protected if campaign.collection.sticky else ():
        if len(column.strata) > 1:
            names = " or ".join(f"'{name}'" for name in _deciding(column))
            yield (
                f"sets of '{column.name}' are sticky, but each group of {names} has its own mechanism. "
                f"A respondent whose answer to {names} changes between two waves sends another set, and both can be "
                "intersected: ask for what does not change, or declare nothing impossible and no prior by group."
            )


def _deciding(column: Protected) -> list[str]:
    return list(dict.fromkeys(step.column for step in column.placing.steps))


_STEP = 256
"""Reports are padded to a multiple of this."""


@dataclass(frozen=True, eq=False)
class Made:
    """A campaign that can be run.

    data  the exact bytes of the document
    plan  what it promises and what can be estimated from the planned number of answers
    """

    data: bytes = field(repr=False)
    campaign: Campaign
    plan: Plan


def make_campaign(policy: Policy | str | Path, questions: str | Path | Mapping[str, Any]) -> Made:
    """The document of a campaign; raises with everything that stands against it."""
    policy = policy_given(policy)
    _require_simple(policy)
    problems: list[Problem] = []
    domains = _open_domains(policy, problems)
    made = _planned(policy, questions, problems)
    columns = _columns(policy, made, domains, problems)
    labels = {column.name: _domain_of(column.attribute).values for column in columns}
    read = read_questions(questions, labels or _declared(policy), problems)
    problems.extend(_sourceless(columns, read))
    if problems or made is None:
        raise PolicyError(problems)
    return _finished(_document(policy, columns, read, problems), made)


def _sourceless(columns: Sequence[Column], questions: Questions) -> Iterator[Problem]:
    """Problems of columns with a non-uniform prior whose source is not given to respondents."""
    for column in columns:
        if not isinstance(column, Sets) or column.name not in questions.questions:
            continue
        priors = [member.prior for member in column.strata.members if member.prior is not None]
        if "source" not in questions.questions[column.name] and any(prior.max() > prior.min() for prior in priors):
            where = f"questions.questions.{column.name}"
            what = "its prior is not uniform: respondents must read where it comes from"
            yield Problem(where, what, "source: Statistical Office, census of 2025")


def _require_simple(policy: Policy) -> None:
    """Refuse what cannot be decided by each device for itself."""
    problems = []
    if policy.grouping is not None:
        what = f"'{policy.grouping.name}' forms groups of records, which needs all records in one place"
        problems.append(Problem("$.method", what, "a campaign draws sets on each device: leave `method` out"))
    for item in policy.attributes:
        if item.shared_by:
            what = "devices do not know who else is in a group, and each draws a set of its own"
            hint = "remove shared-by, and let one member answer for the group"
            problems.append(Problem(f"$.attributes.{item.name}.shared-by", what, hint))
    if policy.protect_all_but is not None:
        problems.append(Problem("$.protect-all-but", "the other columns are only known from a table", "name them all"))
    if policy.joint:
        what = "attributes that are protected as one are not asked in campaigns"
        problems.append(Problem("$.joint", what, "declare their combinations as the values of one attribute"))
    if problems:
        raise PolicyError(problems)


def _declared(policy: Policy) -> dict[str, tuple[Any, ...]]:
    return {item.name: item.values or () for item in policy.attributes if item.role.is_published}


def _open_domains(policy: Policy, problems: list[Problem]) -> dict[str, Domain]:
    """The values of the columns that are published as they are; free text is refused."""
    found = {}
    for item in policy.attributes:
        if item.role.is_secret or not item.role.is_published:
            continue
        reader = Reader(None, f"$.attributes.{item.name}", problems)
        domain = declared_domain(item, policy, reader)
        if domain is None:
            what = "published as it is, but its values are not declared: people could write anything into it"
            reader.problem(what, f"{item.name}: {{role: {item.role.value}, domain: [...]}}")
        else:
            found[item.name] = domain
    return found


def _planned(policy: Policy, questions: str | Path | Mapping[str, Any], problems: list[Problem]) -> Plan | None:
    """The plan for the planned number of answers; adds what makes it useless to the problems."""
    try:
        made = plan_of(policy, _expected(questions))
    except InvalidInput as error:
        problems.extend(error.problems)
        return None
    for item in made.attributes:
        problems.extend(_obstacles(item))
    return made


def _expected(questions: str | Path | Mapping[str, Any]) -> int | None:
    """The planned number of answers, if it can be read; what is wrong with it is found later."""
    given = document_of(questions)
    collection = given.get("collection") if isinstance(given, Mapping) else None
    planned = collection.get("planned") if isinstance(collection, Mapping) else None
    return planned if isinstance(planned, int) and not isinstance(planned, bool) and planned > 0 else None


def _obstacles(item: AttributePlan) -> Iterator[Problem]:
    where = f"$.attributes.{item.name}.protect"
    if item.mechanism is None:
        yield Problem(where, item.obstacle, item.hint)
        return
    for stratum in item.strata:
        if stratum.mechanism is None:
            yield Problem(stratum.where or where, stratum.obstacle, "declare fewer values impossible, or promise less")
        elif stratum.facts is not None and stratum.facts.identifiable is False:
            yield Problem(stratum.where or where, "some values of a group could never be told apart", item.hint)
    if item.facts is not None and item.facts.identifiable is False and not item.strata:
        what = "some values could never be told apart, however many people answer"
        yield Problem(where, what, item.hint or "another l or d: polyseme plan shows which")


def _columns(
    policy: Policy, made: Plan | None, domains: Mapping[str, Domain], problems: list[Problem]
) -> tuple[Column, ...]:
    """How each column of a release will be published; nothing where it cannot be."""
    if made is None or problems:
        return ()
    planned = {item.name: item.attribute for item in made.attributes}
    attributes = tuple(
        planned.get(item.name) or Attribute(item.name, item.role, domains[item.name])
        for item in policy.attributes
        if item.role.is_published
    )
    columns = method_named(policy.method.name).columns(Resolved(Schema(attributes), ()), made)
    return tuple(replace(column, attribute=_spelled_out(column.attribute)) for column in columns)


def _spelled_out(attribute: Attribute) -> Attribute:
    """The labels as JSON that every program reads alike: fractions and huge numbers become text."""
    domain = _domain_of(attribute)
    values = tuple(value if _plain(value) else written(value) for value in domain.values)
    return replace(attribute, domain=replace(domain, values=values))


def _plain(value: object) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) <= LARGEST)


def _domain_of(attribute: Attribute) -> Domain:
    if attribute.domain is None:
        raise CampaignError(f"'{attribute.name}' has no domain")
    return attribute.domain


def _sampling(column: Sets, opened: Mapping[str, Domain], problems: list[Problem]) -> dict[str, Any]:
    """The documents of all strata of a column, and how a record finds its own."""
    labels, strata = _domain_of(column.attribute).values, []
    for member in column.strata.members:
        try:
            document = member.mechanism.design.portable(member.mechanism.p)
        except ImpossibleError as error:
            problems.extend(Problem(f"$.attributes.{column.name}", item.what, item.hint) for item in error.problems)
            return {}
        left = [labels[code] for code in member.allowed.tolist()]
        known = fingerprint(column.name, cast("list[str | int | bool]", left), document)
        strata.append({"excluded": list(member.excluded), "document": document, "fingerprint": known})
    if len(strata) == 1:
        return {"strata": strata}
    return {"placing": placing_of(column.strata, opened), "strata": strata}


def _promise(column: Sets, sampling: Mapping[str, Any]) -> dict[str, Any]:
    """What devices check; where the policy bounds no posterior, the worst one that there is."""
    priors = [None if item.prior is None else item.prior.tolist() for item in column.strata.members]
    posterior = column.posterior
    if posterior is None or not isfinite(posterior):
        strata = zip(sampling["strata"], priors, strict=True)
        posterior = max(worst_posterior(Sampling.read(item["document"]), prior) for item, prior in strata)
    return {"l": column.l, "posterior": min(posterior, 1.0), "priors": priors}


def _entry(column: Column, sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest entry without the designs' parameters, which only sampling documents have."""
    entry = entry_of(column)
    if not isinstance(column, Sets):
        return entry
    mechanisms = [entry["mechanism"], *(item["mechanism"] for item in entry.get("strata", ()))]
    for mechanism, stratum in zip(mechanisms, sampling["strata"], strict=True):
        del mechanism["parameters"]
        mechanism["p"] = stratum["document"]["p53"] / ONE
    return entry


def _document(
    policy: Policy, columns: Sequence[Column], questions: Questions, problems: list[Problem]
) -> dict[str, Any]:
    opened = {item.name: _domain_of(item.attribute) for item in columns if isinstance(item, AsIs)}
    protected = [item for item in columns if isinstance(item, Sets)]
    sampling = {item.name: _sampling(item, opened, problems) for item in protected}
    if problems:
        raise PolicyError(problems)
    return {
        "format": FORMAT,
        "name": questions.name,
        "title": dict(questions.title),
        "languages": list(questions.languages),
        "columns": [_entry(item, sampling.get(item.name, {})) for item in columns],
        "sampling": sampling,
        "questions": dict(questions.questions),
        "promises": {item.name: _promise(item, sampling[item.name]) for item in protected},
        "models": [{model.name: dict(model.parameters)} for model in policy.models],
        "collection": dict(questions.collection),
    }


def _finished(document: dict[str, Any], made: Plan) -> Made:
    """The bytes, read again as a device reads them."""
    given = document["collection"]
    wanted = given["size"]
    given["size"] = LARGEST_REPORT if wanted is None else wanted
    longest = longest_report(_read(document))
    if wanted is None:
        given["size"] = max(-(-longest // _STEP) * _STEP, _STEP)
    if longest > min(LARGEST_REPORT, given["size"]):
        what = (
            f"a report can have {longest:,} bytes, more than the {min(LARGEST_REPORT, given['size']):,} of every report"
        )
        raise PolicyError(Problem("questions.collection.size", what, "fewer columns, smaller sets or a larger size"))
    campaign = _read(document)
    try:
        campaign.require_promises()
    except CampaignError as error:
        raise ImpossibleError(
            Problem(item.where, item.what, _remedy(item.where, campaign)) for item in error.problems
        ) from None
    return Made(campaign.data, campaign, made)


def _remedy(where: str, campaign: Campaign) -> str:
    """What would help where a device refuses."""
    name = where.split(".", 1)[1].removesuffix(".posterior").removesuffix(".priors").removesuffix(".l")
    if where.endswith(".l"):
        return "sets of at least two candidates: l: 2"
    offer = next((tempered_offer(column) for column in campaign.protected if column.name == name), "")
    return offer or "rounded to whole numbers, a prior with such rare values cannot keep it: give them a larger share"


def _read(document: Mapping[str, Any]) -> Campaign:
    try:
        return Campaign.read(compact(document))
    except CampaignError as error:
        raise CampaignError(
            Problem(
                f"questions.{item.where}" if item.where.startswith(_FROM_QUESTIONS) else item.where,
                item.what,
                item.hint,
            )
            for item in error.problems
        ) from None


_FROM_QUESTIONS = ("name", "title", "languages", "questions", "collection")
"""Parts of the document that come from the file with questions."""
