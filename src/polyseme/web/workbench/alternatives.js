/** Other ways to publish the table: which columns could be shown in more detail, and what it costs. */

import { get, post } from "./api.js";
import { app, edit, receiptOf, render as again, show } from "./app.js";
import { h } from "../admin/dom.js";
import { listed, percent } from "./words.js";

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
        app.memory.alternatives = { revision: app.state.policy.revision, found: result?.alternatives ?? [], now: result?.method, messages: now.messages };
        return again();
      }
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  } catch (error) {
    show(error);
  }
}

/** What a column shows at a level. @param {number} level */
const words = (level) => (level === 0 ? "as it is" : `step ${level}`);

/** @param {any} one @param {string[]} names @param {any} now */
function row(one, names, now) {
  const label = one === now ? "In use" : `More of ${listed(one.more)}`;
  const use = () => void edit({ changes: { "method.full-domain.levels": one.cut }, said: label });
  const cells = names.map((name) => h("td", { "data-label": name, class: one.levels[name] < now.levels[name] ? "good" : one.levels[name] > now.levels[name] ? "warn" : null }, words(one.levels[name])));
  return h("tr", {}, h("th", { scope: "row" }, label), ...cells, h("td", { class: "number", "data-label": "Loss" }, one === now ? "–" : `${one.loss >= now.loss ? "+" : ""}${percent((one.loss - now.loss) / Math.max(now.loss, 1e-9))}`), h("td", { class: "number", "data-label": "Left out" }, percent(one.suppressed / Math.max(now.records, 1))), h("td", {}, one === now ? "" : h("button", { click: use }, "Use this")));
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
  const head = ["Alternative", ...names, "Loss", "Left out", ""].map((text, at) => h("th", { scope: "col", class: at > names.length && text ? "number" : null }, text || h("span", { class: "unseen" }, "Choice")));
  return h("div", {}, h("p", {}, "The same promise can be kept in other ways. Each row is the best one that shows more of a column."), h("div", { class: "scroll" }, h("table", { class: "blocks" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...[held.now, ...held.found].map((/** @type {any} */ one) => row(one, names, held.now))))));
}
