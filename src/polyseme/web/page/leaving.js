/** What leaves the device, in words: the sets, what they can tell at worst, and what else there is to know. */

import { worstOf } from "../client/polyseme-client.js";
import { filled, h } from "./dom.js";

/**
 * @typedef {import("./wording.js").Wording} Wording
 * @typedef {{id: string, open: Record<string, number>, sets: Record<string, number[]>, token?: string}} Report
 */

const ONE = 2 ** 53;

/**
 * @param {Wording} wording
 * @param {Report} report
 * @param {Record<string, number> | null} codes the answers, as long as they are remembered
 */
export function leaving(wording, report, codes) {
  const { texts, campaign } = wording;
  const sets = campaign.protected.map((column) => setShown(wording, column, report.sets[column.name], codes));
  const open = campaign.open.length > 0 && h(
    "section",
    { class: "panel" },
    h("h3", {}, texts.openTitle),
    h("dl", { class: "open", lang: wording.own }, ...campaign.open.flatMap(({ name }) => [
      h("dt", {}, wording.question(name)),
      h("dd", {}, wording.labels(name)[report.open[name]]),
    ])),
    h("p", { class: "help" }, texts.openNote),
  );
  return h("div", { class: "leaving" }, ...sets, open);
}

/**
 * @param {Wording} wording
 * @param {import("../client/campaign.js").Protected} column
 * @param {number[]} set
 * @param {Record<string, number> | null} codes
 */
function setShown(wording, column, set, codes) {
  const { texts, own } = wording;
  const labels = wording.labels(column.name);
  const mine = codes && h(
    "div",
    { class: "mine" },
    h("p", { class: "label" }, texts.yours),
    h("p", { class: "value", lang: own }, labels[codes[column.name]]),
  );
  const sent = h(
    "div",
    { class: "sent" },
    h("p", { class: "label" }, texts.instead),
    h("ul", { class: "set", lang: own }, ...set.map((code) => h("li", {}, labels[code]))),
  );
  return h(
    "section",
    { class: "panel" },
    h("h3", { lang: own }, wording.question(column.name)),
    h("div", { class: "pair" }, mine, sent),
    h("p", {}, inside(wording, column)),
    h("p", { class: "checked" }, promised(wording, column)),
  );
}

/** Whether the answer is in the set. @param {Wording} wording @param {import("../client/campaign.js").Protected} column */
function inside({ texts, locale }, { l, strata }) {
  const least = Math.min(...strata.map(({ sampling }) => sampling.p53));
  if (least === ONE) return filled(texts.one, { l });
  const share = (least / ONE).toLocaleString(locale, { style: "percent", maximumFractionDigits: 1 });
  return filled(texts.blind, { l, share });
}

/** What this device has found. @param {Wording} wording @param {import("../client/campaign.js").Protected} column */
function promised(wording, column) {
  const share = wording.percent(worstOf(column));
  return filled(column.posterior === null ? wording.texts.unpromised : wording.texts.checked, { share });
}

/** What else there is to know. @param {Wording} wording */
export function goodToKnow(wording) {
  const { texts, campaign } = wording;
  const { tokens, relay, draws, delay } = campaign.collection;
  const items = [
    texts.told[relay ? "relay" : "direct"],
    texts.told[tokens],
    texts.nothingElse,
    draws === "sticky" && texts.sticky,
    delay > 0 && filled(texts.delay, { time: wording.duration(delay) }),
    texts.withdrawing,
  ];
  const list = items.filter(Boolean).map((item) => h("li", {}, /** @type {string} */ (item)));
  return h("section", { class: "know" }, h("h3", {}, texts.knowTitle), h("ul", {}, ...list));
}

/** The message itself, for those who want to see it. @param {Wording} wording @param {Report} report */
export function exactMessage({ texts, campaign }, { id, open, sets, token }) {
  const shown = JSON.stringify({ id, open, sets, ...(token && { token }), pad: "000…" }, null, 1);
  const head = h("summary", {}, filled(texts.exact, { size: campaign.collection.size }));
  return h("details", { class: "exact" }, head, h("pre", { lang: "en", dir: "ltr", tabindex: "0" }, shown));
}
