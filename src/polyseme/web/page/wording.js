/** A campaign's own words, in a language that it may not have. */

import { CampaignError } from "../client/polyseme-client.js";
import { filled } from "./dom.js";
import { base, textsOf } from "./texts.js";

/**
 * @typedef {import("../client/campaign.js").Campaign} Campaign
 * @typedef {import("../client/campaign.js").Spoken} Spoken
 * @typedef {import("./texts.js").Texts} Texts
 */

/** Throws unless there is everything to be read in every language. @param {Campaign} campaign */
export function requireTexts({ languages, title, questions, collection, open, protected: hidden }) {
  const { purpose, contact, opens, closes } = collection;
  const texts = [...open, ...hidden].flatMap(({ name, labels }) => {
    const { text, help = text, source = text, labels: spoken } = questions[name] ?? {};
    const right = languages.every((one) => !spoken || spoken[one]?.length === labels.length);
    return [text, help, source, right ? title : undefined];
  });
  const wrong =
    [title, purpose, ...texts].some((text) => languages.some((one) => typeof text?.[one] !== "string" || !text[one])) ||
    typeof contact !== "string" ||
    [opens, closes].some((moment) => moment !== null && !(Date.parse(moment) > 0));
  if (wrong) throw new CampaignError("questions: something cannot be read in every language");
}

const RANGE = /^\[(-?[\d.]+), (-?[\d.]+)\)$/;

/** What a person reads in one language. */
export class Wording {
  /** @param {Campaign} campaign @param {string} language */
  constructor(campaign, language) {
    this.campaign = campaign;
    this.language = language;
    /** The language as it is written where the reader lives. */
    this.locale = navigator.languages.find((one) => base(one) === base(language)) ?? language;
    /** @type {Texts} */
    this.texts = textsOf(language);
    const { languages } = campaign;
    /** The language of the questions. */
    this.own = languages.find((one) => one === language) ?? languages.find((one) => base(one) === base(language)) ?? languages[0];
    /** @type {Map<string, string[]>} */
    this.known = new Map();
  }

  /** @param {Spoken} text */
  said(text) {
    return text[this.own];
  }

  /** @param {string} column */
  question(column) {
    return this.said(this.campaign.questions[column].text);
  }

  /** The texts of a column's values. @param {string} column @returns {string[]} */
  labels(column) {
    let found = this.known.get(column);
    if (!found) {
      const { open, protected: hidden, questions } = this.campaign;
      const { labels } = /** @type {any} */ ([...open, ...hidden].find(({ name }) => name === column));
      found = questions[column].labels?.[this.own] ?? labels.map((/** @type {any} */ label) => this.#plain(String(label)));
      this.known.set(column, /** @type {string[]} */ (found));
    }
    return /** @type {string[]} */ (found);
  }

  /** Intervals as people say them. @param {string} label */
  #plain(label) {
    const parts = RANGE.exec(label);
    return parts ? filled(textsOf(this.own).range, { from: this.number(parts[1]), to: this.number(parts[2]) }) : label;
  }

  /** @param {string} digits */
  number(digits) {
    const value = Number(digits);
    // Years are not written with a separator.
    return Number.isFinite(value) && Math.abs(value) >= 10000 ? value.toLocaleString(this.own) : digits;
  }

  /** A probability, rounded up: it is a promise. @param {number} share */
  percent(share) {
    const up = Math.min(Math.ceil(share * 1e3 - 1e-4) / 1e3, 1);
    return up.toLocaleString(this.locale, { style: "percent", maximumFractionDigits: 1 });
  }

  /** A factor, rounded up. @param {number} value */
  factor(value) {
    const up = value < 10 ? Math.ceil(value * 10 - 1e-4) / 10 : Math.ceil(value - 1e-4);
    return up.toLocaleString(this.locale);
  }

  /** How common something is, as people say it: 1 in so many, or so many in 100. @param {number} share @param {string} one @param {string} many */
  commonness(share, one, many) {
    if (share >= 0.1) return filled(many, { count: Math.round(share * 100).toLocaleString(this.locale) });
    return filled(one, { count: Number((1 / share).toPrecision(2)).toLocaleString(this.locale) });
  }

  /** @param {number} moment */
  time(moment) {
    const near = new Date(moment).toDateString() === new Date().toDateString();
    /** @type {Intl.DateTimeFormatOptions} */
    const style = near ? { timeStyle: "medium" } : { dateStyle: "long", timeStyle: "short" };
    return new Date(moment).toLocaleString(this.locale, style);
  }

  /** @param {number} seconds */
  duration(seconds) {
    const [unit, one] = seconds >= 7200 ? ["hour", 3600] : seconds >= 120 ? ["minute", 60] : ["second", 1];
    const amount = Math.ceil(seconds / Number(one));
    return amount.toLocaleString(this.locale, { style: "unit", unit: String(unit), unitDisplay: "long" });
  }
}
