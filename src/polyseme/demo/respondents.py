"""A demonstration of a collector with simulated respondents, over real connections.

A collector is started as a user would start it, some thousand simulated devices draw their own sets and send them,
and the campaign is closed, released and reported on. The true incomes stay here to be compared with the estimates; the
collector never sees one.

Where a browser is installed, one of the respondents answers on the respondent's page.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final

from polyseme.collection.campaigns import make_campaign
from polyseme.collection.campaigns.overview import write_campaign
from polyseme.collection.operations import open_document
from polyseme.collection.releases import release_campaign
from polyseme.collection.store import State, open_store
from polyseme.demo.walkthrough import INCOME_CLASSES, income_table, with_age_bands
from polyseme.device.campaign import MEDIA_TYPE, Campaign
from polyseme.device.delivery import Direct, send
from polyseme.device.queue import Queue
from polyseme.device.reports import answer, code_of
from polyseme.kernel.errors import CollectionError
from polyseme.kernel.files import whole_folder
from polyseme.kernel.work import Cancellation
from polyseme.policy import Policy
from polyseme.release import Release
from polyseme.results.views.formats import percent
from polyseme.verbs.evaluate import evaluate
from polyseme.verbs.report import report
from polyseme.verbs.verify import verify

__all__ = ["RESPONDENTS_POLICY", "RESPONDENTS_QUESTIONS", "answer_on_the_page", "no_browser", "run_respondents"]

_PATIENCE = 30_000
"""Milliseconds for a step that takes one second on an idle machine."""


def no_browser() -> str:
    """Why the page cannot be answered here; empty where a browser and its driver are installed."""
    if _executable() is None:
        return "Chromium is not installed"
    return "" if find_spec("playwright") is not None else "Playwright, which drives the browser, is not installed"


def _executable() -> str | None:
    return os.environ.get("POLYSEME_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def answer_on_the_page(campaign: Campaign, url: str, record: Mapping[str, object]) -> Sequence[str]:
    """Open the page, answer, look at what leaves the device, and send.

    Returns the candidates that the page has shown.
    """
    from playwright.sync_api import sync_playwright

    switches = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_executable(), args=switches, timeout=_PATIENCE)
        try:
            page = browser.new_page(locale="en-GB")
            page.set_default_timeout(_PATIENCE)
            page.goto(f"{url}/c/{campaign.id}")
            page.wait_for_selector("#form")
            for number, (name, labels) in enumerate(campaign.labels.items()):
                _choose(page, number, code_of(record[name], labels))
            page.click("#onward")
            page.wait_for_selector("#send")
            shown = [text.strip() for text in page.locator("ul.set li").all_inner_texts()]
            page.click("#send")
            page.wait_for_selector("[data-state=stored]")
        finally:
            browser.close()
    return shown


def _choose(page: Any, number: int, code: int | None) -> None:
    """Short lists are buttons, long ones open."""
    button = f"#q{number}-{code}"
    if page.query_selector(button) is not None:
        page.check(button)
    else:
        page.select_option(f"#q{number}-list", str(code))


RESPONDENTS_POLICY: Final = f"""\
# Each person's income is sent as 2 classes, at least 2 classes apart. No prior is declared: what the sets protect then
# relies on no statistics that a device could not check.
about: {{title: Invented incomes, publisher: The Polyseme demo, version: 1}}   # at the head of the report
attributes:
  age: {{role: quasi-identifier, domain: [20-29, 30-39, 40-49, 50-59, 60-69]}}
  sex: {{role: quasi-identifier, domain: [F, M]}}
  income:
    role: sensitive
    domain: [{", ".join(f'"{label}"' for label in INCOME_CLASSES)}]
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: 2, d: 2}}}}
"""
"""Devices need to know which answers there are. Incomes by sex and age are too uneven for a prior on devices."""

RESPONDENTS_QUESTIONS: Final = """\
name: incomes
languages: [en, de]
title: {en: Incomes in our town, de: Einkommen in unserer Stadt}
questions:
  age: {text: {en: "How old are you?", de: "Wie alt sind Sie?"}}
  sex:
    text: {en: "What is your sex?", de: "Was ist Ihr Geschlecht?"}
    labels: {en: [female, male], de: [weiblich, männlich]}
  income:
    text: {en: "What do you earn in a year?", de: "Was verdienen Sie im Jahr?"}
    help: {en: "In million yen, before tax.", de: "In Millionen Yen, vor Steuern."}
collection:
  planned: %d
  minimum: 100
  purpose:
    en: To see how incomes go with age and sex.
    de: Um zu sehen, wie Einkommen von Alter und Geschlecht abhängen.
  contact: survey@example.org
