"""A device against a dishonest collector: what it computes of a lie, what it refuses, and what it asks consent for."""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import time
from pathlib import Path

import dishonest
import pytest
from command_line import polyseme as run
from dishonest import JUST_ENOUGH, OFFICIAL, REFUSED, TOO_MUCH, VALUES, campaign, document, forged, small
from enumerated_sets import all_sets, findings
from portable_cases import cases, random_designs
from survey import questions

from polyseme import web
from polyseme.collection.campaigns import cautions, make_campaign
from polyseme.collection.operations import add_document, open_document, open_draft
from polyseme.collection.store import open_store
from polyseme.device import Campaign, Queue, answer
from polyseme.device.campaign import campaign_id, compact
from polyseme.device.protected import largest_odds, worst_posterior
from polyseme.device.sampler import Sampling
from polyseme.kernel.errors import CampaignError, ImpossibleError, InvalidInput
from polyseme.policy import Policy

HERE = Path(__file__).parent
NODE = shutil.which("node")
in_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")
PATIENCE = 3.0
"""Seconds of a processor within which a document that is too much is refused."""
KEY = bytes(range(32))


def children():
    """Seconds that processes started here have used a processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def uneven_documents():
    """Documents of every kind, as designs have them and with weights of our own, each with a prior."""
    rng = random.Random(17)
    made = [design.portable(p) for design, p in cases().values()]
    made += [design.portable(p) for design, p, _ in random_designs(48)]
    for given in made:
        others = [given]
        if "weights" in given:
            others.append({**given, "weights": [rng.randint(1, 400) for _ in given["weights"]]})
        for one in others:
            shares = [rng.random() ** 2 + 0.01 for _ in range(1 + max(map(max, all_sets(one))))]
            yield one, [share / sum(shares) for share in shares]


@pytest.fixture(scope="module")
def enumerated():
    return [(given, prior, findings(given, prior)) for given, prior in uneven_documents()]


@pytest.fixture(scope="module")
def honest():
    return campaign(OFFICIAL)


def question(name="illness", values=VALUES, l=2, **collection):
    """A campaign with one protected question of this name."""
    policy = {"attributes": {name: {"role": "sensitive", "domain": list(values), "protect": {"diversity": {"l": l}}}}}
    document = questions(**collection)
    document["questions"] = {name: {"text": {"en": "Your illness?", "de": "Ihre Krankheit?"}}}
    return make_campaign(Policy.loads(json.dumps(policy)), document).campaign


def asking():
    """Campaigns that ask the same question or another one."""
    sticky = {"draws": "sticky"}
    return {
        "first": question(),
        "larger sets": question(l=3),
        "renamed": question(name="disease", values=[value.upper() for value in VALUES], l=3),
        "two more answers": question(name="disease", values=[*VALUES, "gout", "none"]),
        "other answers": question(name="sport", values=["run", "swim", "row", "ski", "box", "hiv"]),
        "same name, other answers": question(values=["a", "b", "c", "d"]),
        "few answers": question(name="one", values=["yes", "no", "perhaps"]),
        "few answers again": question(name="two", values=["yes", "no", "perhaps"]),
        "sticky": question(**sticky),
        "sticky in a later wave": question(wave=2, **sticky),
        "sticky with larger sets": question(l=3, **sticky),
    }


REPEATED = {
    ("first", "larger sets"): True,
    ("larger sets", "first"): True,
    ("first", "renamed"): True,
    ("first", "two more answers"): True,
    ("first", "other answers"): False,
    ("first", "same name, other answers"): True,
    ("few answers", "few answers again"): False,
    ("sticky", "sticky in a later wave"): False,
    ("sticky", "sticky with larger sets"): True,
    ("sticky", "first"): True,
}
"""Whether the second campaign of a pair gets a set that could be intersected with that of the first."""


@pytest.fixture(scope="module")
def node(enumerated, honest, tmp_path_factory):
    """What the client in JavaScript finds in the same documents."""
    given = {
        "findings": [{"document": one, "prior": prior} for one, prior, _ in enumerated],
        "work": {name: make() for name, make in {**TOO_MUCH, **JUST_ENOUGH}.items()},
        "campaigns": {
            **{name: small(make()) for name, (make, _) in REFUSED.items()},
            "honest": honest.data.decode(),
            "half sourced": small(dishonest.half_sourced()),
        },
        "questions": {name: made.data.decode() for name, made in asking().items()},
    }
    file = tmp_path_factory.mktemp("limits") / "cases.json"
    file.write_text(json.dumps(given))
    folder = Path(web.__file__).parent / "client"
    command = [str(NODE), str(HERE / "check_limits.mjs"), str(folder), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def test_python_finds_what_an_enumeration_finds(enumerated):
    kinds = set()
    for given, prior, expected in enumerated:
        sampling = Sampling.read(given)
        found = (worst_posterior(sampling, prior), worst_posterior(sampling), largest_odds(sampling))
        assert found == pytest.approx(expected, rel=1e-12)
        kinds.add((given["kind"], given["p53"] < 2**53, expected[2] > 1.5))
    assert len(kinds) >= 15


@pytest.mark.node
@in_node
def test_node_finds_what_an_enumeration_finds(enumerated, node):
    for (_, _, expected), found in zip(enumerated, node["findings"], strict=True):
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_lie_about_the_prior_reveals_the_answer():
    given = forged()
    strata = given["sampling"]["illness"]["strata"][0]["document"]
    promised, uniform, odds = findings(strata, given["promises"]["illness"]["priors"][0])
    assert promised == pytest.approx(0.5, rel=1e-9)
    assert uniform > 1 - 1e-12
    assert odds > 1e12
    # With a true share of 1%, an attacker is sure: what the device must not send.
    real, _, _ = findings(strata, [0.5, 0.49 / 4, 0.49 / 4, 0.49 / 4, 0.49 / 4, 0.01])
    assert real > 1 - 1e-10


@pytest.mark.parametrize("case", REFUSED)
def test_a_device_refuses(case):
    make, said = REFUSED[case]
    found = Campaign.read(compact(make()))
    with pytest.raises(CampaignError, match=said):
        answer(found, {"illness": "hiv"}, consent=True)


@pytest.mark.node
@in_node
@pytest.mark.parametrize("case", REFUSED)
def test_the_client_refuses(node, case):
    without, agreed, _ = node["campaigns"][case]
    # The client says the first reason only: shares before odds.
    said = "a share is 0" if case == "forged" else REFUSED[case][1]
    assert said in without
    assert agreed == without


@pytest.mark.parametrize("case", REFUSED)
def test_a_collector_does_not_open_it(tmp_path, case):
    data = compact(REFUSED[case][0]())
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    with pytest.raises(CampaignError, match="devices refuse this campaign"):
        open_document(store, data)
    assert store.campaigns() == []
    # One that was kept as a draft before there were limits is not opened either, and can still be read.
    store.add_campaign(campaign_id(data), data, None)
    with pytest.raises(CampaignError, match="devices refuse this campaign"):
        open_draft(store, campaign_id(data))
    store.close()


def test_half_a_source_is_no_source(tmp_path):
    with pytest.raises(CampaignError, match=r"questions.illness.source.de"):
        Campaign.read(compact(dishonest.half_sourced()))


def test_official_statistics_need_consent(honest):
    found = honest.campaign
    assert found.protected[0].odds == pytest.approx(234, rel=1e-9)
    assert found.protected[0].worst_posterior == pytest.approx(0.5, rel=1e-9)
    assert found.protected[0].uniform_posterior == pytest.approx(234 / 235, rel=1e-9)
    with pytest.raises(CampaignError, match="by a factor of 234"):
        answer(found, {"illness": "hiv"})
    assert 5 in answer(found, {"illness": "hiv"}, consent=True).sets["illness"]
    assert not campaign().campaign.needs_consent


@pytest.mark.node
@in_node
def test_the_client_needs_consent_too(node):
    without, agreed, columns = node["campaigns"]["honest"]
    assert "factor above 64" in without
    assert (agreed, columns) == ("", ["illness"])
    assert "where it comes from" in node["campaigns"]["half sourced"][1]


def test_a_tempered_prior_is_offered_and_needs_no_consent(honest):
    (said,) = cautions(honest.campaign)
    assert "by a factor of 234" in said
    offered = json.loads(said.split("which gives prior: ")[1].split("]")[0] + "]")
    tempered = campaign(offered).campaign
    assert 50 < tempered.protected[0].odds < 64
    assert cautions(tempered) == ()
    # What is said of an attacker who knows the official shares.
    strata = tempered.document["sampling"]["illness"]["strata"][0]["document"]
    known, _, _ = findings(strata, OFFICIAL)
    limit = float(said.split("up to ")[1].split("%")[0]) / 100
    assert limit - 0.02 < known <= limit + 5e-4


def test_a_prior_beyond_the_limit_is_refused_with_an_offer():
    steep = [0.4, 0.2, 0.2, 0.1, 0.0999, 0.0001]
    with pytest.raises(ImpossibleError, match=r"factor of 4000, more than 1,024") as error:
        campaign(steep)
    assert "which gives prior: [" in str(error.value)


def test_a_prior_needs_a_source():
    with pytest.raises(InvalidInput, match=r"questions.questions.illness: its prior is not uniform"):
        campaign(OFFICIAL, source=None)
    assert campaign([1 / 6] * 6, source=None).campaign.protected[0].source is None


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much_work_is_refused_at_once(case):
    given = TOO_MUCH[case]()
    began = time.process_time()
    with pytest.raises(CampaignError):
        Sampling.read(given)
    assert time.process_time() - began < PATIENCE


@pytest.mark.parametrize("case", JUST_ENOUGH)
def test_what_is_just_enough_is_read(case):
    given = JUST_ENOUGH[case]()
    assert Sampling.read(given).l == given["l"]


@pytest.mark.node
@in_node
def test_the_client_refuses_the_same_work(node):
    for name in TOO_MUCH:
        said, seconds = node["work"][name]
        assert said.startswith("CampaignError"), name
        assert seconds < PATIENCE, name
    assert {name: node["work"][name][0] for name in JUST_ENOUGH} == dict.fromkeys(JUST_ENOUGH, "")


def test_many_groups_share_one_allowance():
    # One stratum of 2,000 values may have 60 candidates on a line; three together may not.
    given = document()
    values = [f"v{number}" for number in range(2_000)]
    given["columns"][0]["domain"]["values"] = values
    sampling = dishonest.line(2_000, 60)
    strata = dishonest.with_sampling(given, sampling, None, 0.5, 60)["sampling"]["illness"]["strata"]
    given["sampling"]["illness"] = {"strata": strata * 3, "placing": {"steps": [], "strata": [0]}}
    given["promises"]["illness"] = {"l": 60, "posterior": 0.5, "priors": [None] * 3}
    began = time.process_time()
    with pytest.raises(CampaignError, match="too much to compute"):
        Campaign.read(compact(given))
    assert time.process_time() - began < 5 * PATIENCE


def test_a_document_that_is_too_long_is_not_parsed():
    with pytest.raises(CampaignError, match="at most 16,000,000 bytes"):
        Campaign.read(b" " * 16_000_001)


@pytest.mark.parametrize("case", ["line 4,000 / 1,000", "clusters 1,000,000 / 500,000"])
def test_collect_open_refuses_at_once(tmp_path, case):
    sampling = TOO_MUCH[case]()
    given = document()
    count = sampling.get("size", 4_000)
    given["columns"][0]["domain"]["values"] = list(range(min(count, 5_000)))
    given = dishonest.with_sampling(given, sampling, None, 0.5, min(sampling["l"], 5_000))
    (tmp_path / "campaign.json").write_bytes(compact(given))
    began = children()
    done = run("collect", "open", tmp_path / "campaign.json", "--store", f"sqlite:///{tmp_path}/reports.db")
    assert done.returncode == 2, done.stdout
    assert children() - began < 3 * PATIENCE


@pytest.fixture(scope="module")
def campaigns():
    return asking()


@pytest.mark.parametrize(("first", "second"), REPEATED)
def test_a_device_remembers_what_it_answered(tmp_path, campaigns, first, second):
    queue = Queue(tmp_path / "queue.sqlite")
    reports = {}
    for name in (first, second):
        key = KEY if campaigns[name].collection.sticky else None
        label = next(iter(campaigns[name].labels.values()))[0]
        reports[name] = answer(campaigns[name], {next(iter(campaigns[name].labels)): label}, key)
    queue.put(campaigns[first], reports[first])
    # Another process: what is remembered is on the disk.
    again = Queue(tmp_path / "queue.sqlite")
    column = next(iter(campaigns[second].labels))
    assert again.repeats(campaigns[second], reports[second]) == ([column] if REPEATED[first, second] else [])
    if REPEATED[first, second]:
        with pytest.raises(CampaignError, match=f"{column}: this device has answered this question"):
            again.put(campaigns[second], reports[second])
        assert len(again.all()) == 1
    again.put(campaigns[second], reports[second], again=True)
    assert len(again.all()) == 2


@pytest.mark.node
@in_node
def test_the_client_knows_the_same_questions(node):
    for (first, second), expected in REPEATED.items():
        assert node["repeats"][f"{first}, {second}"] is expected, (first, second)


def test_sets_of_two_campaigns_can_be_intersected():
    """What is warned of: with two sets of different size, often only the answer is in both."""
    campaigns = [question(draws="sticky"), question(l=3, draws="sticky")]
    alone = 0
    for number in range(200):
        sets = [set(answer(one, {"illness": "hiv"}, number.to_bytes(32, "big")).sets["illness"]) for one in campaigns]
        alone += len(sets[0] & sets[1]) == 1
    # The other one of the first set is among the two others of the second in two of five cases.
    assert 90 < alone < 150


def test_the_memory_holds_no_answer(tmp_path):
    queue = Queue(tmp_path / "queue.sqlite")
    campaign = question(values=[f"secret {number}" for number in range(40)])
    queue.put(campaign, answer(campaign, {"illness": "secret 7"}))
    assert b"secret" not in (tmp_path / "queue.sqlite").read_bytes()


def test_a_campaign_with_a_learner_promise_says_its_worst_posterior():
    policy = {
        "attributes": {
            "illness": {
                "role": "sensitive",
                "domain": list(VALUES),
                "prior": list(OFFICIAL),
                "protect": {"diversity": {"l": 2}, "learner": {"success": 0.6}},
            }
        }
    }
    document = questions()
    document["questions"] = {"illness": {"text": {"en": "?", "de": "?"}, "source": dishonest.SOURCE}}
    found = make_campaign(Policy.loads(json.dumps(policy)), document).campaign.protected[0]
    assert found.posterior == pytest.approx(found.worst_posterior)
    assert 0.5 < found.posterior <= 1


def test_a_draft_that_devices_answer_is_opened(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    found = add_document(store, campaign().data)
    open_draft(store, found)
    assert store.campaign(found).state.value == "open"
    store.close()
