"""From a policy and questions to a campaign, and back to the columns of a release."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from copy import deepcopy
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from command_line import polyseme as run
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from draws import seeds
from hypothesis import given, settings
from survey import POLICY, QUESTIONS, RECORD, questions

from polyseme.collection.campaigns import cautions, columns_of, make_campaign, manifest_of, summary
from polyseme.collection.campaigns.overview import sign, signature_holds
from polyseme.device.campaign import Campaign, campaign_id, compact
from polyseme.device.reports import answer, answer_codes, longest_report
from polyseme.device.sampler import ONE
from polyseme.kernel.documents import parse
from polyseme.kernel.errors import CampaignError, ImpossibleError, InvalidInput, PolicyError
from polyseme.policy import Policy
from polyseme.release.columns import AsIs, Sets
from polyseme.release.manifest import Manifest
from polyseme.scrutiny.verification.verdicts import posterior_verdict
from polyseme.verbs.plan import plan

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def made():
    return make_campaign(Policy.loads(POLICY), QUESTIONS)


@pytest.fixture(scope="module")
def sticky():
    return make_campaign(Policy.loads(POLICY), questions(draws="sticky")).campaign


@pytest.fixture(scope="module")
def schema():
    from importlib import resources

    return json.loads(resources.files("polyseme.device").joinpath("campaign.schema.json").read_text())


def problems_of(policy, document):
    with pytest.raises(InvalidInput) as error:
        make_campaign(Policy.loads(policy), document)
    return [str(problem) for problem in error.value.problems]


def test_the_document_is_pinned_by_its_bytes(made):
    assert Campaign.read(made.data, made.campaign.id).id == made.campaign.id
    assert make_campaign(Policy.loads(POLICY), QUESTIONS).campaign.id == made.campaign.id
    changed = made.data.replace(b"Health", b"Wealth")
    assert campaign_id(changed) != made.campaign.id
    with pytest.raises(CampaignError, match="the document was changed"):
        Campaign.read(changed, made.campaign.id)


def test_a_release_has_the_channel_of_the_devices(made):
    plans = {item.name: item for item in plan(Policy.loads(POLICY)).attributes}
    for column in columns_of(made.campaign):
        if isinstance(column, AsIs):
            continue
        device = next(item for item in made.campaign.protected if item.name == column.name)
        assert len(device.strata) == len(column.strata.members)
        for member, stratum in zip(device.strata, column.strata.members, strict=True):
            assert list(member.codes) == stratum.allowed.tolist()
            assert member.sampling.p53 / ONE == stratum.mechanism.p
            assert member.worst_posterior == pytest.approx(stratum.mechanism.worst_posterior(), rel=1e-12)
            design, sets = stratum.mechanism.design, stratum.mechanism.design.sets()
            weights = design.likelihood(sets)
            assert member.sampling.kind.inclusion() == pytest.approx(design.inclusion().tolist(), rel=1e-12)
            assert weights.min() > 0
        own = plans[column.name].mechanism.design
        assert column.mechanism.design.likelihood(own.sets()) == pytest.approx(own.likelihood(own.sets()), rel=1e-9)


def test_the_manifest_of_a_release_is_an_ordinary_one(made):
    manifest = manifest_of(made.campaign, 10, {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64})
    again = Manifest.from_dict(json.loads(manifest.to_json()))
    assert again.format == 2
    assert again.collected == manifest.collected
    assert [type(column) for column in again.columns] == [AsIs, AsIs, AsIs, Sets, Sets]
    assert all(posterior_verdict(column).holds for column in again.sets)


def test_an_answer_is_a_set_that_holds_the_truth(made):
    income = made.campaign.labels["income"].index("[200, 300)")
    for _ in range(50):
        report = answer(made.campaign, RECORD)
        assert report.open == {"sex": 1, "region": 2, "age": 2}
        assert income in report.sets["income"]
        assert 0 in report.sets["disease"]
        assert 2 not in report.sets["disease"]
        body = report.body(made.campaign.collection.size)
        assert len(body) == made.campaign.collection.size
        assert list(json.loads(body)) == ["id", "open", "sets", "pad"]
    assert len({answer(made.campaign, RECORD).id for _ in range(20)}) == 20
    assert "id" not in repr(report)


def test_sticky_answers_repeat_and_fresh_ones_do_not(made, sticky):
    again = [answer(sticky, RECORD, KEY).sets for _ in range(5)]
    assert all(sets == again[0] for sets in again)
    others = {tuple(answer(sticky, RECORD, bytes([number]) * 32).sets["income"]) for number in range(30)}
    assert len(others) > 3
    assert len({answer(made.campaign, RECORD).sets["income"] for _ in range(50)}) > 3


def test_sticky_sets_that_change_with_an_open_answer_are_warned_of(made, sticky):
    assert cautions(made.campaign) == ()
    stratified = [column.name for column in sticky.protected if len(column.strata) > 1]
    assert stratified
    found = cautions(sticky)
    assert [text.split("'")[1] for text in found] == stratified
    changing = {step.column for column in sticky.protected for step in column.placing.steps}
    assert all(any(f"'{name}'" in text for name in changing) for text in found)


def test_two_alike_questions_have_independent_sticky_sets():
    policy = """
