/** How values can be generalized, and which values may stand beside a secret one. */

import { get, post } from "./api.js";
import { app, edit, receiptOf, render as again, show, troubles } from "./app.js";
import { h } from "../admin/dom.js";
import { count, place, things } from "./words.js";

export const heading = "How can values be generalized?";
export const internal = () => true;

const WAYS = /** @type {[string, string, string][]} */ ([
  ["intervals", "Ranges of these widths", "5, 10, 20"],
  ["dates", "Dates by", "month, year"],
  ["prefix", "Codes, shortened to characters", "4"],
  ["suppress", "Shown or hidden", ""],
]);

/** A hierarchy as two fields: the way, and its numbers. @param {any} hierarchy @returns {[string, string]} */
function fields(hierarchy) {
  if (hierarchy === "suppress") return ["suppress", ""];
  if (hierarchy && typeof hierarchy === "object") {
    const [way, value] = Object.entries(hierarchy)[0] ?? ["", ""];
    if (WAYS.some(([name]) => name === way)) return [way, Array.isArray(value) ? value.join(", ") : String(value)];
  }
  return ["", typeof hierarchy === "string" ? hierarchy : JSON.stringify(hierarchy ?? "")];
}

/** @param {string} way @param {string} text */
function hierarchy(way, text) {
  if (way === "suppress") return "suppress";
  const words = text.split(/[,\s]+/).filter(Boolean);
  if (way === "dates") return { dates: words };
  if (way === "prefix" && words.length === 1) return { prefix: Number(words[0]) };
  return { [way]: words.map(Number) };
}

/** @param {string} name @param {any} entry */
function column(name, entry) {
  const [way, text] = fields(entry.hierarchy);
  const seen = app.memory.values?.[name];
  const load = async (/** @type {any} */ shown) => {
    try {
      const found = await post(`columns/${encodeURIComponent(name)}`, { hierarchy: shown });
      app.memory.values = { ...app.memory.values, [name]: { ...found, open: true } };
    } catch (error) {
      const problems = /** @type {any} */ (error).problems;
      if (!problems?.length) return show(error);
      app.memory.values = { ...app.memory.values, [name]: { problems, open: true } };
    }
    const spec = typeof shown === "string" ? shown : Object.entries(shown ?? {}).map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join("");
    receiptOf({ command: `polyseme hierarchy show '${spec}' --values ${app.state.table?.path} --column ${name}`, python: `ps.init(${JSON.stringify(app.state.table?.path)})` });
    again();
  };
  const select = h("select", { id: `way-${name}` }, ...WAYS.map(([value, label]) => h("option", { value, selected: value === way }, label)), way === "" && h("option", { value: "", selected: true }, entry.hierarchy ? "A file or taxonomy" : "Not yet"));
  const input = h("input", { id: `numbers-of-${name}`, value: text, "aria-label": `Widths, periods or characters for ${name}` });
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!select.value) return;
    const made = hierarchy(select.value, input.value);
    void edit({ changes: { [place("attributes", name, "hierarchy")]: made }, said: `${name}: ${select.selectedOptions[0].textContent} ${input.value}`.trim() }).then(() => load(made));
  };
  return h(
    "section",
    { class: "card", "aria-labelledby": `values-${name}` },
    h("h2", { id: `values-${name}` }, name),
    h("form", { class: "row", submit }, h("label", { for: `way-${name}` }, "Made coarser by"), select, input, h("button", {}, "Save"), h("button", { type: "button", id: `see-${name}`, click: () => void load(entry.hierarchy ?? null) }, "Show what each value becomes")),
    seen?.problems && troubles(seen.problems),
    seen?.values && becomes(name, seen),
  );
}

/** @param {string} name @param {any} seen */
function becomes(name, seen) {
  const steps = Math.max(1, seen.levels.length);
  const head = ["Records", "Value", ...Array.from({ length: steps - 1 }, (_, step) => `Step ${step + 1}`)];
  const rows = seen.values.slice(0, 60).map((/** @type {any} */ one) => h("tr", {}, h("td", { class: "number" }, count(one.records)), ...one.levels.map((/** @type {string} */ label) => h("td", {}, label === "*" ? "hidden (*)" : label))));
  return h(
    "div",
    { class: "scroll short", tabindex: "0", role: "region", "aria-label": `Values of ${name}` },
    h("table", {}, h("caption", {}, `${things(seen.different, "value")}${seen.missing ? `, ${count(seen.missing)} records without one` : ""}${seen.different > 60 ? "; the first 60" : ""}`), h("thead", {}, h("tr", {}, ...head.map((text, at) => h("th", { scope: "col", class: at === 0 ? "number" : null }, text)))), h("tbody", {}, ...rows)),
  );
}

/** @param {string} name @param {any} entry */
function secret(name, entry) {
  const found = app.memory.beside?.[name];
  const load = () => void get(`beside/${encodeURIComponent(name)}`).then(({ beside }) => ((app.memory.beside = { ...app.memory.beside, [name]: beside }), again()), show);
  const list = found && Object.entries(found).map(([value, others]) => h("tr", {}, h("th", { scope: "row" }, value), h("td", {}, /** @type {string[]} */ (others).length ? /** @type {string[]} */ (others).join(", ") : h("span", { class: "warn" }, "no other value"))));
  const field = h("input", { id: `prior-${name}`, value: typeof entry.prior === "string" ? entry.prior : "", placeholder: "none", "aria-describedby": `prior-help-${name}` });
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const where = place("attributes", name, "prior");
    void edit(field.value ? { changes: { [where]: field.value }, said: `${name}: public statistics from ${field.value}` } : { remove: [where], said: `${name}: no public statistics` });
  };
  return h(
    "section",
    { class: "card", "aria-labelledby": `values-${name}` },
    h("h2", { id: `values-${name}` }, name, h("span", { class: "quiet" }, " secret")),
    h("form", { class: "row", submit }, h("label", { for: `prior-${name}` }, "Public statistics, a file"), field, h("button", {}, "Save")),
    h("p", { class: "quiet", id: `prior-help-${name}` }, "A file with the values and how common each is. Under Protection you can make one from this table, with differential privacy."),
    h("p", {}, h("button", { id: `beside-${name}`, click: load }, "Show which values may stand beside each other")),
    list && h("div", { class: "scroll short", tabindex: "0", role: "region", "aria-label": `Values beside those of ${name}` }, list.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Value"), h("th", { scope: "col" }, "May stand beside it"))), h("tbody", {}, ...list)) : h("p", {}, "Too many values to list.")),
  );
}

export function render() {
  const { table, policy } = app.state;
  if (!table?.rows) return h("p", {}, h("a", { href: "#/table" }, "Choose a table first."));
  const entries = Object.entries(policy.document?.attributes ?? {});
  const known = entries.filter(([, entry]) => /** @type {any} */ (entry)?.role === "quasi-identifier");
  const secrets = entries.filter(([, entry]) => /** @type {any} */ (entry)?.role?.startsWith("sensitive"));
  return h(
    "div",
    {},
    h("p", {}, "Columns that others may know are made coarser in steps. Secrets are hidden among values that are far apart."),
    ...known.map(([name, entry]) => column(name, entry)),
    ...secrets.map(([name, entry]) => secret(name, entry)),
  );
}
