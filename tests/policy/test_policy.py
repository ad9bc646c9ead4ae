from __future__ import annotations

import numpy as np
import pytest

from polyseme.kernel.errors import PolicyError, TableError
from polyseme.policy import Policy
from polyseme.policy.resolution import resolve
from polyseme.schema import Role
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.readers import open_table

pa = pytest.importorskip("pyarrow")

GOOD = """
attributes:
  name: {role: identifier}
  zip: {role: quasi-identifier}
  income:
    role: sensitive
    domain: ["<1M", "1-2M", "2-3M", "3-4M", "4-5M", "5-6M"]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""

FIVE_MISTAKES = """
attributes:
  age: {role: quasiidentifier}
  zip: {rolle: insensitive}
  income:
    role: sensitive
    domain: [a, a, b]
    bins: [3, 2, 1]
    protect: {semantic-diversity: {l: 2, d: 2}}
methode: decoys
record-key: nobody
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy.loads(text)
    return [str(problem) for problem in caught.value.problems]


def test_a_good_policy() -> None:
    policy = Policy.loads(GOOD)
    assert [attribute.role for attribute in policy.attributes] == [
        Role.IDENTIFIER,
        Role.QUASI_IDENTIFIER,
        Role.SENSITIVE,
    ]
    attribute = resolve(policy).schema["income"]
    assert attribute.domain is not None
    assert attribute.domain.size == 6
    assert attribute.distance is not None


def test_all_problems_at_once_each_with_its_place() -> None:
    found = "\n".join(problems_of(FIVE_MISTAKES))
    for place in (
        "$.attributes.age.role",
        "$.attributes.zip.rolle",
        "$.attributes.zip:",
        "$.attributes.income.domain",
        "$.attributes.income.bins",
        "$.methode",
        "$.record-key",
    ):
        assert place in found
    assert "did you mean 'quasi-identifier'" in found
    assert "did you mean 'method'" in found


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("[1, 2]", "expected a mapping"),
        ("attributes: {a: {role: sensitive}}", "nothing protects it"),
        ("attributes: {a: {role: sensitive, domain: [], protect: {diversity: {l: 2}}}}", "empty domain"),
        ("attributes: {a: {role: insensitive, protect: {diversity: {l: 2}}}}", "not protected"),
        ("attributes: {a: {role: sensitive, protect: {semantic-diversity: {l: 2, d: 1}}}}", "needs a distance"),
        ("attributes: {a: {role: insensitive}, a: {role: identifier}}", "given more than once"),
        ("attributes: {a: {role: insensitive", "not valid YAML"),
        ("attributes: {a: {role: insensitive}}\nmodels: [{k-anonymity: {k: 2}, closeness: {t: 1}}]", "one model"),
        ("attributes: {a: {role: insensitive}}\ntable: {separator: ';;', encoding: utf-99}", "one character"),
    ],
)
def test_bad_policies(text: str, word: str) -> None:
    assert any(word in problem for problem in problems_of(text))


def test_a_role_that_cannot_be_read_is_one_problem() -> None:
    found = problems_of("attributes: {ill: {role: secret, domain: [a, b, c], protect: {diversity: {l: 2}}}}")
    assert len(found) == 1


def test_a_missing_file_is_a_clear_error(tmp_path) -> None:
    with pytest.raises(PolicyError, match="no such policy file"):
        Policy.load(tmp_path / "none.yaml")


def source(**columns: list) -> FrameSource:
    return FrameSource(pa.table(columns), "table")


def test_policy_and_table_must_name_each_other() -> None:
    with pytest.raises(TableError) as caught:
        resolve(Policy.loads(GOOD), source(name=["a"], zip=["1"], incom=["<1M"], shoe=[44]))
    text = str(caught.value)
    assert "$.attributes.income" in text
    assert "did you mean 'incom'" in text
    assert "column 'shoe'" in text


def test_domains_left_open_come_from_the_table_and_say_so() -> None:
    text = "attributes: {job: {role: sensitive-qid, protect: {diversity: {l: 2}}}}"
    with pytest.raises(PolicyError, match="not declared"):
        resolve(Policy.loads(text))
    resolved = resolve(Policy.loads(text), source(job=["b", "a", "c", "a"]))
    assert resolved.schema["job"].domain.values == ("a", "b", "c")
    assert resolved.from_data == ("job",)


def test_numbers_in_text_columns_are_ordered_by_size() -> None:
    text = "attributes: {n: {role: sensitive, distance: {line: rank}, protect: {semantic-diversity: {l: 2, d: 1}}}}"
    resolved = resolve(Policy.loads(text), source(n=["10", "9", "100"]))
    assert resolved.schema["n"].domain.values == ("9", "10", "100")


def test_bins_have_middles_as_positions() -> None:
    text = "attributes: {n: {role: sensitive, bins: [0, 10, 20, 50], protect: {semantic-diversity: {l: 2, d: 10}}}}"
    attribute = resolve(Policy.loads(text)).schema["n"]
    assert attribute.domain.values == ("[0, 10)", "[10, 20)", "[20, 50]")
    assert attribute.distance.positions.tolist() == [5, 15, 35]


