/** The analyst's view: how campaigns stand, what can be expected, and what came of them. It shows no respondent's answer. */

import { NotAllowed, campaigns, estimates, precision, token } from "./api.js";
import { percent, progress, sharesChart, sharesTable } from "./charts.js";
import { h } from "./dom.js";

/**
 * @typedef {import("./api.js").Standing} Standing
 * @typedef {import("./api.js").Precision} Precision
 * @typedef {import("./api.js").Shares} Shares
 */

/** Rows of a chart that are shown at first. */
const FIRST = 15;
const EVERY = 15e3;
const WORDS = { draft: "Draft", open: "Open", closed: "Closed", released: "Released", purged: "Purged" };

/** @param {string} id @returns {HTMLElement} */
const found = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} text */
const announce = (text) => (found("announcer").textContent = text);
/** @param {number} number */
const count = (number) => number.toLocaleString("en");

/** What is on the screen, by campaign, so that only what changed is redrawn. @type {Map<string, string>} */
const shown = new Map();

function signIn(problem = "") {
  shown.clear();
  found("tools").hidden = true;
  const error = h("p", { class: "error", id: "token-error", role: "alert" }, problem);
  const input = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", "aria-describedby": "token-help token-error", required: true });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    token.set(input.value.trim());
    load();
  };
  found("main").replaceChildren(
    h(
      "form",
      { class: "sign-in", submit, novalidate: true },
      h("h1", {}, "Sign in"),
      h("label", { for: "token" }, "Access token"),
      h("p", { class: "help", id: "token-help" }, "From ", h("code", {}, "polyseme collect token"), ". It is kept until this tab is closed."),
      error,
      input,
      h("button", { class: "primary" }, "Sign in"),
    ),
  );
  input.focus();
}

async function load(quiet = false) {
  if (!token.get()) return signIn();
  try {
    const all = await campaigns();
    await draw(all);
    if (!quiet) announce(`${all.length} campaigns`);
  } catch (error) {
    if (error instanceof NotAllowed) {
      token.clear();
      return signIn("This token is not known here.");
    }
    if (!quiet || !shown.size) fail(/** @type {Error} */ (error).message);
  }
}

/** @param {string} text */
function fail(text) {
  shown.clear();
  found("tools").hidden = false;
  found("main").replaceChildren(h("h1", {}, "Campaigns"), h("p", { class: "error", role: "alert" }, text));
}

/** @param {Standing[]} all */
async function draw(all) {
  found("tools").hidden = false;
  const order = ["open", "closed", "released", "draft", "purged"];
  all.sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state) || one.name.localeCompare(other.name));
  if (!document.getElementById("list")) {
    shown.clear();
    found("main").replaceChildren(h("h1", { id: "heading" }, "Campaigns"), h("div", { id: "list" }));
  }
  const list = found("list");
  if (!all.length) list.replaceChildren(h("p", { class: "quiet" }, "There is no campaign yet. Open one with ", h("code", {}, "polyseme collect open"), "."));
  for (const one of all) {
    const now = JSON.stringify(one);
    if (shown.get(one.id) === now) continue;
    shown.set(one.id, now);
    const card = await campaignCard(one);
    const before = document.getElementById(card.id);
    if (before) before.replaceWith(card);
    else list.append(card);
  }
}

/** @param {Standing} one */
async function campaignCard(one) {
  const gone = one.state === "purged";
  const known = gone ? null : await precision(one.id);
  const facts = [
    ["Reports", count(one.reports)],
    ["Minimum", count(one.minimum)],
    ["Planned", count(one.planned)],
    ["Withdrawn", count(one.withdrawn)],
    ...(one.tokens === "none" ? [] : [["Invitations used", `${count(one.spent)} of ${count(one.invited)}`]]),
    ["Wave", count(one.wave)],
  ];
  const ended = one.state === "closed" || one.state === "released";
  return h(
    "section",
    { class: "card", id: `campaign-${one.id}`, "data-state": one.state, "aria-labelledby": `name-${one.id}` },
    h(
      "div",
      { class: "title" },
      h("h2", { id: `name-${one.id}` }, one.name),
      h("span", { class: `badge ${one.state}` }, /** @type {Record<string, string>} */ (WORDS)[one.state] ?? one.state),
      h("code", { class: "quiet id", title: one.id }, `${one.id.slice(0, 12)}…`),
    ),
    h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    !gone && progress(one.reports, one.minimum, one.planned),
    !gone && h("p", { class: "help" }, verdictOn(one)),
    known && expectedTable(known),
    known && ended && one.enough && results(one, known),
  );
}

