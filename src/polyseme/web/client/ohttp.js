/**
 * Oblivious HTTP (RFC 9458) for pages: the relay sees who sends, the collector sees what, neither sees both.
 *
 * One suite, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by WebCrypto (Chromium 133, Firefox 130, Safari 17,
 * Node 20). Where a browser has no X25519, nothing is sent: there is no other way out of this module than the relay.
 *
 * @typedef {{status: number, headers: [string, string][], body: Uint8Array}} Answer
 */

const KEM = 0x0020;
const SUITE = [0, 1, 0, 1];
const ENVELOPE = 512;

const utf8 = new TextEncoder();
/** @param {string} text */
const bytes = (text) => utf8.encode(text);

/** @param {...(Uint8Array | number[])} parts */
function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Send a request through a relay. Throws where the relay or the gateway does not answer; never sends another way.
 *
 * @param {string} relay its address
 * @param {Uint8Array} keys the gateway's key configurations, from the campaign's document
 * @param {string} url of the collector's endpoint; only what is sealed names it
 * @param {string} mediaType
 * @param {Uint8Array} body
 * @param {number} size bytes of a padded report in this campaign: all requests have the same length
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answer>}
 */
export async function postThrough(relay, keys, url, mediaType, body, size, signal) {
  const place = new URL(url);
  const message = requestMessage(
    ["POST", place.protocol.slice(0, -1), place.host, place.pathname],
    [["content-type", mediaType]],
    body,
  );
  const sealed = await encapsulate(configuration(keys), padded(message, size + ENVELOPE));
  const answer = await fetch(relay, {
    method: "POST",
    headers: { "content-type": "message/ohttp-req" },
    body: sealed.body,
    // Nothing that names the sender, and no way to be sent on to the collector itself.
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "error",
    cache: "no-store",
    signal,
  });
  if (answer.status !== 200 || answer.headers.get("content-type") !== "message/ohttp-res") {
    throw new Error(`the relay answered ${answer.status} and brought nothing back from the gateway`);
  }
  return responseParts(await sealed.opened(new Uint8Array(await answer.arrayBuffer())));
}

/**
 * The first key configuration for our algorithms in an `application/ohttp-keys` document.
 *
 * @param {Uint8Array} keys
 * @returns {{number: number, publicKey: Uint8Array}}
 */
export function configuration(keys) {
  for (let at = 0; at + 2 < keys.length; ) {
    const end = at + 2 + (keys[at] << 8) + keys[at + 1];
    const content = keys.subarray(at + 2, end);
    if (end > keys.length) break;
    if (content.length >= 41 && (content[1] << 8) + content[2] === KEM && hasSuite(content.subarray(37))) {
      return { number: content[0], publicKey: content.slice(3, 35) };
    }
    at = end;
  }
  throw new Error("the gateway has no key for the algorithms that this page knows");
}

/** @param {Uint8Array} suites */
function hasSuite(suites) {
  for (let at = 0; at + 4 <= suites.length; at += 4) {
    if (SUITE.every((byte, place) => suites[at + place] === byte)) return true;
  }
  return false;
}

/**
 * A sealed request, and the way to read its answer.
 *
 * @param {{number: number, publicKey: Uint8Array}} config
 * @param {Uint8Array} message
 * @param {CryptoKeyPair} [once] a key pair from a test vector, otherwise a fresh one
 */
export async function encapsulate(config, message, once) {
  const header = joined([config.number, KEM >> 8, KEM & 255], SUITE);
  const info = joined(bytes("message/bhttp request"), [0], header);
  const sealed = await seal(config.publicKey, info, message, new Uint8Array(), once);

  /** @param {Uint8Array} answer */
  async function opened(answer) {
    const secret = await sealed.exported(bytes("message/bhttp response"), 16);
    const prk = await hmac(joined(sealed.encapsulated, answer.subarray(0, 16)), secret);
    const key = await expand(prk, bytes("key"), 16);
    const nonce = await expand(prk, bytes("nonce"), 12);
    return aes("decrypt", key, nonce, new Uint8Array(), answer.subarray(16));
  }

  return { body: joined(header, sealed.encapsulated, sealed.ciphertext), opened };
}

/**
 * One message sealed for the holder of a public key: HPKE (RFC 9180), base mode.
 *
 * @param {Uint8Array} publicKey
 * @param {Uint8Array} info
 * @param {Uint8Array} message
 * @param {Uint8Array} aad
 * @param {CryptoKeyPair} [once]
 */