attributes:
  first: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 2}}}
  second: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 2}}}
"""
    document = {**questions(draws="sticky"), "languages": ["en"], "title": "T"}
    document["questions"] = {"first": "First?", "second": "Second?"}
    document["collection"]["purpose"] = "To see."
    campaign = make_campaign(Policy.loads(policy), document).campaign
    reports = [answer(campaign, {"first": "a", "second": "a"}, number.to_bytes(32, "big")) for number in range(200)]
    same = sum(report.sets["first"] == report.sets["second"] for report in reports)
    assert 20 < same < 60  # one in five by chance


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sex": None}, "sex: not one of the answers"),
        ({"age": 300}, "age: not one of the answers"),
        ({"age": float("nan")}, "age: not one of the answers"),
        ({"shoes": 43}, "shoes: not asked"),
        ({"disease": "pregnancy"}, "impossible together with the other answers"),
    ],
)
def test_a_wrong_answer_is_refused_and_not_quoted(made, change, said):
    with pytest.raises(CampaignError, match=said) as error:
        answer(made.campaign, {**RECORD, **change})
    assert "pregnancy" not in str(error.value)
    assert "300" not in str(error.value)


def test_every_missing_answer_is_told(made):
    with pytest.raises(CampaignError) as error:
        answer(made.campaign, {"sex": "male"})
    assert len(error.value.problems) == 4


@pytest.mark.parametrize(("age", "code"), [(0, 0), (17.9, 0), (18, 1), (65, 3), (120, 3), ("[18, 40)", 1)])
def test_numbers_fall_into_bins(made, age, code):
    assert answer(made.campaign, {**RECORD, "age": age}).open["age"] == code


def test_keys_and_tokens_fit_the_campaign(made, sticky):
    for call in (lambda: answer(made.campaign, RECORD, KEY), lambda: answer(sticky, RECORD)):
        with pytest.raises(CampaignError, match="key"):
            call()
    with pytest.raises(CampaignError, match="no tokens"):
        answer(made.campaign, RECORD, token="x")  # noqa: S106
    invited = make_campaign(Policy.loads(POLICY), questions(tokens="invitation")).campaign
    with pytest.raises(CampaignError, match="wants a token"):
        answer(invited, RECORD)
    assert b'"token":"abc"' in answer(invited, RECORD, token="abc").body(invited.collection.size)  # noqa: S106


def test_the_id_of_a_report_with_a_blind_token_is_its_hash():
    issuer = {"address": "https://issuer.example", "key": "AAAA"}
    campaign = make_campaign(Policy.loads(POLICY), questions(tokens="blind-rsa", issuer=issuer)).campaign
    token = base64.urlsafe_b64encode(bytes(range(250, 256)) * 50).rstrip(b"=").decode()
    found = {answer(campaign, RECORD, token=token).id for _ in range(3)}
    digest = hashlib.sha256(bytes(range(250, 256)) * 50).digest()[:16]
    assert found == {base64.urlsafe_b64encode(digest).rstrip(b"=").decode()}
    assert campaign.collection.issuer.address == "https://issuer.example"


def test_a_document_that_tells_more_than_it_promises_is_refused(made):
    document = deepcopy(made.campaign.document)
    document["promises"]["income"]["posterior"] = 0.33
    with pytest.raises(CampaignError, match=r"0.33 is promised, but a set can give 0.333333"):
        answer(Campaign.read(compact(document)), RECORD)


def wrong_documents(document):
    """Changes that both the schema and the device must refuse."""

    def changed(change):
        other = deepcopy(document)
        change(other)
        return other

    sampling = lambda d: d["sampling"]["income"]["strata"][0]["document"]  # noqa: E731
    return {
        "format": changed(lambda d: d.update(format="polyseme-campaign-2")),
        "no name": changed(lambda d: d.pop("name")),
        "more": changed(lambda d: d.update(more=1)),
        "no languages": changed(lambda d: d.update(languages=[])),
        "language twice": changed(lambda d: d.update(languages=["en", "en"])),
        "no columns": changed(lambda d: d.update(columns=[])),
        "generalized": changed(lambda d: d["columns"][0].update(published="generalized")),
        "no domain": changed(lambda d: d["columns"][0].pop("domain")),
        "fraction": changed(lambda d: d["columns"][0]["domain"].update(values=[1.5, 2.5])),
        "no sampling": changed(lambda d: d.update(sampling={})),
        "kind": changed(lambda d: sampling(d).update(kind="ring")),
        "weight": changed(lambda d: sampling(d)["weights"].__setitem__(0, 0)),
        "weight is text": changed(lambda d: sampling(d)["weights"].__setitem__(0, "1")),
        "no tight": changed(lambda d: sampling(d).pop("tight")),
        "unknown field": changed(lambda d: sampling(d).update(wide=1)),
        "p": changed(lambda d: sampling(d).update(p53=-1)),
        "fingerprint": changed(lambda d: d["sampling"]["income"]["strata"][0].update(fingerprint="0")),
        "placing": changed(lambda d: d["sampling"]["disease"]["placing"].pop("strata")),
        "no question text": changed(lambda d: d["questions"]["sex"].pop("text")),
        "labels": changed(lambda d: d["questions"]["sex"].update(labels={"en": [1, 2]})),
        "posterior": changed(lambda d: d["promises"]["income"].update(posterior=1.5)),
        "no priors": changed(lambda d: d["promises"]["income"].update(priors=[])),
        "negative prior": changed(lambda d: d["promises"]["income"].update(priors=[[-1.0] * 9])),
        "draws": changed(lambda d: d["collection"].update(draws="often")),
        "wave": changed(lambda d: d["collection"].update(wave=0)),
        "relay": changed(lambda d: d["collection"].update(relay="ftp://relay.example", gateway="AA")),
        "no gateway": changed(lambda d: d["collection"].update(relay="https://relay.example")),
        "gateway": changed(lambda d: d["collection"].update(relay="https://relay.example", gateway="+/=")),
        "no issuer": changed(lambda d: d["collection"].update(tokens="blind-rsa")),
        "issuer": changed(lambda d: d["collection"].update(issuer={"address": "https://i.example"})),
        "size": changed(lambda d: d["collection"].update(size=5000)),
        "delay": changed(lambda d: d["collection"].update(delay=-1)),
        "no contact": changed(lambda d: d["collection"].pop("contact")),
        "no purpose": changed(lambda d: d["collection"].update(purpose={})),
        "models": changed(lambda d: d.update(models={})),
    }


def test_schema_and_device_refuse_the_same(made, schema):
    validator = jsonschema.Draft202012Validator(schema)
    document = json.loads(made.data)
    validator.validate(document)
    for name, wrong in wrong_documents(document).items():
        assert not validator.is_valid(wrong), name
        with pytest.raises(CampaignError):
            Campaign.read(compact(wrong))


def test_schema_and_device_know_the_same_fields(schema):
    from polyseme.device.sampler import KINDS
    from polyseme.device.terms import Collection

    assert set(schema["properties"]["collection"]["properties"]) == set(Collection.__dataclass_fields__)
    kinds = schema["$defs"]["document"]["oneOf"]
    assert {item["properties"]["kind"]["const"]: set(item["properties"]) for item in kinds} == {
        name: {"kind", "l", "p53", *kind.fields} for name, kind in KINDS.items()
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["sampling"]["income"]["strata"][0].update(fingerprint="0" * 64), "fingerprint"),
        (lambda d: d["sampling"]["income"]["strata"][0].update(excluded=[1]), "sets of 3 of 8 values"),
        (lambda d: d["sampling"]["disease"]["placing"]["strata"].append(0), "expected 2 numbers"),
        (lambda d: d["sampling"]["disease"]["placing"]["steps"][0].update(column="shoes"), "not an open column"),
        (lambda d: d["sampling"]["disease"]["placing"]["steps"][0].update(next=[[0, 1], [0, 1]]), "one for each state"),
        (lambda d: d["sampling"]["disease"].pop("placing"), "expected an object"),
        (lambda d: d["promises"]["income"].update(priors=[[0.1] * 9]), "add up to one"),
        (lambda d: d["questions"].pop("sex"), "questions.sex"),
        (lambda d: d["questions"]["sex"]["text"].pop("de"), "questions.sex.text.de"),
        (lambda d: d["collection"].update(opens="yesterday"), "moment"),
        (lambda d: d["collection"].update(closes="2026-12-01T00:00:00"), "moment"),
        (lambda d: d["collection"].update(closes="2026-11-01T00:00:00Z"), "not after it opens"),
        (lambda d: d["columns"].append(d["columns"][0]), "more than once"),
        (lambda d: d["collection"].update(relay="http://relay.example", gateway="AA"), "https://"),
        (lambda d: d["collection"].update(relay="http://localhost.example", gateway="AA"), "https://"),
    ],
)
def test_what_a_schema_cannot_say_is_refused_too(made, change, said):
    document = json.loads(made.data)
    change(document)
    with pytest.raises(CampaignError, match=said):
        Campaign.read(compact(document))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1e999}', b"[" * 100_000])
def test_damaged_bytes_are_refused(data):
    with pytest.raises(CampaignError, match="JSON in UTF-8"):
        Campaign.read(data)


def places(node, path=()):
    """The places of all parts of a document."""
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def spoiled(document, rng):
    """A document in which some parts are missing or something else."""
    other, somewhere = deepcopy(document), list(places(document))
    strange = [None, True, 0, -1, 2**53, 10**30, 1.5, "", "x", "\ud800", [], {}, [[]], [None], {"a": 1}, [0] * 9, 3]
    for _ in range(rng.choice([1, 1, 2, 3])):
        *way, last = rng.choice(somewhere)
        try:
            node = other
            for key in way:
                node = node[key]
            if rng.random() < 0.2:
                del node[last]
            else:
                node[last] = deepcopy(rng.choice(strange))
        except (KeyError, IndexError, TypeError):
            continue
    return json.dumps(other).encode()


def test_a_spoiled_document_is_refused_and_nothing_else_happens(made):
    document, refused = json.loads(made.data), 0
    codes = {"sex": 0, "region": 0, "age": 0, "income": 3, "disease": 1}

    @settings(max_examples=500)
    @given(seeds.map(random.Random))
    def check(rng):
        nonlocal refused
        try:
            campaign = Campaign.read(spoiled(document, rng))
            answer_codes(campaign, codes)
            columns_of(campaign)
        except CampaignError:
            refused += 1

    check()
    assert refused > 300


def test_a_release_with_other_strata_than_devices_is_refused(made):
    document = json.loads(made.data)
    document["columns"][4]["impossible"][0]["when"] = {"sex": ["female"]}
    with pytest.raises(CampaignError, match=r"sampling.disease: other strata"):
        columns_of(Campaign.read(compact(document)))


def test_a_column_that_is_no_entry_of_a_manifest_is_refused(made):
    document = json.loads(made.data)
    document["columns"][3]["mechanism"]["design"] = 7
    with pytest.raises(CampaignError, match=r"columns\[3\].mechanism.design: does not match the manifest's schema"):
        columns_of(Campaign.read(compact(document)))


def test_all_problems_at_once():
    policy = """
