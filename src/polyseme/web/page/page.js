/** The respondent's page: answer, see what leaves, send. What was answered is in memory only, and never stored. */

import { requirePromises } from "../client/campaign.js";
import { CampaignError, Device, stratumOf } from "../client/polyseme-client.js";
import { isInvitation } from "../client/tokens.js";
import { filled, found, h } from "./dom.js";
import { questionField } from "./form.js";
import { consents, exactMessage, goodToKnow, leaving } from "./leaving.js";
import { keepForLater } from "./offline.js";
import { confirmed, standing, wordsFor } from "./standing.js";
import { direction, ownName, preferred, TEXTS, base, textsOf } from "./texts.js";
import { tokenFor } from "./tokens.js";
import { requireTexts, Wording } from "./wording.js";

/**
 * @typedef {import("../client/polyseme-client.js").Campaign} Campaign
 * @typedef {import("../client/polyseme-client.js").Report} Report
 * @typedef {import("../client/polyseme-client.js").Queued} Queued
 */

const id = location.pathname.split("/").pop() ?? "";
const address = new URL("..", location.href).href.replace(/\/+$/, "");
const LANGUAGE = "polyseme-language";

const device = new Device(address);
/** @type {Campaign} */
let campaign;
/** @type {Wording} */
let wording;
/** @type {Record<string, number>} the answers, as codes */
const codes = {};
let invitation = takeInvitation();
/** The report of each answer that was looked at: looking twice must not give a choice between two sets. @type {Map<string, Report>} */
const drawn = new Map();
/** @type {Report | null} */
let report = null;
/** Columns that this browser has answered for other campaigns. @type {string[]} */
let again = [];
/** What the person has agreed to. @type {Set<string>} */
const agreed = new Set();
/** @type {Queued | undefined} */
let item;
/** @type {"form" | "review" | "standing" | "gone" | "early" | "closed"} */
let screen = "form";
let notice = "";

/** A code in the link's fragment, which is never sent, and not left in the address bar. */
function takeInvitation() {
  const code = decodeURIComponent(location.hash.slice(1));
  if (code && code !== "main") history.replaceState(null, "", location.pathname);
  return code === "main" ? "" : code;
}

async function begin() {
  const texts = textsOf(navigator.language);
  if (!("locks" in navigator) || !globalThis.crypto?.subtle || !globalThis.indexedDB) return stop(texts.old, false);
  try {
    campaign = await device.campaign(id);
    requireTexts(campaign);
  } catch (error) {
    if (error instanceof CampaignError) return stop(texts.changed, false);
    return /** @type {any} */ (error).status === 404 ? stop(texts.nowhere, false) : stop(texts.absent, true);
  }
  try {
    requirePromises(campaign);
  } catch {
    return stop(texts.unkept, false);
  }
  chooseLanguages();
  device.addEventListener("change", () => refresh());
  addEventListener("online", () => device.send(true).catch(() => {}));
  addEventListener("offline", () => refresh());
  addEventListener("popstate", () => screen === "review" && ((screen = "form"), show(true)));
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && device.send().catch(() => {}));
  await refresh(false);
  if (screen !== "standing") await lookAtState();
  show(false);
  keepForLater(address, id);
  device.send().catch(() => {});
}

/** Nothing can be answered here. @param {string} text @param {boolean} again whether trying again may help */
function stop(text, again) {
  const texts = textsOf(navigator.language);
  document.documentElement.lang = TEXTS[base(navigator.language)] ? base(navigator.language) : "en";
  document.title = texts.broken;
  found("language").parentElement?.remove();
  const button = again && h("button", { type: "button", class: "primary", click: () => location.reload() }, texts.reload);
  const heading = h("h1", { tabindex: "-1", id: "heading" }, texts.broken);
  found("main").replaceChildren(h("section", { class: "verdict refused", id: "verdict", "data-state": "broken" }, heading, h("p", {}, text), button));
}

function chooseLanguages() {
  const { languages } = campaign;
  const offered = [...languages, ...Object.keys(TEXTS).filter((one) => !languages.some((other) => base(other) === one))];
  const select = /** @type {HTMLSelectElement} */ (found("language"));
  select.replaceChildren(...offered.map((one) => h("option", { value: one, lang: one }, ownName(one))));
  const wanted = navigator.languages.filter((one) => languages.some((other) => base(other) === base(one)));
  select.value = preferred(offered, remembered(), wanted);
  select.addEventListener("change", () => {
    remember(select.value);
    speak(select.value);
    show(false);
  });
  speak(select.value);
}

function remembered() {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    return null;
  }
}

/** @param {string} language */
function remember(language) {
  try {
    localStorage.setItem(LANGUAGE, language);
  } catch {
    // A browser that keeps nothing asks again the next time.
  }
}

/** @param {string} language */
function speak(language) {
  wording = new Wording(campaign, language);
  const { texts, own } = wording;
  const spoken = TEXTS[base(language)] ? language : "en";
  document.documentElement.lang = spoken;
  document.documentElement.dir = direction(language);
  const title = wording.said(campaign.title);
  document.title = title;
  found("name").textContent = title;
  found("name").lang = own;
  found("skip").textContent = texts.skip;
  found("language-label").textContent = texts.language;
  const [before, after] = texts.contact.split("{contact}");
  found("footer").replaceChildren(h("p", {}, before, contactLink(campaign.collection.contact), after));
}

