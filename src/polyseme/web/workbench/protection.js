/** How well the secrets are hidden: a light, a card for each secret, and a card for what others may know. */

import { get, post } from "./api.js";
import { app, edit, receiptOf, render as again, show, troubles } from "./app.js";
import { attackersChart } from "./charts.js";
import { h } from "../admin/dom.js";
import { count, percent, place } from "./words.js";

/** @typedef {import("./api.js").Outlook} Outlook @typedef {import("./api.js").Card} Card @typedef {import("./api.js").Step} Step */

export const heading = "How well are the secrets hidden?";
export const internal = () => Boolean(app.memory.preview);

/** Only one question is under way; the newest waits. @type {{running: boolean, waiting: any}} */
const asking = { running: false, waiting: null };

/** Ask what some changes would come to. @param {Record<string, any>} changes @param {string[]} [remove] */
async function ask(changes, remove = []) {
  if (asking.running) return void (asking.waiting = [changes, remove]);
  asking.running = true;
  app.memory.old = true;
  mark();
  try {
    const found = await post("what-if", { changes, remove });
    app.memory.outlook = found;
    app.memory.troubles = null;
    app.memory.old = false;
    receiptOf(found.receipt);
  } catch (error) {
    if (/** @type {any} */ (error).problems?.length) app.memory.troubles = /** @type {any} */ (error).problems;
    else show(error);
  }
  asking.running = false;
  const next = asking.waiting;
  asking.waiting = null;
  if (next) await ask(next[0], next[1]);
  else fill();
}

/** Numbers that are out of date are gray until the answer comes. */
const mark = () => document.getElementById("outlook")?.classList.toggle("old", true);

/** Put the newest numbers on the page, without touching the controls. */
function fill() {
  const outlook = document.getElementById("outlook");
  if (!outlook) return;
  outlook.classList.toggle("old", Boolean(app.memory.old));
  document.getElementById("light")?.replaceWith(light());
  for (const card of app.memory.outlook?.cards ?? []) document.getElementById(`numbers-${card.name}`)?.replaceWith(numbers(card));
  document.getElementById("levels")?.replaceWith(levels());
}

/** @param {Step} step */
async function take(step) {
  if (step.job) {
    app.memory.after = step.job.attribute;
    try {
      const { job, receipt } = await post("jobs", step.job);
      receiptOf(receipt);
      await ended(job.id);
      const name = step.job.attribute;
      await edit({ changes: { [place("attributes", name, "prior")]: `${name}-statistics.csv` }, said: `${name}: public statistics from this table, with differential privacy` });
    } catch (error) {
      show(error);
    }
    return;
  }
  await edit({ changes: step.changes, remove: step.remove, said: step.label });
}

