"""What predictors trained on an estimate are worth, against records written out one by one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polyseme import Policy, anonymize, evaluate
from polyseme.cli import main
from polyseme.kernel.errors import QuestionError
from polyseme.results.verification import Evaluation
from polyseme.scrutiny.metrics import learning

POLICY = """
attributes:
  age: {role: quasi-identifier, type: integer}
  sex: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [1, 2, 3, 4, 5, 6]
    distance: {line: values}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
TRUTH = np.array([[30.0, 10.0, 5.0], [5.0, 40.0, 0.0], [2.0, 8.0, 50.0], [20.0, 15.0, 15.0]])
FEATURES = {"sex": ("f", "f", "m", "m"), "age": (20, 30, 20, 30)}
PLACES = np.array([0.0, 1.0, 5.0])


def people(records: int = 4_000) -> pl.DataFrame:
    random = np.random.default_rng(3)
    age, sex = random.integers(0, 4, records), random.integers(0, 2, records)
    level = np.clip(1 + age + sex + random.integers(-1, 2, records), 1, 6)
    return pl.DataFrame({"age": 20 + 10 * age, "sex": np.where(sex == 1, "f", "m"), "level": level})


def test_the_same_table_teaches_the_same():
    pytest.importorskip("sklearn")
    for score in learning(TRUTH, TRUTH, FEATURES, PLACES).values():
        assert score.difference == 0.0
        assert score.original == score.estimate


def test_against_records_written_out():
    sklearn = pytest.importorskip("sklearn")
    from sklearn import linear_model, metrics

    assert sklearn.__version__
    estimate = TRUTH + np.array([[-8, 4, 4], [3, -6, -4], [1, 1, -2], [-3, 2, 1]])
    cell, value = np.nonzero(TRUTH)
    count = TRUTH[cell, value].astype(int)
    cells, values = np.repeat(cell, count), np.repeat(value, count)
    inputs = np.column_stack([np.eye(2)[[0, 0, 1, 1]], [-1.0, 1.0, -1.0, 1.0]])
    training = {"original": TRUTH, "estimate": np.maximum(estimate, 0)}
    found = learning(TRUTH, estimate, FEATURES, PLACES)
    for name, table in training.items():
        where = np.argwhere(table > 0)
        weight = table[table > 0]
        classifier = linear_model.LogisticRegression(max_iter=1_000).fit(inputs[where[:, 0]], where[:, 1], weight)
        line = linear_model.LinearRegression().fit(inputs[where[:, 0]], PLACES[where[:, 1]], weight)
        expected = {
            "accuracy": metrics.accuracy_score(values, classifier.predict(inputs[cells])),
            "log_loss": metrics.log_loss(values, classifier.predict_proba(inputs[cells])),
            "r2": metrics.r2_score(PLACES[values], line.predict(inputs[cells])),
            "mae": metrics.mean_absolute_error(PLACES[values], line.predict(inputs[cells])),
        }
        assert {score: getattr(found[score], name) for score in found} == pytest.approx(expected, rel=1e-6)
    shares = TRUTH.sum(axis=0) / TRUTH.sum()
    assert found["accuracy"].constant == shares.max()
    assert found["log_loss"].constant == pytest.approx(-(shares * np.log(shares)).sum())
    assert found["mae"].constant == pytest.approx(shares @ np.abs(PLACES - 1.0))
    assert found["r2"].constant == pytest.approx(0.0, abs=1e-12)


def test_one_feature_in_columns_predicts_the_largest_value_of_each_cell():
    pytest.importorskip("sklearn")
    found = learning(TRUTH * 1_000, TRUTH * 1_000, {"cell": list("abcd")}, PLACES)
    assert found["accuracy"].original == TRUTH.max(axis=1).sum() / TRUTH.sum()
    means = TRUTH @ PLACES / TRUTH.sum(axis=1)
    assert found["mae"].original == pytest.approx((TRUTH * np.abs(PLACES - means[:, None])).sum() / TRUTH.sum())


def test_a_table_that_says_the_opposite_teaches_worse():
    pytest.importorskip("sklearn")
    found = learning(TRUTH, TRUTH[::-1], FEATURES, PLACES)
    assert found["accuracy"].difference < -0.1
    assert found["log_loss"].difference > 0.1
    assert found["r2"].difference < -0.1
    assert found["mae"].difference > 0.1


def test_one_value_left_and_missing_features():
    pytest.importorskip("sklearn")
    only = np.zeros_like(TRUTH)
    only[:, 1] = 5.0
    found = learning(TRUTH, only, {"zip": ("1", None, "2", 3)})
    assert set(found) == {"accuracy", "log_loss"}
    assert found["accuracy"].estimate == TRUTH[:, 1].sum() / TRUTH.sum()
    assert np.isfinite(found["log_loss"].estimate)


@pytest.mark.parametrize(
    ("truth", "estimate", "features", "message"),
    [
        (TRUTH[None], TRUTH[None], FEATURES, "one attribute"),
        (TRUTH, TRUTH, {}, "nothing to predict from"),
        (TRUTH, -TRUTH, FEATURES, "no records"),
        (np.ones((2, 501)), np.ones((2, 501)), {"sex": ("f", "m")}, "too many"),
    ],
)
def test_questions_that_cannot_be_learned(truth, estimate, features, message):
    with pytest.raises(QuestionError, match=message):
        learning(truth, estimate, features)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(QuestionError, match=r"pip install 'polyseme\[learn\]'"):
        learning(TRUTH, TRUTH, FEATURES)


def test_evaluate_learns_only_when_asked():
    pytest.importorskip("sklearn")
    frame = people()
    release = anonymize(frame, Policy.loads(POLICY), seed=5)
    assert "learning" not in evaluate(release, frame, "level", ["age", "sex"]).to_dict()
    document = evaluate(release, frame, "level", ["age", "sex"], learn=True).to_dict()
    assert set(document["learning"]) == {"accuracy", "log_loss", "r2", "mae"}
    accuracy, r2 = document["learning"]["accuracy"], document["learning"]["r2"]
    assert accuracy["original"] > accuracy["constant"] + 0.05
    assert abs(accuracy["difference"]) < 0.05
    assert r2["original"] > 0.5
    assert abs(r2["difference"]) < 0.05
    with pytest.raises(QuestionError, match="by age,sex"):
        evaluate(release, frame, "level", learn=True)


def test_an_infinite_metric_is_no_number_in_a_document():
    infinite = Evaluation({"level": {"l1": 2.0, "kl": float("inf"), "query_error": float("nan")}})
    assert infinite.to_dict() == {
        "l1": 2.0,
        "kl": None,
        "query_error": None,
        "nonfinite": {"kl": "Infinity", "query_error": "NaN"},
        "question": "level",
    }


def test_range_queries_are_part_of_an_evaluation():
    frame = people()
    release = anonymize(frame, Policy.loads(POLICY), seed=5)
    assert 0 < evaluate(release, frame, "level", ["age", "sex"]).to_dict()["query_error"] < 0.2
    assert 0 < evaluate(release, frame, "level").to_dict()["query_error"] < 0.2


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    run(["anonymize", "policy.yaml", "people.csv", "--out", "release"])
    question = ["evaluate", "release", "--original", "people.csv", "--of", "level", "--by", "age,sex", "--learn"]
    capsys.readouterr()
    run(question)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("Predicted: level by age, sex", "accuracy", "mae", "difference"))
    run([*question, "--json"])
    assert set(json.loads(capsys.readouterr().out)["learning"]["r2"]) == {
        "original",
        "estimate",
        "difference",
        "constant",
    }


def run(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert not leaving.value.code
