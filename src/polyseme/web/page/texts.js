/**
 * What the page itself says. The questions come from the campaign's document, in the languages that it has.
 *
 * The sentences on the channel and on tokens are those of `polyseme.device.protected`; a test compares them.
 */

import english from "./texts.en.js";
import french from "./texts.fr.js";
import german from "./texts.de.js";
import japanese from "./texts.ja.js";
import spanish from "./texts.es.js";

/** @typedef {typeof english} Texts */

/** @type {Record<string, Texts>} */
export const TEXTS = { en: english, de: german, fr: french, es: spanish, ja: japanese };

const RIGHT_TO_LEFT = new Set(["ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"]);

/** @param {string} language */
export const base = (language) => language.toLowerCase().split("-")[0];

/** The texts of a language, in English where the page does not speak it. @param {string} language */
export const textsOf = (language) => TEXTS[base(language)] ?? english;

/** @param {string} language */
export const direction = (language) => (RIGHT_TO_LEFT.has(base(language)) ? "rtl" : "ltr");

/** A language's own name for itself. @param {string} language */
export function ownName(language) {
  try {
    const name = new Intl.DisplayNames([language], { type: "language" }).of(language) ?? language;
    return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
  } catch {
    return language;
  }
}

/**
 * The language to begin with: the one that was chosen before, else the first of the browser's that the campaign has,
 * else the first of the campaign's.
 * @param {string[]} offered @param {string | null} chosen @param {readonly string[]} wanted
 */
export function preferred(offered, chosen, wanted) {
  if (chosen && offered.includes(chosen)) return chosen;
  const fits = wanted.map((one) => offered.find((other) => base(other) === base(one)));
  return fits.find((one) => one) ?? offered[0];
}