/** @param {string} id */
async function ended(id) {
  for (;;) {
    const { job } = await get(`jobs/${id}`);
    if (!["waiting", "running"].includes(job.state)) {
      if (job.state !== "done") throw new Error(job.messages.join("\n"));
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

function light() {
  const wrong = app.memory.troubles ?? (app.state.policy.problems.length ? app.state.policy.problems : null);
  if (wrong) return h("section", { id: "light", class: "light red" }, h("p", {}, h("strong", {}, "Not possible.")), troubles(wrong));
  /** @type {Outlook | null} */
  const outlook = app.memory.outlook;
  if (!outlook) return h("section", { id: "light", class: "light" }, h("p", {}, "Calculating"));
  const { color, title, why, steps, details } = outlook.light;
  return h(
    "section",
    { id: "light", class: `light ${color}` },
    h("p", {}, h("strong", {}, title), why.length === 1 && ` ${why[0]}`),
    why.length > 1 && h("ul", {}, ...why.map((text) => h("li", {}, text))),
    steps.length > 0 && h("p", { class: "row" }, ...steps.map((step, number) => h("button", { id: `step-${number}`, click: () => void take(step) }, step.label))),
    details.length > 0 && h("details", {}, h("summary", {}, "Details"), h("ul", {}, ...details.map((text) => h("li", {}, text)))),
  );
}

/**
 * A slider with buttons; moving asks, letting go decides.
 * @param {{id: string, label: string, value: number, low: number, high: number, step?: number, words: (value: number) => string, changes: (value: number) => Record<string, any>, said: (value: number) => string}} dial
 */
function slider({ id, label, value, low, high, step = 1, words, changes, said }) {
  const output = h("output", { for: id }, words(value));
  const moved = () => {
    output.textContent = words(Number(input.value));
    input.setAttribute("aria-valuetext", words(Number(input.value)));
    void ask(changes(Number(input.value)));
  };
  const decided = () => void edit({ changes: changes(Number(input.value)), said: said(Number(input.value)) });
  const input = h("input", { id, type: "range", min: low, max: high, step, value, "aria-valuetext": words(value), input: moved, change: decided });
  const by = (/** @type {number} */ sign) =>
    h("button", { type: "button", class: "small", id: `${id}${sign < 0 ? "-less" : "-more"}`, "aria-label": `${label}: ${sign < 0 ? "less" : "more"}`, click: () => ((input.value = String(Number(input.value) + sign * step)), moved(), decided()) }, sign < 0 ? "−" : "+");
  return h("div", { class: "dial" }, h("div", { class: "row spread" }, h("label", { for: id }, label), output), h("div", { class: "row tight" }, by(-1), input, by(1)));
}

/** @param {Card} card */
function numbers(card) {
  /** @type {Node[]} */
  const parts = [attackersChart(card.attackers, Boolean(app.memory.old))];
  const [, marginal, conditional] = card.attackers;
  if (marginal && conditional && marginal.after !== null && conditional.after !== null && conditional.after <= marginal.after + 1e-9) parts.push(h("p", {}, "The published columns reveal nothing more."));
  if (card.error !== null) parts.push(h("p", {}, "Typical error of a recovered share: ", h("strong", {}, `± ${(100 * card.error).toFixed(2)} percentage points`)));
  if (!card.feasible) return h("div", { id: `numbers-${card.name}` }, h("p", { class: "warn" }, "No sets of candidates keep this setting."), h("details", {}, h("summary", {}, "Details"), h("p", {}, card.obstacle)));
  return h("div", { id: `numbers-${card.name}` }, ...parts);
}

/** @param {Card} card */
function secret(card) {
  const attributes = app.state.policy.document?.attributes ?? {};
  const promise = attributes[card.name]?.protect?.["semantic-diversity"] ?? attributes[card.name]?.protect?.diversity;
  const kind = attributes[card.name]?.protect?.["semantic-diversity"] ? "semantic-diversity" : "diversity";
  const at = (/** @type {string} */ key) => place("attributes", card.name, "protect", kind, key);
  const farthest = card.farthest ?? 1;
  const step = farthest < 3 ? farthest / 20 : 1;
  const limit = attributes[card.name]?.protect?.learner?.success ?? "";
  const known = attributes[card.name]?.prior ?? attributes[card.name]?.reference;
  const limits = h(
    "select",
    {
      id: `limit-${card.name}`,
      disabled: !known && limit === "",
      change: (/** @type {Event} */ event) => {
        const value = /** @type {HTMLSelectElement} */ (event.target).value;
        const where = place("attributes", card.name, "protect", "learner");
        void edit(value ? { changes: { [where]: { success: Number(value) } }, said: `${card.name}: an informed attacker is right at most in ${percent(Number(value), 0)}` } : { remove: [where], said: `${card.name}: no limit for an informed attacker` });
      },
    },
    h("option", { value: "" }, "no limit"),
    ...app.state.limits.map((value) => h("option", { value, selected: value === limit }, percent(value, 0))),
  );
  return h(
    "section",
    { class: "card", "aria-labelledby": `secret-${card.name}` },
    h("h2", { id: `secret-${card.name}` }, card.name, h("span", { class: "quiet" }, ` ${card.size} values`)),
    h("p", {}, h("label", { for: `limit-${card.name}` }, "An informed attacker may be right at most "), limits),
    !known && h("p", { class: "quiet" }, "A limit needs public statistics: what an informed attacker knows. Use the button above, or name a file under Values."),
    promise &&
      h(
        "div",
        { class: "dials" },
        slider({ id: `l-${card.name}`, label: "Candidates in each set", value: promise.l, low: 2, high: Math.min(12, card.size), words: (value) => `${value} candidates`, changes: (value) => ({ [at("l")]: value }), said: (value) => `${card.name}: ${value} candidates` }),
        kind === "semantic-diversity" && slider({ id: `d-${card.name}`, label: "How far apart they are", value: promise.d, low: 0, high: Math.max(farthest, promise.d), step, words: (value) => `at least ${value} apart`, changes: (value) => ({ [at("d")]: value }), said: (value) => `${card.name}: at least ${value} apart` }),
      ),
    numbers(card),
    kind === "semantic-diversity" && map(card),
  );
}

/** All settings: candidates by distance. @param {Card} card */
function map(card) {
  const found = app.memory.settings?.[card.name];
  const load = () => {
    if (found) return;
    void get(`settings/${encodeURIComponent(card.name)}`).then((answer) => ((app.memory.settings = { ...app.memory.settings, [card.name]: { ...answer, revision: app.state.policy.revision } }), receiptOf(answer.receipt), again()), show);
  };
  const details = h("details", { id: `map-${card.name}`, class: "map", open: Boolean(found), toggle: () => /** @type {HTMLDetailsElement} */ (details).open && load() }, h("summary", {}, "All settings"), found ? grid(card, found.settings) : h("p", { class: "quiet" }, "Trying every setting"));
  return details;
}

/** @param {Card} card @param {any[]} settings */
function grid(card, settings) {
  const ls = [...new Set(settings.map(({ l }) => l))];
  const ds = [...new Set(settings.map(({ d }) => d))];
  const use = (/** @type {any} */ one) => void edit({ changes: { [place("attributes", card.name, "protect", "semantic-diversity", "l")]: one.l, [place("attributes", card.name, "protect", "semantic-diversity", "d")]: one.d }, said: `${card.name}: ${one.l} candidates, at least ${one.d} apart` });
  const cells = ls.map((l, row) => ds.map((d, column) => {
    const one = settings.find((item) => item.l === l && item.d === d);
    const now = l === card.l && d === card.d;
    const shade = !one?.possible ? "none" : one.success > 0.66 ? "high" : one.success > 0.45 ? "middle" : "low";
    const words = one?.possible ? `${l} candidates, ${d} apart: an informed attacker is right in ${percent(one.success, 0)}` : `${l} candidates, ${d} apart: not possible`;
    return h("td", {}, h("button", { type: "button", class: `setting ${shade}${now ? " now" : ""}`, id: `set-${card.name}-${row}-${column}`, tabindex: now || (row === 0 && column === 0 && !settings.some((item) => item.l === card.l && item.d === card.d)) ? 0 : -1, "aria-pressed": String(now), "aria-disabled": String(!one?.possible), "aria-label": words, click: () => one?.possible && use(one) }, one?.possible ? percent(one.success, 0) : "–"));
  }));
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    const match = document.activeElement?.id.match(/-(\d+)-(\d+)$/);
    if (!step || !match) return;
    event.preventDefault();
    const next = document.getElementById(`set-${card.name}-${Number(match[1]) + step[0]}-${Number(match[2]) + step[1]}`);
    if (next) (document.activeElement?.setAttribute("tabindex", "-1"), next.setAttribute("tabindex", "0"), next.focus());
  };
  const head = h("tr", {}, h("th", { scope: "col" }, "Candidates"), ...ds.map((d) => h("th", { scope: "col" }, `${d} apart`)));
  return h(
    "div",
    { class: "scroll", keydown: move },
    h("p", { class: "quiet" }, "How often an informed attacker guesses right, for every setting; – is not possible. Arrow keys move, Enter takes a setting."),
    h("table", { class: "settings" }, h("thead", {}, head), h("tbody", {}, ...ls.map((l, row) => h("tr", {}, h("th", { scope: "row" }, String(l)), ...cells[row])))),
  );
}

const METHODS = /** @type {[string, string, any][]} */ ([
  ["", "They are published unchanged", null],
  ["full-domain", "The same step for all records", { "full-domain": { suppression: 0.05, loss: "loss" } }],
  ["mondrian", "Ranges that adapt to the data", { mondrian: {} }],
]);

/** The columns that others may know. */
function known() {
  const document = app.state.policy.document ?? {};
  const names = Object.entries(document.attributes ?? {}).filter(([, entry]) => /** @type {any} */ (entry)?.role === "quasi-identifier").map(([name]) => name);
  if (!names.length) return null;
  const used = Object.keys(document.method ?? {}).find((name) => name !== "decoys") ?? "";
  const models = document.models ?? [];
  const place_k = models.findIndex((/** @type {any} */ model) => model["k-anonymity"]);
  const k = place_k < 0 ? null : models[place_k]["k-anonymity"].k;
  const suppression = document.method?.["full-domain"]?.suppression;
  const method = h(
    "select",
    {
      id: "method",
      change: (/** @type {Event} */ event) => {
        const [, label, value] = /** @type {[string, string, any]} */ (METHODS.find(([name]) => name === /** @type {HTMLSelectElement} */ (event.target).value));
        const first = place_k < 0 && value ? { models: [...models, { "k-anonymity": { k: 5 } }] } : {};
        void edit(value ? { changes: { ...first, method: value }, said: label } : { remove: ["method"], said: label });
      },
    },
    ...METHODS.map(([name, label]) => h("option", { value: name, selected: name === used }, label)),
    !METHODS.some(([name]) => name === used) && h("option", { value: used, selected: true }, used),
  );
  return h(
    "section",
    { class: "card", "aria-labelledby": "known" },
    h("h2", { id: "known" }, "What others may know", h("span", { class: "quiet" }, ` ${names.join(", ")}`)),
    h("p", {}, h("label", { for: "method" }, "How are columns made coarser? "), method),
    h(
      "div",
      { class: "dials" },
      k !== null && slider({ id: "k", label: "People who look alike", value: k, low: 2, high: 50, words: (value) => `at least ${value}`, changes: (value) => ({ [`models[${place_k}].k-anonymity.k`]: value }), said: (value) => `At least ${value} people look alike` }),
      suppression !== undefined && slider({ id: "suppression", label: "Records that may be left out", value: Math.round(100 * suppression), low: 0, high: 20, words: (value) => `${value}%`, changes: (value) => ({ "method.full-domain.suppression": value / 100 }), said: (value) => `At most ${value}% of the records are left out` }),
    ),
    levels(),
  );
}

/** What becomes of each column. */
function levels() {
  const method = app.memory.outlook?.method;
  if (!method) return h("div", { id: "levels" });
  if (!method.feasible) return h("div", { id: "levels" }, h("p", { class: "warn" }, method.obstacle));
  const steps = Object.entries(method.levels ?? {}).map(([name, level]) => h("li", {}, h("strong", {}, name), `: step ${level}`, level === 0 && " (as it is)"));
  return h(
    "div",
    { id: "levels" },
    steps.length > 0 && h("ul", { class: "inline" }, ...steps),
    h("p", {}, `${count(method.classes)} classes; ${count(method.suppressed)} of ${count(method.records)} records left out (${percent(method.suppressed / Math.max(method.records, 1))}).`),
    h("p", {}, h("a", { href: "#/alternatives" }, "Other ways to publish it")),
  );
}

function preview() {
  const load = () => void get("preview").then((found) => ((app.memory.preview = found), again()), show);
  const found = app.memory.preview;
  if (!found) return h("p", {}, h("button", { id: "preview", click: load }, "Show ten records, before and after"));
  const rows = found.rows.map((/** @type {any} */ one) =>
    h("tr", {}, ...found.columns.map((/** @type {string} */ name) => h("td", { "data-label": name }, h("span", { class: "quiet" }, one.before[name] ?? ""), " → ", one.after === null ? "left out" : Array.isArray(one.after[name]) ? `{${one.after[name].join(", ")}}` : (one.after[name] ?? "removed")))),
  );
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ten records" }, h("table", { class: "blocks" }, h("caption", {}, "Ten records, before and after. A release draws other candidates."), h("thead", {}, h("tr", {}, ...found.columns.map((/** @type {string} */ name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows)));
}

export function render() {
  const { table, policy } = app.state;
  if (!table?.rows) return h("p", {}, h("a", { href: "#/table" }, "Choose a table first."));
  if (app.memory.plannedFor !== policy.revision && !policy.problems.length) {
    app.memory.plannedFor = policy.revision;
    app.memory.preview = null;
    for (const name of Object.keys(app.memory.settings ?? {})) if (app.memory.settings[name].revision !== policy.revision) delete app.memory.settings[name];
    void ask({}).then(again);
  }
  const cards = app.memory.outlook?.cards ?? [];
  const empty = app.memory.outlook && !cards.length && h("p", { class: "card" }, "Nothing is protected yet. ", h("a", { href: "#/columns" }, "Choose which columns are secret."));
  return h("div", { id: "outlook", class: app.memory.old ? "old" : "" }, light(), empty, ...cards.map(secret), known(), preview(), h("p", {}, h("a", { class: "button primary", href: "#/release" }, "Next: make the release")));
}
