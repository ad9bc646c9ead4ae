"""Formulas: the same design as patsy makes, and errors with their place."""

import re

import numpy as np
import patsy
import polars as pl
import pytest

import polyseme as ps
from polyseme.inference.regression import FormulaDesign
from polyseme.inference.regression.formula import Frame, Variable, parse_condition, parse_formula
from polyseme.kernel.errors import QuestionError

N = 60


def columns():
    rng = np.random.default_rng(5)
    data = {"x": rng.normal(size=N), "z": rng.integers(1, 5, N).astype(float), "y": rng.normal(size=N)}
    return data, {"g": rng.choice(["a", "b", "c"], N), "h": rng.choice(["u", "v"], N)}


def frame():
    numbers, texts = columns()
    variables = {name: Variable(name, None, values) for name, values in numbers.items()}
    for name, values in texts.items():
        labels, codes = np.unique(values, return_inverse=True)
        variables[name] = Variable(name, None, None, codes, tuple(map(str, labels)))
    return Frame(variables, (), tuple(variables))


@pytest.mark.parametrize(
    "terms",
    ["x + z", "x*g", "g*h", "x:g", "g:h + x", "C(z) + x", "I(x**2) + log(z)", "g + h - 1", "x*g*h", "(x + z):h",
     "x + z + x:z - z", "0 + g", "g*h - g:h", "x*(g + h)", "g:x + g"],
)  # fmt: skip
def test_the_design_is_that_of_patsy(terms):
    numbers, texts = columns()
    formula, problems = parse_formula(f"y ~ {terms}")
    assert not problems
    design = FormulaDesign(formula, frame(), N)
    wanted = patsy.dmatrix(terms.replace("log(", "np.log("), {**numbers, **texts})
    made = design.matrix(slice(None))[:, 0]
    # The same columns span the same space, however they are coded, and there are as many of them.
    assert made.shape == wanted.shape
    both = np.column_stack([made, np.asarray(wanted)])
    assert np.linalg.matrix_rank(both) == np.linalg.matrix_rank(made) == wanted.shape[1]
    plain = [re.sub(r"np\.float64\((\d)\.0\)", r"\1", name) for name in wanted.design_info.column_names]
    names = {name.replace("np.log", "log") for name in plain}
    assert set(design.names) == names


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("x > 0 and g == 'a'", lambda d: (d["x"] > 0) & (d["g"] == "a")),
        ("g in ('a', \"b\") or not z >= 3", lambda d: np.isin(d["g"], ["a", "b"]) | ~(d["z"] >= 3)),
        ("1 < z <= 3", lambda d: (d["z"] > 1) & (d["z"] <= 3)),
        ("g != 'c' and h not in ('u',)", lambda d: (d["g"] != "c") & (d["h"] != "u")),
        ("x * 2 - 1 > -z", lambda d: d["x"] * 2 - 1 > -d["z"]),
    ],
)
def test_conditions(condition, wanted):
    numbers, texts = columns()
    found = parse_condition(condition)
    assert not found.problems(frame(), "where", "truth")
    np.testing.assert_array_equal(found.values(frame(), slice(None))[:, 0] != 0, wanted({**numbers, **texts}))


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("y", "formula", "no '~'"),
        ("y ~ x ~ z", "character 7", "more than one"),
        (" ~ x", "character 1", "outcome"),
        ("y ~ x +", "character 8", "missing"),
        ("y ~ x + z z", "character 11", "cannot be read"),
        ("y ~ x/z", "character 5", "I( )"),
        ("y ~ x + 3", "character 9", "constant"),
        ("y ~ .", "character 5", "all columns"),
        ("y ~ x**2", "character 5", "I( )"),
    ],
)
def test_what_is_wrong_with_the_form_has_its_place(text, place, words):
    try:
        problems = parse_formula(text)[1]
    except QuestionError as error:
        problems = error.problems
    (problem,) = problems
    assert place in problem.where
    assert words in problem.what


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("y ~ x + ge", "character 9", "no column 'ge'"),
        ("y ~ I(g * 2)", "character 7", "used as a number"),
        ("y ~ g > 'a'", "character 5", "no order"),
        ("y ~ g == 'q'", "character 10", "'q' is not a value"),
        ("y ~ sin(x)", "character 5", "not a function"),
        ("y ~ C(x, z)", "character 5", "one argument"),
        ("y ~ I(x & z)", "character 7", "operator"),
        ("y ~ I(x.real)", "character 7", "not part of a formula"),
        ("y ~ I((lambda: x)())", "character 7", "not a function"),
        ("y ~ I(__import__('os'))", "character 7", "not a function"),
        ("y ~ I([x for x in z])", "character 7", "not part of a formula"),
    ],
)
def test_what_is_wrong_with_the_words_has_its_place(text, place, words):
    formula, problems = parse_formula(text)
    assert not problems
    found = [problem for each in formula.expressions for problem in each.problems(frame(), "formula")]
    assert place in found[0].where
    assert words in found[0].what


def test_names_in_backticks_and_long_formulas():
    formula, problems = parse_formula("`a-b c` ~ `é ü`*x + I(`a-b c`**2)")
    assert not problems
    assert formula.names == ("a-b c", "é ü", "x")
    with pytest.raises(QuestionError, match="longer than"):
        parse_formula("y ~ " + "(" * 10_000)
    with pytest.raises(QuestionError, match="expected a text"):
        parse_formula(3)


def test_everything_that_is_wrong_is_said_at_once():
    policy = (
        "attributes:\n  s: {role: insensitive}\n  v: {role: sensitive, domain: [1, 2, 3], protect: {diversity: {l: 2}}}"
    )
    release = ps.anonymize(pl.DataFrame({"s": ["a", "b"] * 30, "v": [1, 2, 3] * 20}), policy, seed=1)
    with pytest.raises(QuestionError) as caught:
        ps.regress(release, "v ~ q + s + 3 + I(s*2)", where='s == "x" and r > 1', family="probit", level=2)
    text = str(caught.value)
    for part in (
        "probit",
        "level",
        "constant",
        "no column 'q'",
        "'s' is used as a number",
        "'x' is not",
        "no column 'r'",
    ):
        assert part in text
