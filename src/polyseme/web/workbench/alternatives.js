/** Other ways to publish the table: which columns could be shown in more detail, and what it costs. */

import { get, post } from "./api.js";
import { app, edit, receiptOf, render as again, show } from "./app.js";
import { h } from "./dom.js";
import { percent } from "./words.js";

export const heading = "Other ways to publish it";

async function look() {
  try {
    const { job, receipt } = await post("jobs", { kind: "alternatives" });
    receiptOf(receipt);
    app.memory.alternatives = { job: job.id, revision: app.state.policy.revision };
    again();
    for (;;) {
      const { job: now, result } = await get(`jobs/${job.id}`);
      if (!["waiting", "running"].includes(now.state)) {
        app.memory.alternatives = { revision: app.state.policy.revision, found: result?.alternatives ?? [], messages: now.messages };
        return again();
      }
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  } catch (error) {
    show(error);
  }
}

/** The steps of a column as blocks. @param {number} level @param {number} height */
const blocks = (level, height) => h("span", { class: "steps-of", "aria-hidden": "true" }, ...Array.from({ length: height }, (_, at) => h("span", { class: at < level ? "full" : "empty" })));

/** @param {any} one @param {string[]} names */
function row(one, names) {
  const use = () => void edit({ changes: { "method.full-domain.levels": one.levels }, said: one.label });
  const cells = names.map((name) => h("td", { "data-label": name }, blocks(one.levels[name] ?? 0, one.heights?.[name] ?? 1), h("span", { class: "quiet" }, one.words?.[name] ?? `step ${one.levels[name]}`)));
  return h("tr", {}, h("th", { scope: "row" }, one.label), ...cells, h("td", { class: "number", "data-label": "Detail kept" }, percent(one.kept, 0)), h("td", { class: "number", "data-label": "Left out" }, percent(one.suppressed_share)), h("td", {}, one.chosen ? "in use" : h("button", { click: use }, "Use this")));
}

export function render() {
  const { policy, table } = app.state;
  if (!table?.rows) return h("p", {}, h("a", { href: "#/table" }, "Choose a table first."));
  if (!policy.document?.method?.["full-domain"]) return h("p", {}, "Alternatives are looked for where the same step is taken for all records. Choose that under ", h("a", { href: "#/protection" }, "Protection"), ".");
  const held = app.memory.alternatives;
  if (!held || held.revision !== policy.revision) {
    if (!held?.job) return h("div", {}, h("p", {}, "The same promise can be kept in other ways. Each row is the best one that shows more of a column."), h("p", {}, h("button", { id: "look", class: "primary", click: () => void look() }, "Look for alternatives")));
  }
  if (!held.found) return h("p", {}, "Searching");
  if (!held.found.length) return h("p", {}, "No other way keeps the promise.", held.messages?.length > 0 && h("span", { class: "quiet" }, ` ${held.messages.join(" ")}`));
  const names = Object.keys(held.found[0].levels);
  const head = ["", ...names, "Detail kept", "Left out", ""].map((text) => h("th", { scope: "col" }, text));
  return h("div", {}, h("p", {}, "The same promise can be kept in other ways. Each row is the best one that shows more of a column."), h("div", { class: "scroll" }, h("table", { class: "blocks" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...held.found.map((/** @type {any} */ one) => row(one, names))))));
}
