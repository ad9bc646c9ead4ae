/** Hashes: of a campaign document, and of a sampling document with what it is about. */

import { utf8 } from "./stream.js";

/** @typedef {import("./stream.js").Bytes} Bytes */

/** @param {Bytes} bytes @returns {Promise<Bytes>} */
export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** @param {Bytes} bytes */
export const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** The id of a campaign with these bytes. @param {Bytes} bytes */
export const campaignId = async (bytes) => base64url(await sha256(bytes));

/**
 * SHA-256 of `[attribute, labels, document]` in hexadecimal.
 * @param {string} attribute
 * @param {(string | number | boolean)[]} labels
 * @param {Record<string, any>} document its fields in their order
 */
export async function fingerprint(attribute, labels, document) {
  const digest = await sha256(utf8(JSON.stringify([attribute, labels, document])));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
