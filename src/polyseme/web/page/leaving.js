/** What leaves the device, in words: the sets, what they can tell at worst, and what else there is to know. */

import { isEven, needingConsent } from "../client/campaign.js";
import { oddsOf, stratumOf, uniformOf, worstOf } from "../client/polyseme-client.js";
import { filled, h } from "./dom.js";

/**
 * @typedef {import("./wording.js").Wording} Wording
 * @typedef {import("../client/campaign.js").Protected} Column
 * @typedef {{id: string, open: Record<string, number>, sets: Record<string, number[]>, token?: string}} Report
 */

const ONE = 2 ** 53;
/** Factors below this change nothing that anyone would notice. */
const FAIR = 1.0005;

/**
 * @param {Wording} wording
 * @param {Report} report
 * @param {Record<string, number> | null} codes the answers, as long as they are remembered
 */
export function leaving(wording, report, codes) {
  const { texts, campaign } = wording;
  const sets = campaign.protected.map((column) => setShown(wording, column, report, codes));
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
 * @param {Column} column
 * @param {Report} report
 * @param {Record<string, number> | null} codes
 */
function setShown(wording, column, report, codes) {
  const { texts, own } = wording;
  const set = report.sets[column.name];
  const labels = wording.labels(column.name);
  const assumed = assumedShares(column, report);
  /** @param {number} code @param {string} one @param {string} many */
  const common = (code, one, many) => assumed && wording.commonness(assumed(code), one, many);
  const mine = codes && h(
    "div",
    { class: "mine" },
    h("p", { class: "label" }, texts.yours),
    h("p", { class: "value", lang: own }, labels[codes[column.name]]),
    h("p", { class: "assumed" }, common(codes[column.name], texts.assumedOne, texts.assumedMany) ?? texts.assumedEven),
  );
  const sent = h(
    "div",
    { class: "sent" },
    h("p", { class: "label" }, texts.instead),
    h("ul", { class: "set", lang: own }, ...set.map((code) => {
      const note = common(code, texts.oneIn, texts.manyIn);
      return h("li", {}, labels[code], note && h("small", { lang: wording.language }, note));
    })),
  );
  return h(
    "section",
    { class: "panel" },
    h("h3", { lang: own }, wording.question(column.name)),
    h("div", { class: "pair" }, mine, sent),
    h("p", {}, inside(wording, column)),
    assumed && h("p", { class: "help", id: `source-${column.name}` }, ...sourceOf(wording, column.name)),
    h("div", { class: needingConsent(wording.campaign).includes(column) ? "checked doubtful" : "checked" }, ...findings(wording, column)),
  );
}

/**
 * The declared share of each code of a column for people with these open answers; nothing where all are alike.
 * @param {Column} column @param {Report} report @returns {((code: number) => number) | null}
 */
function assumedShares({ placing, strata }, report) {
  const { codes, prior } = strata[stratumOf(placing, report.open)];
  return prior && !isEven(prior) ? (code) => prior[codes.indexOf(code)] : null;
}

/** Where the organizers have their shares from. @param {Wording} wording @param {string} name */
function sourceOf(wording, name) {
  const [before, after] = wording.texts.source.split("{source}");
  const source = wording.campaign.questions[name].source;
  return [before, h("span", { lang: wording.own }, source ? wording.said(source) : ""), after];
}

/** Whether the answer is in the set. @param {Wording} wording @param {Column} column */
function inside({ texts, locale, campaign }, column) {
  const { l, strata } = column;
  const least = Math.min(...strata.map(({ sampling }) => sampling.p53));
  if (least === ONE) return filled(needingConsent(campaign).includes(column) ? texts.oneOnly : texts.one, { l });
  const share = (least / ONE).toLocaleString(locale, { style: "percent", maximumFractionDigits: 1 });
  return filled(texts.blind, { l, share });
}

/** What this device has found. @param {Wording} wording @param {Column} column */
function findings(wording, column) {
  const { texts } = wording;
  const odds = oddsOf(column);
  const sentences = [
    filled(texts.checked, { share: wording.percent(worstOf(column)) }),
    column.strata.some(({ prior }) => !isEven(prior)) && filled(texts.uniform, { share: wording.percent(uniformOf(column)) }),
    odds < FAIR ? texts.fair : filled(texts.odds, { factor: wording.factor(odds) }),
  ];
  return sentences.filter(Boolean).map((sentence) => h("p", {}, /** @type {string} */ (sentence)));
}

/**
 * What a person has to agree to before a report is sent, each with a box to tick.
 * @param {Wording} wording @param {string[]} again columns that this device has answered for other campaigns
 * @param {Set<string>} agreed what was ticked
 */
export function consents(wording, again, agreed) {
  const { texts, campaign } = wording;
  const needed = [
    ...needingConsent(campaign).map((column) => ({
      id: `odds ${column.name}`,
      text: filled(texts.consentOdds, {
        question: wording.question(column.name),
        factor: wording.factor(oddsOf(column)),
        share: wording.percent(uniformOf(column)),
      }),
    })),
    ...again.map((name) => ({ id: `again ${name}`, text: filled(texts.consentAgain, { question: wording.question(name) }) })),
  ];
  const boxes = needed.map(({ id, text }, at) => {
    const box = h("input", { type: "checkbox", id: `agree${at}`, "aria-describedby": `agree${at}-text`, change: () => (box.checked ? agreed.add(id) : agreed.delete(id)) });
    box.checked = agreed.has(id);
    return h("div", { class: "consent" }, h("p", { id: `agree${at}-text` }, text), h("label", { class: "option", for: box.id }, box, h("span", {}, texts.agree)));
  });
  const asked = h("section", { class: "panel consents", id: "consents" }, h("h3", {}, texts.consentTitle), ...boxes);
  const missing = () => needed.findIndex(({ id }) => !agreed.has(id));
  return { elements: boxes.length ? [asked] : [], missing };
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