attributes:
  town: {role: quasi-identifier}
  income: {role: sensitive, domain: [1, 2, 3, 4], distance: {line: rank}, protect: {semantic-diversity: {l: 3, d: 3}}}
"""
    document = {**QUESTIONS, "questions": {"income": {"text": {"en": "Income?"}}, "shoes": "Shoes?"}}
    document["collection"] = {"purpose": {"en": "x", "de": "y"}}
    found = "\n".join(problems_of(policy, document))
    for said in (
        "$.attributes.town: published as it is, but its values are not declared",
        "$.attributes.income.protect",
        "questions.questions.income.text: no text in de",
        "questions.questions.shoes: no such column",
        "no question for 'town'",
        "no planned",
        "no contact",
    ):
        assert said in found


def test_methods_that_group_records_are_refused():
    policy = POLICY + "method: {full-domain: {}}\nmodels: [{k-anonymity: {k: 5}}]\n"
    assert "forms groups of records" in "\n".join(problems_of(policy, QUESTIONS))


@pytest.mark.parametrize("mechanism", ["simple", "simple, check: printed"])
def test_a_design_without_integers_is_refused_with_the_reason(mechanism):
    policy = POLICY.replace(
        "protect: {semantic-diversity: {l: 3, d: 2}}",
        f"protect: {{semantic-diversity: {{l: 3, d: 2, mechanism: {mechanism}}}}}",
    )
    assert "cannot be drawn on devices" in "\n".join(problems_of(policy, QUESTIONS))


def test_what_cannot_be_estimated_is_refused():
    policy = """
