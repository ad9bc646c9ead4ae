/** The page: state, steps, receipt, history. A screen is a module with `render`; it has no state that the policy lacks. */

import { Gone, Refused, follow, get, post, takeToken } from "./api.js";
import { h } from "../admin/dom.js";
import * as alternatives from "./alternatives.js";
import * as columns from "./columns.js";
import * as downloads from "./downloads.js";
import * as protection from "./protection.js";
import * as release from "./release.js";
import * as results from "./results.js";
import * as table from "./table.js";
import * as values from "./values.js";
import { count } from "./words.js";

/** @typedef {import("./api.js").State} State @typedef {import("./api.js").Receipt} Receipt @typedef {import("./api.js").Job} Job */

const SCREENS = /** @type {[string, string, any][]} */ ([
  ["table", "Table", table],
  ["columns", "Columns", columns],
  ["values", "Values", values],
  ["protection", "Protection", protection],
  ["alternatives", "Alternatives", alternatives],
  ["release", "Release", release],
  ["results", "Results", results],
  ["download", "Download", downloads],
]);

const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** What all screens share. */
export const app = {
  /** @type {State} */ state: /** @type {any} */ (null),
  /** @type {Receipt} */ receipt: { command: "polyseme workbench", python: "" },
  shown: "command",
  drawer: false,
  /** @type {number[]} */ lines: [],
  /** @type {Record<string, any>} what screens remember while the page is open */ memory: {},
};

let edits = Promise.resolve();
let number = -1;

/** The screen of the address. */
const current = () => location.hash.replace("#/", "") || "table";

/** Say something to those who do not see the page. @param {string} text */
export const announce = (text) => (at("announcer").textContent = text);

/** What the same action would be as a command. @param {Receipt | undefined} receipt */
export function receiptOf(receipt) {
  if (!receipt) return;
  app.receipt = receipt;
  showReceipt();
}

/**
 * Change the policy. Edits wait for each other, and each names the revision that it was made on.
 * @param {{changes?: Record<string, any>, roles?: Record<string, string>, remove?: string[], said: string}} edit
 */
export function edit(edit) {
  edits = edits.then(() => sent(edit)).catch(show);
  return edits;
}

/** @param {{said: string}} edit */
async function sent(edit) {
  try {
    const { state, lines, receipt } = await post("edits", { revision: app.state.policy.revision, ...edit });
    app.lines = lines;
    app.state = state;
    receiptOf(receipt);
    announce(`${edit.said}. Saved.`);
    render();
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 409 || !error.state) throw error;
    app.state = error.state;
    render();
    notice(error.message, [["Make it again", () => void sent(edit)]]);
  }
}

/** @param {"undo" | "redo"} step */
export async function turn(step) {
  try {
    const { state, said } = await post("history", { revision: app.state.policy.revision, step });
    app.state = state;
    announce(`${step === "undo" ? "Undone" : "Made again"}: ${said}`);
    render();
  } catch (error) {
    show(error);
  }
}

/** A message above the screen. @param {string} text @param {[string, () => void][]} [buttons] @param {import("./api.js").Trouble[]} [problems] */
export function notice(text, buttons = [], problems = []) {
  document.getElementById("notice")?.remove();
  const close = () => document.getElementById("notice")?.remove();
  const found = h(
    "div",
    { id: "notice", class: "notice", role: "alert" },
    h("p", {}, h("strong", {}, text)),
    problems.length > 0 && troubles(problems),
    h("p", { class: "row" }, ...buttons.map(([label, act]) => h("button", { click: () => (close(), act()) }, label)), h("button", { click: close }, "Close")),
  );
  at("main").prepend(found);
}

/** Problems as a list: what, where, and what helps. @param {import("./api.js").Trouble[]} problems */
export const troubles = (problems) =>
  h(
    "ul",
    { class: "troubles" },
    ...problems.map(({ where, what, hint, line }) =>
      h("li", {}, where && h("code", {}, where), where && " ", what, line !== null && h("span", { class: "quiet" }, ` (line ${line} of the policy)`), hint && h("p", { class: "quiet" }, hint)),
    ),
  );

/** Show an error to a person. @param {unknown} error */
export function show(error) {
  if (error instanceof Refused && error.status === 401) {
    return void at("main").replaceChildren(h("div", { class: "notice", role: "alert" }, h("p", {}, h("strong", {}, "This page belongs to a workbench that has ended.")), h("p", {}, "Open the address that the running workbench has printed in its terminal.")));
  }
  if (error instanceof Refused) return notice(error.message + (error.detail ? `: ${error.detail}` : ""), [], error.problems);
  if (error instanceof Gone) return notice(error.message, [["Try again", () => void begin()]]);
  console.error(error);
  notice("A fault of this page. Reload it; your policy is on disk.");
}

/** A mark beside a step: what is to be done there. @param {string} name */
function mark(name) {
  const { table, policy, release, jobs } = app.state;
  if (name === "table") return table?.rows ? "✓" : "";
  if (name === "columns" && app.memory.open) return `${app.memory.open} to decide`;
  if (name === "protection" && policy.problems.length) return "to repair";
  if (name === "release" && jobs.some(({ kind, state }) => kind === "anonymize" && state === "running")) return "running";
  if (name === "results" && release.exists) return release.revision && release.revision !== policy.revision ? "out of date" : "✓";
  return "";
}

function showSteps() {
  const now = current();
  const items = SCREENS.map(([name, title]) => {
    const text = mark(name);
    return h("li", {}, h("a", { href: `#/${name}`, "aria-current": name === now ? "step" : null }, title, text && h("span", { class: "mark" }, text)));
  });
  at("steps").replaceChildren(h("ol", {}, ...items));
}