export async function seal(publicKey, info, message, aad, once) {
  const pair = once ?? /** @type {CryptoKeyPair} */ (await crypto.subtle.generateKey("X25519", false, ["deriveBits"]));
  const theirs = await crypto.subtle.importKey("raw", copy(publicKey), "X25519", false, []);
  const encapsulated = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const agreed = await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, pair.privateKey, 256);

  const kem = joined(bytes("KEM"), [KEM >> 8, KEM & 255]);
  const prk = await labeledExtract(kem, new Uint8Array(), "eae_prk", new Uint8Array(agreed));
  const shared = await labeledExpand(kem, prk, "shared_secret", joined(encapsulated, publicKey), 32);

  const suite = joined(bytes("HPKE"), [KEM >> 8, KEM & 255], SUITE);
  const context = joined(
    [0],
    await labeledExtract(suite, new Uint8Array(), "psk_id_hash", new Uint8Array()),
    await labeledExtract(suite, new Uint8Array(), "info_hash", info),
  );
  const secret = await labeledExtract(suite, shared, "secret", new Uint8Array());
  const key = await labeledExpand(suite, secret, "key", context, 16);
  const nonce = await labeledExpand(suite, secret, "base_nonce", context, 12);
  const exporter = await labeledExpand(suite, secret, "exp", context, 32);
  return {
    encapsulated,
    ciphertext: await aes("encrypt", key, nonce, aad, message),
    /** @param {Uint8Array} label @param {number} length */
    exported: (label, length) => labeledExpand(suite, exporter, "sec", label, length),
  };
}

/** @param {Uint8Array} suite @param {Uint8Array} salt @param {string} label @param {Uint8Array} secret */
const labeledExtract = (suite, salt, label, secret) =>
  hmac(salt.length ? salt : new Uint8Array(32), joined(bytes("HPKE-v1"), suite, bytes(label), secret));

/** @param {Uint8Array} suite @param {Uint8Array} key @param {string} label @param {Uint8Array} info @param {number} length */
const labeledExpand = (suite, key, label, info, length) =>
  expand(key, joined([length >> 8, length & 255], bytes("HPKE-v1"), suite, bytes(label), info), length);

/** HKDF-Expand; no more than one block of it is ever needed. @param {Uint8Array} key @param {Uint8Array} info @param {number} length */
const expand = async (key, info, length) => (await hmac(key, joined(info, [1]))).slice(0, length);

/** @param {Uint8Array} key @param {Uint8Array} content */
async function hmac(key, content) {
  const imported = await crypto.subtle.importKey("raw", copy(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, copy(content)));
}

/** @param {"encrypt" | "decrypt"} what @param {Uint8Array} key @param {Uint8Array} nonce @param {Uint8Array} aad @param {Uint8Array} content */
async function aes(what, key, nonce, aad, content) {
  const imported = await crypto.subtle.importKey("raw", copy(key), "AES-GCM", false, [what]);
  const parameters = { name: "AES-GCM", iv: copy(nonce), additionalData: copy(aad) };
  return new Uint8Array(await crypto.subtle[what](parameters, imported, copy(content)));
}

/** Bytes of their own, as WebCrypto's types want them. @param {Uint8Array} content */
const copy = (content) => new Uint8Array(content);

/**
 * A request in binary HTTP (RFC 9292), of known length.
 *
 * @param {string[]} control method, scheme, authority, path
 * @param {[string, string][]} headers
 * @param {Uint8Array} body
 */
export function requestMessage(control, headers, body) {
  const fields = joined(...headers.flat().map((part) => counted(bytes(part))));
  return joined([0], ...control.map((part) => counted(bytes(part))), counted(fields), counted(body), [0]);
}

/** @param {Uint8Array} message @param {number} size */
function padded(message, size) {
  if (message.length > size) throw new Error("the message does not fit the length that all have");
  const whole = new Uint8Array(size);
  whole.set(message);
  return whole;
}

/** @param {Uint8Array} content */
const counted = (content) => joined(number(content.length), content);

/** A whole number in 1, 2 or 4 bytes. @param {number} value */
function number(value) {
  if (value < 64) return [value];
  if (value < 16384) return [64 | (value >> 8), value & 255];
  return [128 | (value >> 24), (value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/**
 * The parts of an answer in binary HTTP.
 *
 * @param {Uint8Array} message
 * @returns {Answer}
 */
export function responseParts(message) {
  let at = 0;
  /** @param {number} count */
  function take(count) {
    if (at + count > message.length) throw new Error("the answer is cut short");
    at += count;
    return message.subarray(at - count, at);
  }
  function integer() {
    const length = 1 << (take(1)[0] >> 6);
    at -= 1;
    const [first, ...rest] = take(length);
    return rest.reduce((value, byte) => value * 256 + byte, first & 63);
  }
  const text = () => String.fromCharCode(...take(integer()));
  function fields() {
    /** @type {[string, string][]} */
    const found = [];
    for (const end = integer() + at; at < end; ) found.push([text().toLowerCase(), text()]);
    return found;
  }
  if (integer() !== 1) throw new Error("the answer is not one");
  let status = integer();
  while (status < 200) {
    fields();
    status = integer();
  }
  const headers = at < message.length ? fields() : [];
  const body = at < message.length ? take(integer()).slice() : new Uint8Array();
  return { status, headers, body };
}