attributes:
  rank:
    role: sensitive
    domain: [1,2,3,4,5,6,7,8,9,10,11,12,13,14]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 7}}
"""
    document = questions()
    document["questions"] = {"rank": {"text": {"en": "Rank?", "de": "Rang?"}}}
    assert "could never be told apart" in "\n".join(problems_of(policy, document))


def test_a_prior_by_group_is_one_document_a_stratum(tmp_path):
    (tmp_path / "prior.csv").write_text(
        "sex,income,share\n"
        + "".join(
            f"{sex},{value},{share}\n"
            for sex, shares in (("f", (3, 2, 2, 2, 1)), ("m", (1, 2, 2, 2, 3)))
            for value, share in zip("abcde", shares, strict=True)
        )
    )
    policy = """
attributes:
  sex: {role: quasi-identifier, domain: [f, m]}
  income: {role: sensitive, domain: [a, b, c, d, e], protect: {diversity: {l: 2}}, prior: {by: [sex], file: prior.csv}}
"""
    document = questions(draws="sticky")
    document["questions"] = {name: {"text": {"en": f"{name}?", "de": f"{name}?"}} for name in ("sex", "income")}
    document["questions"]["income"]["source"] = {"en": "Statistical Office", "de": "Statistisches Amt"}
    campaign = make_campaign(Policy.loads(policy, tmp_path), document).campaign
    column = campaign.protected[0]
    assert len(column.strata) >= 2
    assert {column.placing.stratum({"sex": code}) for code in (0, 1)} <= set(range(len(column.strata)))
    for code in (0, 1):
        member = column.strata[column.placing.stratum({"sex": code})]
        assert member.prior is not None
        assert member.worst_posterior == pytest.approx(0.5, rel=1e-8)
    # The stratum of a record is the one that the tables of a release find.
    import polars as pl

    strata = next(item for item in columns_of(campaign) if isinstance(item, Sets)).strata
    found = strata.places({"sex": pl.Series(["f", "m"])}, 2).tolist()
    assert found == [column.placing.stratum({"sex": code}) for code in (0, 1)]


def test_a_prior_too_uneven_for_whole_numbers_is_refused():
    policy = """