function showTop() {
  const { table, history } = app.state;
  at("table").textContent = table ? `${table.path}${table.rows === null ? "" : `, ${count(table.rows)} records`}` : "no table";
  const entries = history.entries.map((entry, place) => h("li", { "aria-current": place === history.place ? "true" : null }, entry.said, h("span", { class: "quiet" }, ` ${entry.at.replace("T", " ").slice(0, 16)}${entry.release ? `, made ${entry.release}` : ""}`)));
  const button = (/** @type {"undo" | "redo"} */ step, /** @type {string} */ label) =>
    h("button", { id: step, type: "button", disabled: !history[step], title: history[step] ? `${label}: ${history[step]}` : null, click: () => void turn(step) }, label);
  at("tools").replaceChildren(
    button("undo", "Undo"),
    button("redo", "Redo"),
    h("details", { class: "menu" }, h("summary", {}, "History"), h("ol", { class: "history" }, ...entries)),
    h("button", { id: "policy", type: "button", "aria-expanded": String(app.drawer), click: () => ((app.drawer = !app.drawer), showDrawer(), showTop()) }, "Policy"),
  );
}

function showReceipt() {
  const tab = (/** @type {string} */ name, /** @type {string} */ label) =>
    h("button", { type: "button", class: "tab", "aria-pressed": String(app.shown === name), click: () => ((app.shown = name), showReceipt()) }, label);
  const text = app.shown === "python" ? app.receipt.python : app.receipt.command;
  const copy = h("button", { type: "button", click: () => void navigator.clipboard.writeText(text).then(() => announce("Copied.")) }, "Copy");
  const lines = app.lines.length;
  at("receipt").replaceChildren(
    h("div", { class: "tabs" }, tab("command", "Command"), tab("python", "Python")),
    h("code", { class: "line", tabindex: "0", role: "region", "aria-label": "The same as a command" }, text),
    copy,
    h("span", { class: "saved" }, `${app.state?.policy.path ?? ""}: ${lines ? `${lines} ${lines === 1 ? "line" : "lines"} changed` : "saved"}`),
  );
}

function showDrawer() {
  const drawer = at("drawer");
  drawer.hidden = !app.drawer;
  document.body.classList.toggle("with-drawer", app.drawer);
  if (!app.drawer) return;
  const { policy } = app.state;
  const area = h("textarea", { id: "text", spellcheck: "false", rows: 30, "aria-label": "The policy as text" });
  area.value = policy.text;
  const wrong = new Set(policy.problems.map(({ line }) => line));
  const lines = policy.text.split("\n").map((_, place) => h("span", { class: wrong.has(place + 1) ? "wrong" : app.lines.includes(place + 1) ? "new" : "" }, String(place + 1)));
  const save = async () => {
    try {
      app.state = (await post("text", { revision: policy.revision, text: area.value })).state;
      announce("Saved.");
      render();
    } catch (error) {
      show(error);
    }
  };
  drawer.replaceChildren(
    h("div", { class: "row" }, h("h2", {}, policy.path), h("button", { class: "primary", click: () => void save() }, "Save")),
    policy.problems.length > 0 ? troubles(policy.problems) : "",
    h("div", { class: "editor" }, h("div", { class: "numbers", "aria-hidden": "true" }, ...lines), area),
  );
}

/** Draw everything again; the focus stays on the same control. */
export function render() {
  if (!app.state) return;
  const focused = document.activeElement?.id;
  const [, , screen] = SCREENS.find(([name]) => name === current()) ?? SCREENS[0];
  showTop();
  showSteps();
  showReceipt();
  showDrawer();
  const main = at("main");
  const kept = document.getElementById("notice");
  try {
    main.replaceChildren(...[kept, screen.internal?.() && band(), h("h1", { id: "heading", tabindex: "-1" }, screen.heading), screen.render(), printed()].filter(Boolean));
  } catch (error) {
    show(error);
  }
  if (focused && focused !== "main") document.getElementById(focused)?.focus();
}

/** Screens with values of the table say so, on paper too. */
const band = () => h("p", { class: "internal" }, "Internal: this screen shows values from your table.");

/** What a printed page is about. */
const printed = () => h("p", { class: "printed" }, `${app.state.policy.path}, revision ${app.state.policy.revision}, ${new Date().toISOString().slice(0, 10)}`);

/** Listen for changes that other tabs, editors and jobs make. */
async function listen() {
  for (;;) {
    await follow("events", heard).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const back = await get("state").then(
      (state) => ((app.state = state), true),
      (error) => (show(error), !(error instanceof Refused)),
    );
    if (!back) return;
  }
}

/** @param {{number: number, revision: string, jobs: Job[], share: number}} line */
async function heard(line) {
  if (!app.state || (line.number === number && line.revision === app.state.policy.revision)) return;
  number = line.number;
  const editing = document.activeElement?.id === "text";
  app.state = await get("state");
  if (!editing) render();
}

async function begin() {
  document.getElementById("notice")?.remove();
  try {
    app.state = await get("state");
  } catch (error) {
    return show(error);
  }
  if (!location.hash.startsWith("#/")) location.hash = app.state.table ? "#/columns" : "#/table";
  render();
}

takeToken();
addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  render();
  at("heading")?.focus();
  scrollTo(0, 0);
});
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || (typing && event.target.type !== "range")) return;
  event.preventDefault();
  void turn(event.shiftKey ? "redo" : "undo");
});
await begin();
void listen();
