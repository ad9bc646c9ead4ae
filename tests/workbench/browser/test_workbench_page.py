"""The whole way in a real browser: from a table to a release that verifies, and what can go wrong on it."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench import Served

import polyseme as ps

pytestmark = [pytest.mark.browser, pytest.mark.lane]

NewPage = Callable[..., Any]
Start = Callable[..., Served]


def opened(page: Any, bench: Served, screen: str = "columns") -> Any:
    """The page of a workbench whose table has been counted."""
    page.goto(bench.address)
    page.wait_for_selector("text=records are unique")
    return at(page, bench, screen)


def at(page: Any, bench: Served, screen: str) -> Any:
    page.goto(f"{bench.url}#/{screen}")
    page.wait_for_selector(f".steps a[href='#/{screen}'][aria-current]")
    return page


def policy(folder: Path) -> Any:
    return yaml.safe_load((folder / "policy.yaml").read_text(encoding="utf-8"))


def saved(page: Any) -> None:
    page.wait_for_selector(".saved:has-text('changed')")


def promise(folder: Path) -> Any:
    return policy(folder)["attributes"]["diagnosis"]["protect"]["semantic-diversity"]


def test_first_release_without_typing_yaml(folder: Path, start: Start, new_page: NewPage) -> None:
    """By keyboard: Tab and Enter along the way that the page proposes."""
    bench = start("patients.csv")
    page = opened(new_page(), bench, "table")
    for screen, next_to in (("table", "columns"), ("columns", "protection"), ("protection", "release")):
        page.wait_for_selector(f"a.button.primary[href='#/{next_to}']")
        page.focus(f"a.button.primary[href='#/{next_to}']")
        page.keyboard.press("Enter")
        page.wait_for_selector(f".steps a[href='#/{next_to}'][aria-current]")
        assert page.evaluate("document.activeElement.id") == "heading", f"after {screen}"
    page.focus("#make")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The release is in the folder")
    page.focus("a.button.primary[href='#/results']")
    page.keyboard.press("Enter")
    page.focus("#verify")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Every promise holds.")
    assert ps.verify(folder / "release").holds
    assert page.evaluate("localStorage.length") == 1
    assert bench.token not in page.url


def test_role_changes_the_policy(folder: Path, start: Start, new_page: NewPage) -> None:
    page = opened(new_page(), start("patients.csv"))
    page.select_option("#role-postcode", "sensitive")
    saved(page)
    assert policy(folder)["attributes"]["postcode"]["role"] == "sensitive"
    assert "protect" in policy(folder)["attributes"]["postcode"]
    assert "polyseme policy role policy.yaml postcode sensitive" in page.inner_text("#receipt")
    page.keyboard.press("Escape")
    page.click("#undo")
    page.wait_for_selector("#redo:enabled")
    assert policy(folder)["attributes"]["postcode"]["role"] == "quasi-identifier"


def test_sliders_live_and_saved_once(folder: Path, start: Start, new_page: NewPage) -> None:
    page = opened(new_page(), start("patients.csv"), "protection")
    page.wait_for_selector("#l-diagnosis")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # Moving asks, letting go decides.
    slider = page.locator("#l-diagnosis")
    slider.evaluate(
        "(it) => { for (const v of [4, 5, 6, 5, 4]) { it.value = v; it.dispatchEvent(new Event('input')); } }"
    )
    page.wait_for_timeout(500)
    assert promise(folder)["l"] == 3
    slider.evaluate("(it) => it.dispatchEvent(new Event('change'))")
    saved(page)
    assert promise(folder)["l"] == 4
    assert sum(url.endswith("/api/edits") for url in asked) == 1
    assert sum(url.endswith("/api/what-if") for url in asked) <= 4
    assert all(url.startswith("http://127.0.0.1:") for url in asked)


def test_quick_keys_do_not_conflict(folder: Path, start: Start, new_page: NewPage) -> None:
    page = opened(new_page(), start("patients.csv"), "protection")
    page.wait_for_selector("#l-diagnosis")
    page.focus("#l-diagnosis")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(2_000)
    page.wait_for_selector(".saved:has-text('changed')")
    assert promise(folder)["l"] == 7
    assert page.locator("#notice").count() == 0


def test_impossible_setting_offers_nearest(folder: Path, start: Start, new_page: NewPage) -> None:
    bench = start("patients.csv")
    page = opened(new_page(), bench, "columns")
    ps.edit(folder / "policy.yaml", {"attributes.diagnosis.protect.semantic-diversity.d": 9})
    at(page, bench, "protection")
    page.wait_for_selector(".light.red button")
    page.click(".light.red button >> nth=0")
    page.wait_for_selector(".light.amber, .light.green")
    assert promise(folder)["d"] < 9


def test_never_green_when_a_learner_wins(start: Start, new_page: NewPage) -> None:
    page = opened(new_page(), start("patients.csv"), "protection")
    page.wait_for_selector(".light.amber")
    assert "You have not set a limit" in page.inner_text("#light")
    assert page.locator("#limit-diagnosis").is_disabled()
    assert "A limit needs public statistics" in page.inner_text("main")
    # The next step is a button: public statistics first, then the limit.
    page.click("#step-0")
    page.wait_for_selector("text=Set the limit for diagnosis")
    page.click("#step-0")
    page.wait_for_selector("text=Your limit is")
    assert page.locator(".light.amber button").count() > 0


def test_second_tab_and_an_editor_beside_it(folder: Path, start: Start, new_page: NewPage) -> None:
    bench = start("patients.csv")
    one, other = opened(new_page(), bench, "protection"), new_page()
    at(other, bench, "protection")
    one.wait_for_selector("#k")
    one.click("#k-more")
    saved(one)
    other.wait_for_selector(".dial:has(#k) output:has-text('at least 6')")
    text = (folder / "policy.yaml").read_text(encoding="utf-8")
    (folder / "policy.yaml").write_text(text.replace("k: 6", "k: 9"), encoding="utf-8")
    one.wait_for_selector(".dial:has(#k) output:has-text('at least 9')")


def test_cancel_leaves_nothing_and_a_reload_changes_nothing(folder: Path, start: Start, new_page: NewPage) -> None:
    import polars as pl

    table = pl.read_csv(folder / "patients.csv")
    pl.concat([table] * 300).write_csv(folder / "large.csv")
    page = opened(new_page(), start("large.csv"), "release")
    before = {path.name for path in folder.iterdir()}
    page.click("#make")
    page.wait_for_selector("#cancel")
    page.reload()
    page.click("#cancel")
    page.wait_for_selector("text=Canceled. Nothing was written.")
    until = time.monotonic() + 30
    while {path.name for path in folder.iterdir()} != before and time.monotonic() < until:
        time.sleep(0.2)
    assert {path.name for path in folder.iterdir()} == before


def test_refused_release_then_accepted(folder: Path, start: Start, new_page: NewPage) -> None:
    bench = start("patients.csv")
    page = opened(new_page(), bench, "columns")
    ps.edit(folder / "policy.yaml", remove=["method"])
    at(page, bench, "release").click("#make")
    page.wait_for_selector("text=Not released. Nothing was written.")
    assert not (folder / "release").exists()
    page.check("#accept")
    page.click("#anyway")
    page.wait_for_selector("text=The release is in the folder")
    assert (folder / "release" / "manifest.json").is_file()


def test_downloads_open_and_verify(folder: Path, start: Start, new_page: NewPage, tmp_path: Path) -> None:
    bench = start("patients.csv")
    page = opened(new_page(), bench, "release")
    page.click("#make")
    page.wait_for_selector("text=The release is in the folder")
    at(page, bench, "download")
    with page.expect_download() as packed:
        page.click("#download-release")
    packed.value.save_as(tmp_path / "release.zip")
    zipfile.ZipFile(tmp_path / "release.zip").extractall(tmp_path / "unpacked")
    assert ps.verify(tmp_path / "unpacked" / "release").holds
    page.click("#report")
    page.wait_for_selector("#download-report:enabled")
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_restart_of_the_server_is_told(start: Start, new_page: NewPage) -> None:
    bench = start("patients.csv")
    page = opened(new_page(), bench)
    bench.stop()
    page.wait_for_selector("text=The workbench has stopped.")
    start("patients.csv", port=bench.port)
    page.click("text=Try again")
    page.wait_for_selector("text=This page belongs to a workbench that has ended.")


def test_true_values_are_marked_internal(start: Start, new_page: NewPage) -> None:
    bench = start("patients.csv")
    page = opened(new_page(), bench, "columns")
    page.wait_for_selector("#role-age")
    assert page.locator(".internal").count() == 1
    assert at(page, bench, "release").locator(".internal").count() == 0
    page.emulate_media(media="print")
    at(page, bench, "columns").wait_for_selector("#role-age")
    assert page.locator(".internal").is_visible()
    assert page.locator(".printed").is_visible()
    assert not page.locator("#undo").is_visible()


def test_odd_tables(folder: Path, start: Start, new_page: NewPage) -> None:
    (folder / "empty.csv").write_text("", encoding="utf-8")
    header = ",".join(f"column {number}" for number in range(300))
    rows = "\n".join(",".join(str((row * number) % 7) for number in range(300)) for row in range(60))
    (folder / "wide.csv").write_text(f"{header}\n{rows}\n", encoding="utf-8")
    bench = start()
    page = new_page()
    page.goto(bench.address)
    page.click("[id='open-empty.csv']")
    page.wait_for_selector("text=empty.csv cannot be read.")
    page.click("[id='open-wide.csv']")
    page.wait_for_selector("text=First rows, text=The first rows")
    at(page, bench, "columns").wait_for_selector("[id='role-column 299']")
    page.fill("#filter", "column 299")
    assert page.locator("tbody tr").count() == 1


@pytest.mark.parametrize("width", [1300, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_everywhere(width: int, scheme: str, start: Start, new_page: NewPage) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    bench = start("patients.csv")
    page = opened(new_page(width, scheme), bench, "release")
    page.click("#make")
    page.wait_for_selector("text=The release is in the folder")
    found = {}
    for screen in ("table", "columns", "values", "protection", "alternatives", "release", "results", "download"):
        at(page, bench, screen)
        if screen == "protection":
            page.wait_for_selector(".attackers")
            page.wait_for_selector("#outlook:not(.old)")
        if screen == "results":
            page.click("#count")
            page.wait_for_selector(".estimates")
        page.wait_for_timeout(300)
        violations = (
            axe.Axe()
            .run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
            .response["violations"]
        )
        found[screen] = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in violations]
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{screen} is {wide} px wide"
    assert not any(found.values()), found