/** @param {Standing} one */
function verdictOn({ enough, state, reports, minimum, planned, tokens }) {
  const reached = enough
    ? "The minimum is reached: the campaign may be released once it is closed."
    : `${count(minimum - reports)} more reports are needed before anything may be released.`;
  const few = "Too few reports came in: nothing of this campaign may be released.";
  const left = reports < planned && state === "open" ? ` ${percent(reports / planned, 0)} of the plan.` : "";
  const people = tokens === "none" ? " Nothing keeps a person from reporting twice: these are reports, not people." : "";
  return (state === "open" || state === "draft" ? reached : enough ? "The minimum was reached." : few) + left + people;
}

/** @param {Precision} known */
function expectedTable({ columns, reports, planned }) {
  const points = (/** @type {number | null} */ error) => (error === null ? "not known" : `± ${(100 * error).toFixed(error < 0.001 ? 2 : 1)}`);
  const rows = columns.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, one.question),
      h("td", { class: "number" }, reports ? points(one.now) : "no reports"),
      h("td", { class: "number" }, points(one.planned)),
      h("td", { class: "number" }, one.promised === null ? "none" : percent(one.promised)),
      h("td", { class: "number wide" }, count(one.values)),
      h("td", { class: "number wide" }, count(one.l)),
    ),
  );
  const head = ["Question", `Error now (${count(reports)})`, `At plan (${count(planned)})`, "Promised at most", "Values", "Set of"];
  const table = h(
    "table",
    { "aria-label": "Expected errors" },
    h("thead", {}, h("tr", {}, ...head.map((text, at) => h("th", { scope: "col", class: ["", "number", "number wide"][Number(at > 0) + Number(at > 3)] || undefined }, text)))),
    h("tbody", {}, ...rows),
  );
  return h(
    "div",
    { class: "expected" },
    h("p", { class: "help" }, "Expected error of a share, in percentage points (root mean square), and how often a guess at an answer may be right"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Expected errors" }, table),
  );
}

/** The estimates, one column at a time. @param {Standing} one @param {Precision} known */
function results({ id }, { columns, open }) {
  const area = h("div", { class: "result" });
  const of = h("select", { id: `of-${id}`, change: () => ask() }, ...columns.map(({ name, question }) => h("option", { value: name }, question)));
  const by = h(
    "select",
    { id: `by-${id}`, change: () => ask() },
    h("option", { value: "" }, "everyone"),
    ...open.map(({ name, question }) => h("option", { value: name }, question)),
  );
  async function ask() {
    area.replaceChildren(h("p", { class: "quiet", role: "status" }, "Estimating …"));
    try {
      area.replaceChildren(shares(await estimates(id, of.value, by.value)));
    } catch (error) {
      if (error instanceof NotAllowed) return signIn("This token is not known here.");
      area.replaceChildren(h("p", { class: "error", role: "alert" }, /** @type {Error} */ (error).message));
    }
  }
  ask();
  return h(
    "div",
    { class: "results" },
    h("h3", {}, "Estimates"),
    h("div", { class: "choices" }, h("label", { for: of.id }, "Question"), of, h("label", { for: by.id }, "Broken down by"), by),
    area,
  );
}

/** @param {Shares} found */
function shares(found) {
  const all = found.labels.map((_, code) => code);
  const mean = (/** @type {number} */ code) =>
    found.groups.reduce((sum, group) => sum + (group.share[code] ?? 0) * group.records, 0);
  // What lies on a line or a circle is read in that order.
  if (!found.ordered) all.sort((one, other) => mean(other) - mean(one));
  let most = found.ordered ? all.length : FIRST;
  const picture = h("div", { class: "picture" });
  const table = h("div", {});
  const more = h("button", { type: "button", click: () => ((most = all.length), render()) }, `Show all ${count(all.length)}`);
  let width = 0;
  function render() {
    const codes = all.slice(0, most);
    if (width) picture.replaceChildren(sharesChart(found, codes, width));
    table.replaceChildren(sharesTable(found, codes));
    more.hidden = most >= all.length;
  }
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.floor(contentRect.width) === width) return;
    width = Math.floor(contentRect.width);
    render();
  }).observe(picture);
  const notes = found.notes.map((note) => h("li", {}, note));
  return h(
    "div",
    {},
    h("p", { class: "help" }, `Share of ${count(found.records)} reports; the bars are ${percent(found.level, 0)} intervals. Estimator: ${found.estimator}.${found.ordered ? "" : " Largest share first."}`),
    picture,
    more,
    h("details", {}, h("summary", {}, "The same as a table"), table),
    notes.length > 0 && h("ul", { class: "notes", "aria-label": "Notes" }, ...notes),
  );
}

found("refresh").addEventListener("click", () => load());
found("leave").addEventListener("click", () => (token.clear(), signIn()));
setInterval(() => document.visibilityState === "visible" && token.get() && load(true), EVERY);
load();