attributes:
  income: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}, prior: [0.34, 0.33, 0.33, 1.0e-20]}
"""
    document = questions()
    source = {"en": "Statistical Office", "de": "Statistisches Amt"}
    document["questions"] = {"income": {"text": {"en": "Income?", "de": "Einkommen?"}, "source": source}}
    with pytest.raises(ImpossibleError, match="promised, but a set can give"):
        make_campaign(Policy.loads(policy), document)


def test_reports_have_the_smallest_size_that_fits(made):
    assert made.campaign.collection.size == 256 >= longest_report(made.campaign)
    with pytest.raises(PolicyError, match="a report can have"):
        make_campaign(Policy.loads(POLICY), questions(size=128, tokens="invitation"))


def test_a_signature_is_of_the_exact_bytes(made):
    key = Ed25519PrivateKey.from_private_bytes(KEY)
    signature = sign(made.data, key)
    assert signature_holds(made.data, signature, key.public_key())
    assert not signature_holds(made.data + b" ", signature, key.public_key())
    assert not signature_holds(made.data, "", key.public_key())
    assert not signature_holds(made.data, signature, Ed25519PrivateKey.generate().public_key())


def test_the_expected_error_follows_the_number_of_answers(made):
    few, many = summary(made.campaign, 1000), summary(made.campaign, 4000)
    for one, other in zip(few.columns, many.columns, strict=True):
        assert one.error == pytest.approx(2 * other.error, rel=1e-6)
        assert one.worst <= one.promised * (1 + 1e-6)
    expected = next(item.facts.expected_mse for item in made.plan.attributes if item.name == "income")
    assert summary(made.campaign).columns[0].mse == pytest.approx(expected, rel=1e-6)


def test_commands(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "questions.yaml").write_text(json.dumps(QUESTIONS))
    folder = tmp_path / "campaign"
    done = run("campaign", "new", tmp_path / "policy.yaml", "--questions", tmp_path / "questions.yaml", "--out", folder)
    assert done.returncode == 0, done.stdout
    assert "5,000 answers" in done.stdout
    campaign = Campaign.read((folder / "campaign.json").read_bytes())
    shown = run("campaign", "show", folder, "--json", "--records", "2000")
    assert json.loads(shown.stdout)["id"] == campaign.id
    assert json.loads(shown.stdout)["planned"] == 2000
    (tmp_path / "key.pem").write_bytes(_pem())
    assert run("campaign", "sign", folder, "--key", tmp_path / "key.pem").returncode == 0
    assert (folder / "campaign.sig").read_text().strip()
    again = run(
        "campaign", "new", tmp_path / "policy.yaml", "--questions", tmp_path / "questions.yaml", "--out", folder
    )
    assert again.returncode == 2
    assert "Warning" not in done.stderr
    (tmp_path / "questions.yaml").write_text(json.dumps(questions(draws="sticky")))
    sticky = run(
        "campaign",
        "new",
        tmp_path / "policy.yaml",
        "--questions",
        tmp_path / "questions.yaml",
        "--out",
        tmp_path / "two",
    )
    assert sticky.returncode == 0
    assert "Warning: sets of 'disease' are sticky" in sticky.stderr
    missing = run("campaign", "show", tmp_path / "nothing")
    assert missing.returncode == 2


def _pem():
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.from_private_bytes(KEY)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_the_questions_of_the_protocol_page_can_be_asked():
    page = (Path(__file__).parents[2] / "docs" / "collection" / "protocol.md").read_text(encoding="utf-8")
    document = parse(page.split("```yaml\n")[1].split("```")[0])
    policy = "\n".join(line for line in POLICY.splitlines() if line.strip()[:4] not in ("regi", "age:"))
    policy = policy.split("  disease:")[0]
    campaign = make_campaign(Policy.loads(policy), document).campaign
    assert list(campaign.labels) == list(document["questions"])


def test_codes_can_be_answered_directly(sticky):
    codes = {"sex": 0, "region": 0, "age": 1, "income": 4, "disease": 2}
    report = answer_codes(sticky, codes, KEY)
    assert 4 in report.sets["income"]
    assert 2 in report.sets["disease"]
    assert np.all(np.diff(report.sets["income"]) > 0)