/** Whom to ask: an address of mail or of a page can be followed. @param {string} contact */
function contactLink(contact) {
  const target = /^[^\s@/?&]+@[^\s@/?&]+\.[^\s@/?&]+$/.test(contact) ? `mailto:${contact}` : /^https:\/\/\S+$/.test(contact) ? contact : "";
  return target ? h("a", { href: target, rel: "noreferrer" }, contact) : contact;
}

/** Whether the campaign takes answers; without a network it is not known, and the queue will see. */
async function lookAtState() {
  try {
    const answer = await fetch(`${address}/v1/campaigns/${id}/state`, { credentials: "omit", cache: "no-store" });
    const { state } = await answer.json();
    if (state === "closed") screen = "closed";
    if (state === "draft") screen = "early";
  } catch {
    const { closes } = campaign.collection;
    if (closes && Date.parse(closes) < Date.now()) screen = "closed";
  }
}

/** Look at the queue: another tab, or this one, has changed it. */
async function refresh(draw = true) {
  const items = await device.reports(id).catch(() => []);
  const before = item;
  item = items.find(({ state }) => state !== "refused") ?? items[0];
  if (item) {
    const same = before && screen === "standing" && JSON.stringify(marks(before)) === JSON.stringify(marks(item));
    const moved = before && before.state !== item.state;
    screen = "standing";
    if (draw && !same) show(!before || Boolean(moved));
    if (moved) announce(wordsFor(wording, item)[0]);
  } else if (before && screen === "standing") {
    screen = "gone";
    report = null;
    drawn.clear();
    if (draw) show(true);
    announce(wording.texts.gone);
  }
}

/** @param {Queued} one */
const marks = ({ id: number, state, said, due, tries }) => [number, state, said, due, tries, navigator.onLine];

/** @param {string} text */
const announce = (text) => (found("announcer").textContent = text);

const SCREENS = { form, review, standing: stands, gone, early, closed };

/** @param {boolean} moves whether this is another screen, whose heading is read out */
function show(moves) {
  const held = document.activeElement?.id;
  found("main").replaceChildren(...SCREENS[screen]());
  document.documentElement.dataset.screen = screen;
  if (moves) {
    found("heading").focus({ preventScroll: true });
    scrollTo(0, 0);
  } else if (held) document.getElementById(held)?.focus({ preventScroll: true });
}

/** @param {number} now */
function steps(now) {
  const { texts } = wording;
  const items = texts.steps.map((name, at) => h("li", { "aria-current": at === now ? "step" : undefined, class: at < now ? "done" : undefined }, name));
  return h("ol", { class: "steps", "aria-label": texts.progress }, ...items);
}

function form() {
  const { texts, own } = wording;
  const hidden = new Set(campaign.protected.map(({ name }) => name));
  const names = campaign.document.columns.map((/** @type {{name: string}} */ { name }) => name);
  const missing = h("p", { class: "error", id: "missing", role: "alert" });
  /** @type {Map<string, import("./form.js").Field>} */
  const fields = new Map();
  names.forEach((/** @type {string} */ name, /** @type {number} */ at) => {
    const field = questionField(wording, name, `q${at}`, hidden.has(name), possible(name), codes[name], (code) => {
      codes[name] = code;
      missing.textContent = "";
      if (!hidden.has(name)) for (const other of hidden) narrow(other);
    });
    fields.set(name, field);
  });
  /** Offer what is possible together with the open answers. @param {string} name */
  function narrow(name) {
    const left = possible(name);
    if (!left.includes(codes[name])) delete codes[name];
    fields.get(name)?.offer(left);
  }
  const code = campaign.collection.tokens === "none" ? null : invitationField();
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const first = [...names.filter((/** @type {string} */ name) => codes[name] === undefined).map((/** @type {string} */ name) => {
      fields.get(name)?.complain(texts.required);
      return fields.get(name);
    }), ...(code?.problems() ?? [])][0];
    if (first) return (missing.textContent = texts.missing), first.focus();
    missing.textContent = await look();
  };
  return [
    steps(0),
    h("h1", { tabindex: "-1", id: "heading", lang: own }, wording.said(campaign.title)),
    h("p", { class: "lead", lang: own }, wording.said(campaign.collection.purpose)),
    h("p", { class: "note" }, texts.intro),
    h(
      "form",
      { novalidate: true, submit, id: "form" },
      ...[...fields.values()].map(({ element }) => element),
      code?.element,
      missing,
      h("div", { class: "actions" }, h("button", { class: "primary", id: "onward" }, texts.onward)),
      h("p", { class: "help" }, texts.nothingYet),
    ),
  ];
}

/** The codes of a column that can be true, as far as the open answers say. @param {string} name @returns {number[]} */
function possible(name) {
  const column = campaign.protected.find((one) => one.name === name);
  const all = [...(column ?? campaign.open.find((one) => one.name === name))?.labels.keys() ?? []];
  const known = column?.placing?.steps.every(({ column: other }) => codes[other] !== undefined) ?? true;
  return column && known ? column.strata[stratumOf(column.placing, codes)].codes : all;
}

