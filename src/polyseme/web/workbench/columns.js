/** What the columns are: a role for each, the guess and its reason, and what happens to it. */

import { get } from "./api.js";
import { app, edit, receiptOf, render as again, show } from "./app.js";
import { h } from "../admin/dom.js";
import { ROLES, count, place } from "./words.js";

export const heading = "What are the columns?";
export const internal = () => Boolean(app.memory.columns);

/** @typedef {{name: string, kind: string, different: number, counted: boolean, missing: number, examples: string[], guess: string, why: string}} Column */

/** The role of a column in the policy. @param {string} name */
function roleOf(name) {
  const document = app.state.policy.document ?? {};
  if (document["record-key"] === name) return "record-key";
  if (secrets().some((secret) => document.attributes[secret]["shared-by"] === name)) return "shared-by";
  return document.attributes?.[name]?.role ?? "";
}

/** The columns that are published as sets. */
const secrets = () => Object.entries(app.state.policy.document?.attributes ?? {}).filter(([, entry]) => /** @type {any} */ (entry)?.role?.startsWith("sensitive")).map(([name]) => name);

/** @param {string[]} names @param {string} role */
function choose(names, role) {
  const said = `${names.join(", ")}: ${ROLES[role][0]}`;
  const document = app.state.policy.document ?? {};
  const special = role === "record-key" || role === "shared-by";
  const plain = special ? "identifier" : role;
  const roles = Object.fromEntries(names.filter((name) => document.attributes?.[name]?.role !== plain).map((name) => [name, plain]));
  /** @type {Record<string, any>} */
  const changes = role === "record-key" ? { "record-key": names[0] } : {};
  if (role === "shared-by") for (const secret of secrets()) changes[place("attributes", secret, "shared-by")] = names[0];
  const remove = role !== "record-key" && names.includes(document["record-key"]) ? ["record-key"] : [];
  if (role !== "shared-by") remove.push(...secrets().filter((secret) => names.includes(document.attributes[secret]["shared-by"])).map((secret) => place("attributes", secret, "shared-by")));
  return edit({ roles, changes, remove, said });
}

/** What will happen to a column. @param {string} role */
function happens(role) {
  const method = app.state.policy.document?.method;
  if (role === "quasi-identifier" && !method) return h("span", { class: "warn" }, "published unchanged: no method makes it coarser yet");
  return ROLES[role]?.[1] ?? "not in the policy: the release is refused";
}

/** @param {Column} column */
function row(column) {
  const role = roleOf(column.name);
  const id = `role-${column.name}`;
  const choices = Object.entries(ROLES).map(([value, [label]]) => h("option", { value, selected: value === role }, label));
  const select = h("select", { id, change: (/** @type {Event} */ event) => void choose([column.name], /** @type {HTMLSelectElement} */ (event.target).value) }, !role && h("option", { value: "", selected: true }, "Choose"), ...choices);
  select.value = role;
  const tick = h("input", { type: "checkbox", class: "tick", id: `tick-${column.name}`, "aria-label": `Select ${column.name}`, change: (/** @type {Event} */ event) => selectRow(column.name, /** @type {HTMLInputElement} */ (event.target).checked) });
  tick.checked = chosen().has(column.name);
  return h(
    "tr",
    { "data-column": column.name },
    h("td", { class: "narrow" }, tick),
    h("th", { scope: "row" }, h("label", { for: id }, column.name || "(no name)")),
    h("td", { "data-label": "Role" }, select),
    h("td", { "data-label": "What happens to it" }, happens(role), h("p", { class: "quiet" }, role === column.guess ? `Guessed: ${column.why}` : `Your choice; the draft said ${ROLES[column.guess]?.[0] ?? column.guess}`)),
    h(
      "td",
      { "data-label": "Values" },
      `${column.kind}, ${column.counted ? "" : "about "}${count(column.different)} different${column.missing ? `, ${count(column.missing)} missing` : ""}`,
      h("p", { class: "quiet examples" }, column.examples.join(", ")),
    ),
  );
}

/** @returns {Set<string>} */
const chosen = () => (app.memory.chosen ??= new Set());

/** @param {string} name @param {boolean} on */
function selectRow(name, on) {
  if (on) chosen().add(name);
  else chosen().delete(name);
  again();
}

function together() {
  const names = [...chosen()];
  if (!names.length) return null;
  const select = h("select", { id: "together" }, ...Object.entries(ROLES).filter(([value]) => value !== "record-key" && value !== "shared-by").map(([value, [label]]) => h("option", { value }, label)));
  return h(
    "p",
    { class: "row card" },
    h("label", { for: "together" }, `${names.length} selected:`),
    select,
    h("button", { click: () => void choose(names, select.value).then(() => (chosen().clear(), again())) }, "Apply"),
  );
}

export function render() {
  const { table, policy } = app.state;
  if (!table?.rows) return h("p", {}, table?.reading ? "Counting the table once" : h("a", { href: "#/table" }, "Choose a table first."));
  if (app.memory.columnsOf !== table.path) {
    app.memory.columnsOf = table.path;
    app.memory.columns = null;
    void get("columns").then(({ columns }) => ((app.memory.columns = columns), again()), show);
  }
  /** @type {Column[] | null} */
  const columns = app.memory.columns;
  if (!columns) return h("p", { class: "quiet" }, "Looking at the columns");
  receiptOf(app.receipt.command === "polyseme workbench" ? { command: `polyseme init ${table.path} --out ${policy.path}`, python: `ps.init(${JSON.stringify(table.path)})` } : app.receipt);
  const open = columns.filter(({ name }) => !roleOf(name));
  app.memory.open = open.length;
  const word = (app.memory.filter ?? "").toLowerCase();
  const shown = [...open, ...columns.filter(({ name }) => roleOf(name))].filter(({ name }) => name.toLowerCase().includes(word));
  const filter = h("input", { id: "filter", type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", value: app.memory.filter ?? "", input: (/** @type {Event} */ event) => ((app.memory.filter = /** @type {HTMLInputElement} */ (event.target).value), again()) });
  const head = ["", "Column", "Role", "What happens to it", "Values"].map((text) => h("th", { scope: "col" }, text || h("span", { class: "unseen" }, "Select")));
  return h(
    "div",
    {},
    h("p", {}, "The draft guessed from names and values. A table does not show what others know: read every line."),
    columns.length > 8 && h("p", {}, filter, h("span", { class: "quiet" }, ` ${shown.length} of ${columns.length} columns`)),
    together(),
    h("table", { class: "blocks columns" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...shown.map(row))),
    h("p", {}, h("a", { class: "button primary", href: "#/protection" }, "Next: how well are the secrets hidden?")),
  );
}
