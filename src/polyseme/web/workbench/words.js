/** Texts that several screens share. */

/** Roles in words: what a column is, and what happens to it. @type {Record<string, [string, string]>} */
export const ROLES = {
  identifier: ["Identifies a person", "removed"],
  "quasi-identifier": ["Others may know it", "made coarser until several people look alike"],
  sensitive: ["Secret", "published as a set of candidates"],
  "sensitive-qid": ["Secret, but some may know it", "published as a set of candidates"],
  insensitive: ["Harmless", "published unchanged"],
  weight: ["Survey weight", "rounded"],
  "record-key": ["Same person", "removed; people are counted, not rows"],
  "shared-by": ["Same household", "removed; its members share one set"],
};

/** @param {number | null | undefined} share @param {number} [digits] */
export const percent = (share, digits = 1) =>
  share === null || share === undefined ? "not known" : share.toLocaleString("en", { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits });

/** @param {number | null | undefined} number */
export const count = (number) => (number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en"));

/** @param {number} number @param {string} one @param {string} [several] */
export const things = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

/** @param {string[]} names */
export const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);

/** The key of a policy's place: dots inside a name are quoted. @param {...string} parts */
export const place = (...parts) => parts.map((part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part))).join(".");