@pytest.mark.parametrize(
    ("method", "edges"), [("equal-width", (-np.inf, 5.0, np.inf)), ("quantile", (-np.inf, 1.0, np.inf))]
)
def test_automatic_bins(method: str, edges: tuple[float, ...]) -> None:
    bins = f"bins: {{count: 2, method: {method}}}"
    text = f"attributes: {{n: {{role: sensitive, {bins}, protect: {{diversity: {{l: 1}}}}}}}}"
    attribute = resolve(Policy.loads(text), source(n=[0.0, 1.0, 1.0, 10.0, None] * 5)).schema["n"]
    assert attribute.domain.cut.edges == edges


def test_periods_fill_the_gaps_between_dates() -> None:
    text = "attributes: {day: {role: sensitive, periods: month, protect: {semantic-diversity: {l: 2, d: 1}}}}"
    resolved = resolve(Policy.loads(text), source(day=["2024-01-31", "2024-04-01"]))
    assert resolved.schema["day"].domain.values == ("2024-01", "2024-02", "2024-03", "2024-04")


def test_a_tree_brings_its_leaves_as_the_domain() -> None:
    text = """
attributes:
  disease:
    role: sensitive
    distance: {tree: {lung: [flu, asthma], skin: [acne, eczema]}}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
    resolved = resolve(Policy.loads(text))
    assert set(resolved.schema["disease"].domain.values) == {"flu", "asthma", "acne", "eczema"}
    assert resolved.from_data == ()


def test_values_of_the_table_are_not_named_when_they_do_not_fit_a_taxonomy() -> None:
    protect = "distance: {taxonomy: icd10}, protect: {semantic-diversity: {l: 2, d: 2}}"
    text = f"attributes: {{code: {{role: sensitive, {protect}}}}}"
    with pytest.raises(PolicyError) as caught:
        resolve(Policy.loads(text), source(code=["J45", "SECRET-VALUE"]))
    assert "SECRET-VALUE" not in str(caught.value)


def test_protect_all_but(tmp_path) -> None:
    text = "attributes: {}\nprotect-all-but: [id]\nprotect: {diversity: {l: 2}}"
    policy = Policy.loads(text)
    resolved = resolve(policy, source(id=[1, 2], a=["x", "y"], b=["u", "v"]))
    assert [attribute.name for attribute in resolved.schema.protected] == ["a", "b"]


def test_priors_by_value_or_in_order() -> None:
    base = "role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}"
    by_name = resolve(Policy.loads(f"attributes: {{x: {{{base}, prior: {{c: 3, a: 1, b: 4}}}}}}")).schema["x"]
    in_order = resolve(Policy.loads(f"attributes: {{x: {{{base}, prior: [1, 4, 3]}}}}")).schema["x"]
    assert by_name.distributions.prior.tolist() == in_order.distributions.prior.tolist() == [0.125, 0.5, 0.375]
    with pytest.raises(PolicyError, match="expected 3 numbers"):
        resolve(Policy.loads(f"attributes: {{x: {{{base}, prior: [1, 2]}}}}"))


def test_open_table_refuses_what_is_no_table() -> None:
    with pytest.raises(TableError, match="cannot read a table"):
        open_table(42)


CLOSE = "role: sensitive-qid, domain: [a, b, c, d], protect: {closeness: {t: 0.3}}"


def test_references_from_a_file_or_from_the_table(tmp_path) -> None:
    (tmp_path / "shares.csv").write_text("value,people\nb,3\na,1\nd,2\nc,2\n")
    from_file = Policy.loads(f"attributes: {{x: {{{CLOSE}, reference: shares.csv}}}}", tmp_path)
    assert resolve(from_file).schema["x"].distributions.reference.tolist() == [0.125, 0.375, 0.25, 0.25]
    from_data = Policy.loads(f"attributes: {{x: {{{CLOSE}, reference: data}}}}")
    expected = resolve(from_data, source(x=["a", "b", "b", "d"])).schema["x"].distributions
    assert expected.reference.tolist() == [0.25, 0.5, 0, 0.25]
    assert expected.reference_from_data
    with pytest.raises(PolicyError, match="needs the table"):
        resolve(from_data)
    with pytest.raises(PolicyError, match=r"no file 'none\.csv' beside the policy"):
        resolve(Policy.loads(f"attributes: {{x: {{{CLOSE}, reference: none.csv}}}}", tmp_path))


@pytest.mark.parametrize("key", ["prior", "reference"])
@pytest.mark.parametrize("shares", ["{a: 60, b: 40}", "[1, 0, 1, 1]"])
def test_a_value_without_a_share_is_refused(key: str, shares: str) -> None:
    """Against a reference that rules values out, closeness would let them be published as they are."""
    with pytest.raises(PolicyError, match="have no share") as caught:
        resolve(Policy.loads(f"attributes: {{x: {{{CLOSE}, {key}: {shares}}}}}"))
    assert [problem.where for problem in caught.value.problems] == [f"$.attributes.x.{key}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,1\nb,inf\nc,1\nd,1\n", "needs finite numbers"),
        ("a,1\nb,nan\nc,1\nd,1\n", "needs finite numbers"),
        ("a,1\nb,1\nc,1\nd,1\na,7\n", "1 of the values are in the file 'shares.csv' more than once"),
    ],
)
def test_files_of_shares_that_say_nothing_clear(tmp_path, text: str, message: str) -> None:
    (tmp_path / "shares.csv").write_text(text)
    with pytest.raises(PolicyError, match=message):
        resolve(Policy.loads(f"attributes: {{x: {{{CLOSE}, reference: shares.csv}}}}", tmp_path))


def test_a_reference_from_no_records() -> None:
    with pytest.raises(PolicyError, match=r"\$\.attributes\.x\.reference: there are no records"):
        resolve(Policy.loads(f"attributes: {{x: {{{CLOSE}, reference: data}}}}"), source(x=[]))


@pytest.mark.parametrize("key", ["prior", "reference"])
def test_messages_about_shares_do_not_show_values_of_the_table(key: str) -> None:
    text = f"role: sensitive, protect: {{closeness: {{t: 0.3}}}}, {key}: {{secres: 1}}"
    with pytest.raises(PolicyError, match="1 name is not in the domain") as caught:
        resolve(Policy.loads(f"attributes: {{x: {{{text}}}}}"), source(x=["secret", "other"]))
    assert "secret" not in str(caught.value)


def test_words_stay_words_and_codes_keep_their_zeros() -> None:
    text = "[no, yes, on, off, y, 010, 12:30, 1_000, 0x1F, 007.5, 1e3, 1, -2, 0.5, true]"
    policy = Policy.loads(f"attributes: {{x: {{role: sensitive, domain: {text}, protect: {{diversity: {{l: 2}}}}}}}}")
    assert policy.by_name["x"].values == (
        *("no", "yes", "on", "off", "y", "010", "12:30", "1_000", "0x1F", "007.5"),
        *(1000.0, 1, -2, 0.5),
        True,
    )


def test_dates_and_very_long_numbers_stay_text() -> None:
    text = f"[2024-13-45, 2024-01-01, {'9' * 101}]"
    policy = Policy.loads(f"attributes: {{x: {{role: sensitive, domain: {text}, protect: {{diversity: {{l: 2}}}}}}}}")
    assert policy.by_name["x"].values == ("2024-13-45", "2024-01-01", "9" * 101)


@pytest.mark.parametrize(
    "text",
    [
        "attributes: {2024: {role: insensitive}, '2024': {role: insensitive}}",
        "a\0b",
        "!!int abc",
        "[" * 20_000,
        "? !!set {a}",
    ],
)
def test_what_is_no_policy(text: str) -> None:
    with pytest.raises(PolicyError, match="not valid YAML"):
        Policy.loads(text)


@pytest.mark.parametrize("value", ["[a, b]", "{a: b}", '"\\ud800"'])
def test_values_of_a_domain_are_plain(value: str) -> None:
    with pytest.raises(PolicyError, match=r"\$\.attributes\.x\.domain\[0\]"):
        Policy.loads(f"attributes: {{x: {{role: sensitive, domain: [{value}, c], protect: {{diversity: {{l: 2}}}}}}}}")


def test_a_word_for_missing_that_yaml_reads_as_nothing() -> None:
    base = "attributes: {x: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    with pytest.raises(PolicyError, match="found nothing"):
        Policy.loads(base + "\ntable: {missing-values: ['', null]}")
    assert Policy.loads(base + "\ntable: {missing-values: ['', 'null']}").table.missing_values == ("", "null")


def test_a_prior_must_not_come_from_the_records() -> None:
    assert any(
        "independent of the records" in problem
        for problem in problems_of(f"attributes: {{x: {{{CLOSE}, prior: data}}}}")
    )


def test_wrong_numbers_are_reported_beside_a_missing_distance():
    text = """
attributes:
  a: {role: sensitive, domain: [x, y, z], protect: {semantic-diversity: {l: -1, d: far}}}
  b: {role: sensitive, domain: [x, y, z], protect: {diversty: {l: 2}, closeness: {t: 7}}}
"""
    with pytest.raises(PolicyError) as caught:
        Policy.loads(text)
    places = [problem.where for problem in caught.value.problems]
    assert places == [
        "$.attributes.a.protect.semantic-diversity.l",
        "$.attributes.a.protect.semantic-diversity.d",
        "$.attributes.b.protect.diversty",
        "$.attributes.b.protect.closeness.t",
        "$.attributes.a",
    ]


def test_a_column_without_labels_is_refused_by_its_type() -> None:
    policy = Policy.loads("attributes: {x: {role: sensitive, protect: {diversity: {l: 2}}}}")
    with pytest.raises(TableError, match="values of type list cannot be in a domain"):
        resolve(policy, source(x=[["a"], ["b"]]))
