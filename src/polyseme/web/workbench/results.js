/** What the release shows: its checks in words, numbers with intervals, and attacks. */

import { get, post } from "./api.js";
import { app, receiptOf, render as again, show } from "./app.js";
import { estimatesChart } from "./charts.js";
import { h } from "../admin/dom.js";
import { count, percent } from "./words.js";

export const heading = "What the release shows";
export const internal = () => Boolean(app.memory.estimate?.truth);

/** Run a command and remember what it found. @param {string} kind @param {Record<string, any>} [more] */
async function run(kind, more = {}) {
  try {
    const { job, receipt } = await post("jobs", { kind, ...more });
    receiptOf(receipt);
    app.memory[kind] = { state: "running" };
    again();
    for (;;) {
      const { job: now, result } = await get(`jobs/${job.id}`);
      if (!["waiting", "running"].includes(now.state)) {
        app.memory[kind] = { state: now.state, result, messages: now.messages, made: app.state.release.revision };
        return again();
      }
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  } catch (error) {
    show(error);
  }
}

function checks() {
  const held = app.memory.verify;
  if (!held) return h("p", {}, h("button", { id: "verify", class: "primary", click: () => void run("verify") }, "Check the release"));
  if (held.state === "running") return h("p", {}, "Checking");
  const found = held.result;
  if (!found) return h("pre", {}, held.messages.join("\n"));
  const rows = found.verdicts.map((/** @type {any} */ one) => h("tr", {}, h("th", { scope: "row" }, one.words ?? one.model), h("td", { "data-label": "Column" }, one.attribute ?? ""), h("td", { "data-label": "Holds" }, h("span", { class: one.holds ? "good" : "bad" }, one.holds ? "✓ holds" : "✗ violated"))));
  return h(
    "div",
    {},
    h("section", { class: `light ${found.holds ? "green" : "red"}` }, h("p", {}, h("strong", {}, found.holds ? "Every promise holds." : "A promise is violated."), found.seeded && " Made with a seed: not for publication.")),
    h("table", { class: "blocks" }, h("thead", {}, h("tr", {}, ...["Check", "Column", "Holds"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows)),
  );
}

function numbers() {
  const attributes = Object.entries(app.state.policy.document?.attributes ?? {});
  const roles = (/** @type {string[]} */ ...wanted) => attributes.filter(([, entry]) => wanted.includes(/** @type {any} */ (entry)?.role)).map(([name]) => name);
  const secrets = roles("sensitive", "sensitive-qid");
  if (!secrets.length) return null;
  const chosen = (app.memory.question ??= { of: secrets[0], by: "", truth: false });
  const ask = () => {
    const query = new URLSearchParams({ of: chosen.of, by: chosen.by, truth: chosen.truth ? "yes" : "no" });
    void get(`estimate?${query}`).then((found) => ((app.memory.estimate = found), receiptOf(found.receipt), again()), show);
  };
  const select = (/** @type {string} */ id, /** @type {string[]} */ names, /** @type {"of" | "by"} */ key) =>
    h("select", { id, change: (/** @type {Event} */ event) => ((chosen[key] = /** @type {HTMLSelectElement} */ (event.target).value), ask()) }, key === "by" && h("option", { value: "" }, "nothing"), ...names.map((name) => h("option", { value: name, selected: name === chosen[key] }, name)));
  const tick = h("input", { type: "checkbox", id: "truth", change: (/** @type {Event} */ event) => ((chosen.truth = /** @type {HTMLInputElement} */ (event.target).checked), ask()) });
  tick.checked = chosen.truth;
  const found = app.memory.estimate;
  return h(
    "section",
    { class: "card", "aria-labelledby": "numbers" },
    h("h2", { id: "numbers" }, "Numbers that a reader can recover"),
    h("p", { class: "row" }, h("label", { for: "of" }, "Count"), select("of", secrets, "of"), h("label", { for: "by" }, "by"), select("by", roles("quasi-identifier", "insensitive"), "by"), h("button", { id: "count", click: ask }, "Show"), tick, h("label", { for: "truth" }, "the truth beside them, for your eyes only")),
    found && estimatesChart(found.cells.slice(0, 200), found.of, found.by, found.truth),
    found && found.notes.length > 0 && h("ul", { class: "quiet" }, ...found.notes.map((/** @type {string} */ text) => h("li", {}, text))),
    found && h("p", { class: "quiet" }, `${count(found.records)} records; ${percent(found.level, 0)} intervals; estimator ${found.estimator}.`),
  );
}

function attacks() {
  const held = app.memory.attack;
  if (!held) return h("p", {}, h("button", { id: "attack", click: () => void run("attack", { truth: true }) }, "Run the attacks"));
  if (held.state === "running") return h("p", {}, "Attacking the release");
  if (!held.result) return h("pre", {}, held.messages.join("\n"));
  const rows = held.result.findings.map((/** @type {any} */ one) => h("tr", {}, h("th", { scope: "row" }, one.words ?? one.attack), h("td", { "data-label": "Column" }, one.attribute ?? ""), h("td", { class: "number", "data-label": "Success" }, percent(one.success)), h("td", { class: "number", "data-label": "Bound" }, one.bound === null ? "–" : percent(one.bound)), h("td", {}, one.exceeded ? h("span", { class: "bad" }, "✗ exceeded") : h("span", { class: "quiet" }, one.bound === null ? "no bound" : "within"))));
  return h("table", { class: "blocks" }, h("caption", {}, "Attacks, judged by the original table"), h("thead", {}, h("tr", {}, ...["Attack", "Column", "Success", "Bound", ""].map((text) => h("th", { scope: "col" }, text || h("span", { class: "unseen" }, "Verdict"))))), h("tbody", {}, ...rows));
}

export function render() {
  const { release, policy } = app.state;
  if (!release.exists) return h("p", {}, "There is no release yet. ", h("a", { href: "#/release" }, "Make one."));
  for (const kind of ["verify", "attack"]) if (app.memory[kind]?.result && app.memory[kind].made !== release.revision) app.memory[kind] = null;
  return h(
    "div",
    {},
    release.revision && release.revision !== policy.revision && h("p", { class: "light amber" }, h("strong", {}, "The release was made with an earlier policy.")),
    h("section", { class: "card", "aria-labelledby": "checks" }, h("h2", { id: "checks" }, "Promises"), checks()),
    numbers(),
    h("section", { class: "card", "aria-labelledby": "attacks" }, h("h2", { id: "attacks" }, "Attacks"), attacks()),
    h("p", {}, h("a", { class: "button primary", href: "#/download" }, "Next: download")),
  );
}
