/** Which table: the files below the start folder, how they are written, and the first rows. */

import { get, post } from "./api.js";
import { app, receiptOf, render, show, troubles } from "./app.js";
import { h } from "../admin/dom.js";
import { count, listed, percent, things } from "./words.js";

export const heading = "Which table?";
export const internal = () => Boolean(app.state.table?.first.length);

const OPTIONS = /** @type {[string, string, string][]} */ ([
  ["separator", "Separator", "found out"],
  ["encoding", "Encoding", "utf-8"],
  ["sheet", "Sheet of a workbook", "the first"],
  ["decimal", "Decimal sign (point or comma)", "point"],
  ["dates", "Dates, such as dd.mm.yyyy", "ISO 8601"],
]);

/** @param {string} path @param {Record<string, string>} options */
async function open(path, options) {
  try {
    app.state = await post("open", { path, options });
    receiptOf({ command: `polyseme init ${path} --out ${app.state.policy.path}`, python: `ps.init(${JSON.stringify(path)})` });
    render();
  } catch (error) {
    show(error);
  }
}

export function render_list() {
  if (!app.memory.tables) {
    void get("tables").then(({ tables }) => ((app.memory.tables = tables), render()), show);
    return h("p", { class: "quiet" }, "Looking for tables");
  }
  const { tables } = app.memory;
  if (!tables.length) return h("p", {}, "No table here. Name one: ", h("code", {}, "polyseme workbench patients.csv"));
  const now = app.state.table?.path;
  return h(
    "ul",
    { class: "files" },
    ...tables.map((/** @type {string} */ path) =>
      h("li", {}, h("button", { id: `open-${path}`, "aria-pressed": String(path === now), click: () => void open(path, {}) }, path), path === now && h("span", { class: "quiet" }, " open")),
    ),
  );
}

/** @param {import("./api.js").Table} table */
function options(table) {
  const fields = OPTIONS.map(([name, label, usual]) => {
    const input = h("input", { id: `option-${name}`, name, value: table.options[name] ?? "", placeholder: usual });
    return h("div", {}, h("label", { for: `option-${name}` }, label), input);
  });
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    void open(table.path, Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)])));
  };
  return h("details", { class: "options" }, h("summary", {}, "How the table is written"), h("form", { class: "grid", submit }, ...fields, h("p", {}, h("button", {}, "Read it again"))));
}

/** @param {import("./api.js").Table} table */
function unique(table) {
  if (table.unique === null || table.rows === null) return h("p", { class: "quiet" }, "No column is marked yet as one that others may know.");
  const share = table.unique / Math.max(table.rows, 1);
  return h(
    "p",
    { class: "lead" },
    h("strong", {}, `${count(table.unique)} of ${things(table.rows, "record")} are unique (${percent(share)})`),
    ` for an attacker who knows ${listed(table.known)}.`,
  );
}

/** @param {import("./api.js").Table} table */
function first(table) {
  const head = table.columns.map((name) => h("th", { scope: "col" }, name || "(no name)"));
  const rows = table.first.map((row) => h("tr", {}, ...table.columns.map((name) => h("td", { "data-label": name }, row[name]))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "First rows" }, h("table", {}, h("caption", {}, "The first rows"), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}

export { screen as render };

function screen() {
  const { table } = app.state;
  /** @type {Node[]} */
  const parts = [h("p", {}, "The table is read where it is. Nothing is uploaded, and nothing is copied."), render_list()];
  if (!table) return h("div", {}, ...parts);
  if (table.problems.length) parts.push(h("div", { class: "notice" }, h("p", {}, h("strong", {}, `${table.path} cannot be read.`)), troubles(table.problems)));
  if (table.reading) parts.push(h("div", { class: "card" }, h("p", {}, "Counting the table once"), h("progress", { max: 1, value: table.share, "aria-label": "Counting the table once" })));
  parts.push(options(table));
  if (table.rows !== null) parts.push(unique(table), first(table), h("p", {}, h("a", { class: "button primary", href: "#/columns" }, "Next: what are the columns?")));
  return h("div", {}, ...parts);
}
