/**
 * Blind tokens (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): one report a person, without saying which.
 *
 * `blind` makes a random token and hides it; an issuer signs what it cannot read; `finalize` takes the hiding off. Keep
 * what `blind` returns (it is made to be put into IndexedDB) before the issuer is asked: it signs once.
 *
 * @typedef {{message: Uint8Array, inverse: bigint, blinded: Uint8Array}} Blinding
 */

const NONCE = 32;
const SALT = 48;
const PSS = { name: "RSA-PSS", saltLength: SALT };

/**
 * A fresh token for a campaign, blinded.
 *
 * @param {Uint8Array} key the issuer's public key (SPKI), from the campaign's document
 * @param {string} campaign the campaign's id
 * @returns {Promise<Blinding>}
 */
export async function blind(key, campaign) {
  const { n, e, length } = await publicKey(key);
  const message = tokenMessage(campaign, crypto.getRandomValues(new Uint8Array(NONCE)));
  const salt = crypto.getRandomValues(new Uint8Array(SALT));
  for (;;) {
    const factor = toInteger(crypto.getRandomValues(new Uint8Array(length)));
    const inverse = factor > 0n && factor < n ? inverted(factor, n) : null;
    if (inverse !== null) return blindMessage(n, e, length, message, salt, factor, inverse);
  }
}

/**
 * `Blind` of RFC 9474, with its random numbers given.
 *
 * @param {bigint} n @param {bigint} e @param {number} length
 * @param {Uint8Array} message @param {Uint8Array} salt
 * @param {bigint} factor @param {bigint} inverse
 */
export async function blindMessage(n, e, length, message, salt, factor, inverse) {
  const encoded = toInteger(await emsaPss(message, salt, n.toString(2).length - 1));
  return { message, inverse, blinded: fromInteger((encoded * power(factor, e, n)) % n, length) };
}

/**
 * The token, once the issuer has signed; throws where the signature is not the issuer's.
 *
 * @param {Uint8Array} key @param {Blinding} blinding @param {Uint8Array} blindSignature
 */
export async function finalize(key, blinding, blindSignature) {
  const { n, length, imported } = await publicKey(key);
  const signature = fromInteger((toInteger(blindSignature) * blinding.inverse) % n, length);
  const holds = await crypto.subtle.verify(PSS, imported, copy(signature), copy(blinding.message));
  if (blindSignature.length !== length || !holds) {
    throw new Error("the issuer's signature does not fit the key in the campaign's document");
  }
  return joined(blinding.message.slice(-NONCE), signature);
}

/**
 * Ask an issuer to sign; the same blinding may be sent again where the answer was lost.
 *
 * @param {string} issuer its address
 * @param {string} campaign
 * @param {string} invitation the code as it was handed out
 * @param {Blinding} blinding
 * @returns {Promise<Uint8Array>} the blind signature
 */
export async function askIssuer(issuer, campaign, invitation, blinding) {
  const answer = await fetch(`${issuer.replace(/\/+$/, "")}/v1/campaigns/${campaign}/tokens`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ invitation, blinded: toText(blinding.blinded) }),
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "error",
    cache: "no-store",
  });
  if (!answer.ok) throw Object.assign(new Error(`the issuer answered ${answer.status}`), { status: answer.status });
  return fromText((await answer.json()).signature);
}

/** The 16 bytes under which a report with this token is stored. @param {Uint8Array} token */
export async function reportId(token) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", copy(token))).slice(0, 16);
}

/**
 * Whether a code can be an invitation; catches every mistyped character before anything is sent.
 *
 * @param {string} text
 */
export function isInvitation(text) {
  const alphabet = "23456789ABCDEFGHJKMNPQRSTUVWXYZ";
  const places = [...text.toUpperCase().replace(/[\s-]/g, "")].map((character) => alphabet.indexOf(character));
  if (places.length !== 20 || places.includes(-1)) return false;
  return places.reduce((sum, place, at) => sum + (at + 1) * place, 0) % 31 === 0;
}

/** base64url without padding. @param {Uint8Array} content */
export const toText = (content) =>
  btoa(String.fromCharCode(...content)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** @param {string} text */
export const fromText = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));

/** @param {string} campaign @param {Uint8Array} nonce */
const tokenMessage = (campaign, nonce) => joined(new TextEncoder().encode(`polyseme-token-1\n${campaign}\n`), nonce);

/** @param {Uint8Array} spki */
async function publicKey(spki) {
  const algorithm = { name: "RSA-PSS", hash: "SHA-384" };
  const imported = await crypto.subtle.importKey("spki", copy(spki), algorithm, true, ["verify"]);
  const jwk = await crypto.subtle.exportKey("jwk", imported);
  const n = toInteger(fromText(/** @type {string} */ (jwk.n)));
  const bits = n.toString(2).length;
  if (bits < 2048 || bits > 4096 || bits % 8) throw new Error(`the issuer's key has ${bits} bits`);
  return { n, e: toInteger(fromText(/** @type {string} */ (jwk.e))), length: bits / 8, imported };
}

/**
 * EMSA-PSS-ENCODE of RFC 8017 with SHA-384.
 *
 * @param {Uint8Array} message @param {Uint8Array} salt @param {number} bits
 */
export async function emsaPss(message, salt, bits) {
  const length = Math.ceil(bits / 8);
  const digest = await sha384(joined(new Uint8Array(8), await sha384(message), salt));
  const block = new Uint8Array(length - digest.length - 1);
  block[block.length - salt.length - 1] = 1;
  block.set(salt, block.length - salt.length);
  for (let at = 0, round = 0; at < block.length; round += 1) {
    for (const byte of await sha384(joined(digest, new Uint8Array([0, 0, 0, round])))) {
      if (at < block.length) block[at++] ^= byte;
    }
  }
  block[0] &= 255 >> (8 * length - bits);
  return joined(block, digest, new Uint8Array([0xbc]));
}

/** @param {Uint8Array} content */
const sha384 = async (content) => new Uint8Array(await crypto.subtle.digest("SHA-384", copy(content)));

/** @param {bigint} base @param {bigint} exponent @param {bigint} n */
function power(base, exponent, n) {
  let result = 1n;
  for (let square = base % n; exponent > 0n; exponent >>= 1n, square = (square * square) % n) {
    if (exponent & 1n) result = (result * square) % n;
  }
  return result;
}

/** The inverse, or null where there is none. @param {bigint} value @param {bigint} n */
export function inverted(value, n) {
  let [left, right, first, second] = [n, value % n, 0n, 1n];
  while (right > 0n) {
    const times = left / right;
    [left, right, first, second] = [right, left - times * right, second, first - times * second];
  }
  return left === 1n ? ((first % n) + n) % n : null;
}

/** @param {Uint8Array} content */
function toInteger(content) {
  let digits = "0x0";
  for (const byte of content) digits += byte.toString(16).padStart(2, "0");
  return BigInt(digits);
}

/** @param {bigint} value @param {number} length */
function fromInteger(value, length) {
  const digits = value.toString(16).padStart(2 * length, "0");
  return Uint8Array.from({ length }, (_, at) => parseInt(digits.slice(2 * at, 2 * at + 2), 16));
}

/** @param {...Uint8Array} parts */
function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

/** Bytes of their own, as WebCrypto's types want them. @param {Uint8Array} content */
const copy = (content) => new Uint8Array(content);