"""

_THREADS = 8
"""Devices that send at the same time."""
_TRIES = 50
_START = 30.0
"""Seconds in which a collector must have started."""
_CONTENTS = (
    "people.parquet",
    "policy.yaml",
    "questions.yaml",
    "campaign",
    "reports.db",
    "release",
    "report.html",
)


def run_respondents(
    out: Path, devices: int = 3_000, overwrite: bool = False, cancellation: Cancellation | None = None
) -> Iterator[str]:
    """Leave a campaign, its store, release and report in `out`; say what happens."""
    cancellation = cancellation or Cancellation()
    with whole_folder(out, overwrite, _CONTENTS, cancellation) as folder:
        campaign = _campaign(folder, devices)
        yield "Campaign    age and sex are sent as they are, income as 2 classes that the device draws itself"
        yield f"            its id, which pins the document: {campaign.id}"
        people = with_age_bands(income_table(devices)).drop("id")
        people.write_parquet(folder / "people.parquet")
        address = f"sqlite:///{folder / 'reports.db'}"
        yield from _collected(folder, address, campaign, people.to_dicts(), cancellation)
        yield from _released(folder, address, campaign)
    yield f"Report      {out / 'report.html'}"


def _campaign(folder: Path, devices: int) -> Campaign:
    (folder / "policy.yaml").write_text(RESPONDENTS_POLICY, encoding="utf-8")
    (folder / "questions.yaml").write_text(RESPONDENTS_QUESTIONS % devices, encoding="utf-8")
    made = make_campaign(Policy.load(folder / "policy.yaml"), folder / "questions.yaml")
    write_campaign(made.campaign, folder / "campaign")
    return made.campaign


def _collected(
    folder: Path, address: str, campaign: Campaign, people: Sequence[Mapping[str, object]], cancellation: Cancellation
) -> Iterator[str]:
    with contextlib.closing(open_store(address)) as store:
        open_document(store, campaign.data)
    with _collector(address) as url:
        yield f"Collector   {url}/c/{campaign.id}"
        began = perf_counter()
        offline = people[: max(len(people) // 100, 2)]
        answers = _send(campaign, url, people[len(offline) :], cancellation)
        stored, again = answers[201], answers[200]
        rate = (stored + again) / (perf_counter() - began)
        yield f"Devices     {stored:,} reports stored, {rate:,.0f} a second; {again:,} sent again and counted once"
        yield from _on_a_page(campaign, url, offline[0])
        queue = Queue(folder / ".queue")
        for record in offline[1:]:
            queue.put(campaign, answer(campaign, record))
        sent = send(queue, url, wait=True)
        yield f"            {sent.stored:,} more were offline and waited on their disks until they could be sent"
    (folder / ".queue").unlink()


def _on_a_page(campaign: Campaign, url: str, record: Mapping[str, object]) -> Iterator[str]:
    """One person opens the page; where that cannot be, another device answers for them."""
    missing = no_browser()
    if not missing:
        try:
            shown = answer_on_the_page(campaign, url, record)
            yield f"            1 answered on the page, in a real browser, and saw what was sent: {' or '.join(shown)}"
            return
        except Exception as error:  # noqa: BLE001 - whatever a browser has: the crowd goes on without it
            missing = f"the browser failed ({type(error).__name__})"
    body = answer(campaign, record).body(campaign.collection.size)
    _until_stored(Direct(), f"{url}/v1/campaigns/{campaign.id}/reports", body)
    yield f"            1 answered without the page: {missing}"


def _send(
    campaign: Campaign, url: str, people: Sequence[Mapping[str, object]], cancellation: Cancellation
) -> Counter[int]:
    """How often the collector gave each answer; every fiftieth device sends twice."""
    way = Direct()

    def one(number: int) -> list[int]:
        cancellation.check()
        body = answer(campaign, people[number]).body(campaign.collection.size)
        times = 2 if number % 50 == 0 else 1
        return [_until_stored(way, f"{url}/v1/campaigns/{campaign.id}/reports", body) for _ in range(times)]

    with ThreadPoolExecutor(_THREADS) as pool:
        return Counter(status for found in pool.map(one, range(len(people))) for status in found)


def _until_stored(way: Direct, url: str, body: bytes) -> int:
    for _ in range(_TRIES):
        reply = way.post(url, body, MEDIA_TYPE)
        if reply.status in (200, 201):
            return reply.status
        if reply.status not in (429, 503):
            break
        sleep(0.1)
    raise CollectionError(f"a report was answered by status {reply.status}", "see the collector's own lines above")


@contextlib.contextmanager
def _collector(address: str) -> Iterator[str]:
    """Start a collector in its own process on free local ports; the address for respondents."""
    command = [sys.executable, "-m", "polyseme", "collect", "serve", "--store", address, "--port", "0"]
    command += ["--admin-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:  # noqa: S603
        try:
            yield _address(process)
        finally:
            process.terminate()
            # What it still says is read, so that it never waits for a reader.
            process.communicate(timeout=_START)


def _address(process: subprocess.Popen[bytes]) -> str:
    said = []
    for line in process.stderr or ():
        said.append(line.decode("utf-8", "replace"))
        found = re.search(r"Takes reports at (\S+);", said[-1])
        if found:
            return found[1]
    raise CollectionError("the collector did not start", "".join(said)[-500:])


def _released(folder: Path, address: str, campaign: Campaign) -> Iterator[str]:
    with contextlib.closing(open_store(address)) as store:
        store.move(campaign.id, State.CLOSED)
        release = release_campaign(store, campaign.id, folder / "release")
    yield f"Release     {release.manifest.records:,} records, shuffled; the campaign is closed"
    verified = verify(release)
    outcome = "all hold" if verified.holds else "VIOLATED"
    yield f"Verify      {len(verified.verdicts)} checks from the definitions: {outcome}"
    yield _compared(release, folder / "people.parquet")
    (folder / "report.html").write_text(report(release, by="sex"), encoding="utf-8")


def _compared(release: Release, people: Path) -> str:
    metrics = evaluate(release, people, of=["income"], by=["sex"]).to_dict()
    error = metrics["mse"] ** 0.5
    return f"Evaluate    income by sex is off by {percent(error)} of all people in a typical cell (no income was sent)"
