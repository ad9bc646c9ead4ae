"""Plugins: the package of docs/plugins.md, installed for real, and packages that are broken in every way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polyseme.inference.base import Estimator
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.errors import PluginError, PolysemeError
from polyseme.kernel.plugins import Registry
from polyseme.models import MODELS, Model
from polyseme.semantics.distances.registry import KINDS, Kind

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)


def install(folder: Path, package: str, code: str, groups: dict[str, dict[str, str]]) -> None:
    """What an installer leaves behind: a module, and metadata with its entry points."""
    (folder / f"{package}.py").write_text(code, encoding="utf-8")
    metadata = folder / f"{package}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n", encoding="utf-8")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the documentation in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = BLOCK.findall(text)
    (code,) = [block for language, block in found if language == "python" and "class HammingDistance" in block]
    (entries,) = [tomllib.loads(block)["project"]["entry-points"] for language, block in found if language == "toml"]
    install(folder, "far_codes", code, entries)
    return folder


USE = """
import sys
import polars as pl
import polyseme as ps
from polyseme.testing import check_distance, check_model
from polyseme.models import MODELS, check_models

codes = [a + b + c for a in "AB" for b in "AB" for c in "AB"]
table = pl.DataFrame({"town": [n % 3 for n in range(2400)], "gene": [codes[n * n % 8] for n in range(2400)]})
policy = ps.Policy.loads('''
attributes:
  town: {role: quasi-identifier}
  gene:
    role: sensitive
    domain: [AAA, AAB, ABA, ABB, BAA, BAB, BBA, BBB]
    distance: {hamming: codes}
    protect: {semantic-diversity: {l: 2, d: 2}}
''')
assert "far_codes" not in sys.modules
release = ps.anonymize(table, policy, OUT)
opened = ps.Release.open(OUT)
assert opened.manifest.sets[0].attribute.distance.kind == "hamming"
assert ps.verify(opened).holds
estimate = ps.estimate(opened, of=["gene"], by=["town"], estimator="clipped")
assert estimate.estimator == "clipped" and estimate.values.min() >= 0, estimate
assert round(estimate.values.sum()) == 2400
(verdict,) = check_models(table, ["town"], [{"majority": {"share": 0.9}}], sensitive=["gene"])
assert verdict.holds and verdict.model == "majority"
check_distance(opened.manifest.sets[0].attribute.distance)
check_model(MODELS["majority"], [{"share": share} for share in (1.0, 0.5, 0.1)])
"""


def test_the_package_of_the_documentation_goes_the_whole_way(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(installed)])}
    program = USE.replace("OUT", repr(str(tmp_path / "release")))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_release_whose_plugin_is_not_installed_says_so(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(installed)])}
    program = USE.replace("OUT", repr(str(tmp_path / "release"))).partition("opened =")[0]
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    import polyseme as ps

    with pytest.raises(PolysemeError, match=r"unknown distance 'hamming': .* no installed plugin provides it"):
        ps.Release.open(tmp_path / "release")


Installer = Callable[..., None]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installer]:
    """Installs packages into a folder on the path of this process, and forgets them afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def add(package: str, code: str, **entries: str) -> None:
        install(tmp_path, package, code, {"polyseme.estimators": {k: f"{package}:{v}" for k, v in entries.items()}})

    yield add
    for name in set(sys.modules) - before:
        del sys.modules[name]


def estimators() -> Registry[Estimator]:
    """The registry as a new process has it."""
    builtin = {name: ESTIMATORS[name] for name in ("ml", "inverse")}
    return Registry[Estimator]("polyseme.estimators", builtin, Estimator, ESTIMATORS._flaw)  # type: ignore[type-abstract]


FINE = """
from polyseme.inference.sets.linear import Inverse
class Mine(Inverse):
    name = "mine"
it = Mine()
"""


def test_a_plugin_is_known_by_its_name_and_imported_when_it_is_used(packages: Installer) -> None:
    packages("good", FINE, mine="it")
    known = estimators()
    assert known["ml"] is ESTIMATORS["ml"]
    assert list(known) == ["ml", "inverse", "mine"]
    assert len(known) == 3
    assert "mine" in known
    assert "other" not in known
    assert "good" not in sys.modules
    assert known["mine"].name == "mine"
    assert known["mine"] is known["mine"]
    with pytest.raises(KeyError):
        known["other"]


@pytest.mark.parametrize(
    ("code", "entries", "said"),
    [
        ("import nowhere_to_be_found", {"mine": "it"}, "cannot be imported: ModuleNotFoundError"),
        ("raise OSError('no license')", {"mine": "it"}, "cannot be imported: OSError: no license"),
        ("", {"mine": "it"}, "cannot be imported: AttributeError"),
        ("it = 5", {"mine": "it"}, "is a int, but an instance of Estimator was expected"),
        (FINE, {"mine": "Mine"}, "is the class Mine, but an instance of Estimator was expected"),
        (FINE, {"yours": "it"}, "calls itself 'mine'"),
    ],
)
def test_a_broken_plugin_names_its_package(packages: Installer, code: str, entries: dict[str, str], said: str) -> None:
    packages("broken", code, **entries)
    known = estimators()
    assert known["inverse"].name == "inverse"
    with pytest.raises(PluginError, match=re.escape(said)) as error:
        known[next(iter(entries))]
    assert "package 'broken' 1.2" in str(error.value)
    assert error.value.problems[0].hint


def test_a_built_in_name_cannot_be_taken(packages: Installer) -> None:
    packages("greedy", FINE, ml="it")
    known = estimators()
    assert known["ml"] is ESTIMATORS["ml"]
    with pytest.raises(PluginError, match=r"package 'greedy' 1.2 has the name of a built-in one"):
        list(known)
    assert "greedy" not in sys.modules


def test_a_name_that_two_packages_claim_is_refused(packages: Installer) -> None:
    packages("first", FINE, mine="it")
    packages("second", FINE, mine="it", other="it")
    known = estimators()
    assert "mine" in known
    with pytest.raises(PluginError, match=r"several packages register this name: 'first' 1.2, 'second' 1.2"):
        known["mine"]


def test_a_model_of_a_plugin_is_about_an_attribute() -> None:
    assert MODELS._flaw("mine", Model("mine", (), about=False))
    assert MODELS._flaw("mine", Model("mine", ()))
    assert not MODELS._flaw("diversity", MODELS["diversity"])


def test_built_in_names_look_for_no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise AssertionError("plugins were looked for")

    monkeypatch.setattr("polyseme.kernel.plugins.entry_points", refuse)
    known = estimators()
    assert known["ml"].name == "ml"
    assert "inverse" in known
    assert isinstance(KINDS["line"], Kind)
