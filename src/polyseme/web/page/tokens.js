/** What an invitation code becomes: a token that goes with the report. */

import { askIssuer, blind, finalize, fromText, toText } from "../client/tokens.js";

/**
 * @typedef {import("../client/polyseme-client.js").Campaign} Campaign
 * @typedef {import("../client/polyseme-client.js").Queue} Queue
 */

/** The code without what people put between its groups. @param {string} code */
const bare = (code) => code.toUpperCase().replace(/[\s-]/g, "");

/**
 * The token for a code. For blind tokens the issuer signs one that it cannot read; what is needed to take the hiding off
 * is kept before it is asked, because it signs once.
 * @param {Queue} queue @param {Campaign} campaign @param {string} code
 * @returns {Promise<string>}
 */
export async function tokenFor(queue, campaign, code) {
  const { tokens, issuer } = campaign.collection;
  const clean = bare(code);
  if (tokens !== "blind-rsa" || !issuer) return clean;
  const key = fromText(issuer.key);
  const blinding = await queue.once(`blinding ${campaign.id} ${clean}`, await blind(key, campaign.id));
  const signature = await askIssuer(issuer.address, campaign.id, clean, blinding);
  return toText(await finalize(key, blinding, signature));
}