function invitationField() {
  const { texts } = wording;
  const error = h("p", { class: "error", id: "code-error", hidden: true });
  const input = h("input", {
    type: "text",
    id: "code",
    autocomplete: "off",
    autocapitalize: "characters",
    spellcheck: "false",
    "aria-describedby": "code-help code-error",
    input: () => {
      invitation = input.value.trim();
      error.hidden = true;
      element.classList.remove("wrong");
    },
  });
  input.value = invitation;
  const element = h(
    "div",
    { class: "field", id: "code-field" },
    h("label", { class: "head", for: "code" }, h("span", { class: "question" }, texts.invitation)),
    h("p", { class: "help", id: "code-help" }, texts.invitationHelp),
    error,
    input,
  );
  const problems = () => {
    const problem = !invitation ? texts.needed : !isInvitation(invitation) ? texts.mistyped : "";
    error.hidden = !problem;
    element.classList.toggle("wrong", Boolean(problem));
    error.textContent = problem;
    input.setAttribute("aria-invalid", String(Boolean(problem)));
    return problem ? [input] : [];
  };
  return { element, problems };
}

/** Draw what would leave, once for each answer, and show it; a problem that another try may solve. */
async function look() {
  const key = JSON.stringify([codes, invitation]);
  let token;
  try {
    if (campaign.collection.tokens !== "none") token = await tokenFor(device.queue, campaign, invitation);
  } catch (error) {
    const { exchange, reasons } = wording.texts;
    return [401, 409].includes(/** @type {any} */ (error).status) ? reasons.token : exchange;
  }
  try {
    const made = drawn.get(key) ?? (await device.answer(campaign, codes, token, true));
    drawn.set(key, made);
    report = made;
    again = await device.queue.repeats(campaign, made);
  } catch (error) {
    stop(error instanceof CampaignError ? wording.texts.unkept : wording.texts.full, false);
    return "";
  }
  screen = "review";
  notice = "";
  history.pushState(null, "", location.pathname);
  show(true);
  return "";
}

function review() {
  const { texts } = wording;
  const current = /** @type {Report} */ (report);
  const { elements, missing } = consents(wording, again, agreed);
  const agree = (/** @type {Event} */ event) => {
    const at = missing();
    if (at < 0) return keep(event);
    notice = texts.agreeFirst;
    show(false);
    found(`agree${at}`).focus();
  };
  return [
    steps(1),
    h("h1", { tabindex: "-1", id: "heading" }, texts.leavesTitle),
    h("p", { class: "lead" }, texts.leavesIntro),
    leaving(wording, current, codes),
    goodToKnow(wording),
    exactMessage(wording, current),
    ...elements,
    h("p", { class: "error", role: "alert" }, notice),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", class: "primary", id: "send", click: agree }, texts.send),
      h("button", { type: "button", id: "back", click: () => history.back() }, texts.back),
    ),
  ];
}

/** On the disk first, then sent. @param {Event} event */
async function keep(event) {
  const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
  button.disabled = true;
  try {
    const kept = await device.keep(campaign, /** @type {Report} */ (report), true, true);
    if (!kept) announce(wording.texts.elsewhere);
  } catch {
    button.disabled = false;
    notice = wording.texts.full;
    return show(false);
  }
  for (const name of Object.keys(codes)) delete codes[name];
  drawn.clear();
  agreed.clear();
  await refresh();
  await device.send();
}

function stands() {
  const current = /** @type {Queued} */ (item);
  const retry = () => device.send(true).catch(() => {});
  const withdraw = async () => (await confirmed(wording)) && device.withdraw(current.id).catch(() => refresh());
  return [steps(2), standing(wording, current, { retry, withdraw, again: () => answerAgain(current.id) })];
}

/** Begin again after a refusal. @param {string} number */
async function answerAgain(number) {
  await device.queue.change(number, () => null);
  item = undefined;
  screen = "form";
  show(true);
}

/** @param {string} state @param {string} title @param {...(Node | string | false)} content */
const verdict = (state, title, ...content) => [
  h("section", { class: `verdict ${state}`, id: "verdict", "data-state": state }, h("h1", { tabindex: "-1", id: "heading" }, title), ...content),
];

function gone() {
  const { texts } = wording;
  const again = campaign.collection.tokens === "none" && h("button", { type: "button", id: "again", click: () => ((screen = "form"), show(true)) }, texts.again);
  return verdict("gone", texts.gone, h("p", {}, texts.goneText), again);
}

function early() {
  const { texts } = wording;
  const { opens } = campaign.collection;
  const when = opens && Date.parse(opens) > Date.now() && filled(texts.opens, { time: wording.time(Date.parse(opens)) });
  return verdict("early", texts.early, h("p", {}, [when, texts.earlyText].filter(Boolean).join(" ")));
}

function closed() {
  return verdict("closed", wording.texts.closed, h("p", {}, wording.texts.closedText));
}

begin();
