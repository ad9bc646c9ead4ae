/** The questions. Few values are radio buttons, some a list, many a list that can be searched. */

import { filled, h } from "./dom.js";

/**
 * @typedef {import("./wording.js").Wording} Wording
 * @typedef {{
 *   element: HTMLElement, offer: (codes: number[]) => void, complain: (problem: string) => void, focus: () => void,
 * }} Field
 */

const FEW = 8;
const SOME = 20;
/** Values that are shown at a time; the search finds the others. */
const SHOWN = 50;

/** @param {string} text */
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLocaleLowerCase();

/**
 * A question for one column.
 * @param {Wording} wording
 * @param {string} column
 * @param {string} id
 * @param {boolean} hidden whether the answer stays on the device
 * @param {number[]} codes that can be chosen
 * @param {number | undefined} chosen
 * @param {(code: number) => void} choose
 * @returns {Field}
 */
export function questionField(wording, column, id, hidden, codes, chosen, choose) {
  const { texts, own } = wording;
  const labels = wording.labels(column);
  const help = wording.campaign.questions[column].help;
  const error = h("p", { class: "error", id: `${id}-error`, hidden: true });
  const make = labels.length <= FEW ? radios : labels.length <= SOME ? dropdown : searchable;
  const note = help && h("p", { class: "help", id: `${id}-help`, lang: own }, wording.said(help));
  const tag = h("span", { class: hidden ? "tag stays" : "tag" }, hidden ? texts.stays : texts.goes);
  const described = help ? `${id}-help ${id}-error` : `${id}-error`;
  const one = { wording, labels, id, described, chosen, choose: (/** @type {number} */ code) => (complain(""), choose(code)) };
  const made = make(one, codes);
  const question = h("span", { class: "question", lang: own }, wording.question(column));
  const head = made.label ? h("label", { class: "head", for: made.label }, question, " ", tag) : h("legend", { class: "head" }, question, " ", tag);
  const element = h(made.label ? "div" : "fieldset", { class: "field", id, ...(!made.label && { "aria-describedby": described }) }, head, note, error, made.body);

  /** @param {string} problem */
  function complain(problem) {
    error.textContent = problem;
    error.hidden = !problem;
    element.classList.toggle("wrong", Boolean(problem));
    for (const input of element.querySelectorAll("input, select")) input.setAttribute("aria-invalid", String(Boolean(problem)));
  }
  return { element, offer: made.offer, complain, focus: () => /** @type {HTMLElement} */ (element.querySelector("input, select")).focus() };
}

/**
 * @typedef {{
 *   wording: Wording, labels: string[], id: string, described: string, chosen: number | undefined,
 *   choose: (code: number) => void,
 * }} Choice
 */

/** @param {Choice} choice @param {number} code */
function radio(choice, code) {
  const input = h("input", {
    type: "radio",
    name: choice.id,
    value: code,
    id: `${choice.id}-${code}`,
    change: () => ((choice.chosen = code), choice.choose(code)),
  });
  input.checked = choice.chosen === code;
  return h("label", { class: "option", for: input.id }, input, h("span", { lang: choice.wording.own }, choice.labels[code]));
}

/** @param {Choice} choice @param {number[]} codes */
function radios(choice, codes) {
  const body = h("div", { class: "options" });
  /** @param {number[]} offered */
  const offer = (offered) => body.replaceChildren(...offered.map((code) => radio(choice, code)));
  offer(codes);
  return { label: "", body, offer };
}

/** @param {Choice} choice @param {number[]} codes */
function dropdown(choice, codes) {
  const { wording, labels, id, described } = choice;
  const select = h("select", {
    id: `${id}-list`,
    "aria-describedby": described,
    change: () => ((choice.chosen = Number(select.value)), choice.choose(choice.chosen)),
  });
  /** @param {number[]} offered */
  function offer(offered) {
    const first = h("option", { value: "", disabled: true }, wording.texts.choose);
    select.replaceChildren(first, ...offered.map((code) => h("option", { value: code, lang: wording.own }, labels[code])));
    const there = choice.chosen !== undefined && offered.includes(choice.chosen);
    select.value = there ? String(choice.chosen) : "";
  }
  offer(codes);
  return { label: select.id, body: select, offer };
}

/** @param {Choice} choice @param {number[]} codes */
function searchable(choice, codes) {
  const { wording, labels, id } = choice;
  const { texts } = wording;
  const plainly = labels.map(plain);
  const found = h("p", { class: "help", id: `${id}-found`, role: "status" });
  const list = h("div", { class: "options long" });
  const picked = h("p", { class: "picked", lang: wording.own, hidden: true });
  const input = h("input", {
    type: "search",
    id: `${id}-search`,
    "aria-label": texts.search,
    "aria-describedby": found.id,
    placeholder: texts.search,
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    input: () => show(),
    keydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") event.preventDefault();
      if (event.key === "ArrowDown") /** @type {HTMLElement | null} */ (list.querySelector("input"))?.focus();
    },
  });
  let offered = codes;
  const { choose } = choice;
  choice.choose = (code) => (tell(), choose(code));

  function tell() {
    picked.hidden = choice.chosen === undefined;
    if (choice.chosen !== undefined) picked.textContent = filled(texts.chosen, { label: labels[choice.chosen] });
  }
  function show() {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    const fitting = offered.filter((code) => words.every((word) => plainly[code].includes(word)));
    list.replaceChildren(...fitting.slice(0, SHOWN).map((code) => radio(choice, code)));
    list.hidden = !fitting.length;
    const counts = { shown: Math.min(fitting.length, SHOWN), count: offered.length };
    const more = fitting.length > SHOWN ? ` ${texts.narrow}` : "";
    found.textContent = fitting.length ? filled(texts.shown, counts) + more : texts.nothing;
  }
  /** @param {number[]} now */
  function offer(now) {
    offered = now;
    show();
    tell();
  }
  offer(codes);
  return { label: "", body: h("div", { class: "searchable" }, input, found, list, picked), offer };
}
