/**
 * Random bytes of `polyseme-draw-1` and the whole numbers that are drawn from them: the key stream of AES-256 in
 * counter mode under a 32-byte subkey, the counter starting at zero. The same as `polyseme.device.chain` in Python.
 */

export const DRAW = "polyseme-draw-1";

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

/** @param {string} text @returns {Bytes} */
export const utf8 = (text) => new Uint8Array(new TextEncoder().encode(text));

/** A key of this device for sticky sets, which cannot be read out again. @returns {Promise<CryptoKey>} */
export const newDeviceKey = async () =>
  crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);

/** @param {number} count @returns {Bytes} */
export const randomBytes = (count) => crypto.getRandomValues(new Uint8Array(count));

/**
 * The subkey of a device for a true value.
 * @param {CryptoKey} key HMAC with SHA-256
 * @param {string} fingerprint of the sampling document
 * @param {number} stratum
 * @param {number} code the value among those of the stratum
 * @returns {Promise<Bytes>}
 */
export async function stickySubkey(key, fingerprint, stratum, code) {
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(`${DRAW}\n${fingerprint}\n${stratum}\n${code}`)));
}

/** There were too few bytes for a draw. */
class Exhausted extends Error {}

/** Whole numbers from the bytes of a key stream. */
export class KeyStream {
  #at = 0;

  /** @param {Bytes} bytes */
  constructor(bytes) {
    this.bytes = bytes;
  }

  /**
   * A uniform whole number from 0 to below `bound`; nothing is read where there is only one.
   * @param {bigint} bound
   * @returns {bigint}
   */
  below(bound) {
    if (bound < 1n) throw new RangeError("there is nothing to draw from");
    if (bound === 1n) return 0n;
    const digits = (bound - 1n).toString(2).length;
    const mask = (1n << BigInt(digits)) - 1n;
    for (;;) {
      const number = this.#read((digits + 7) >> 3) & mask;
      if (number < bound) return number;
    }
  }

  /** @param {number} count */
  #read(count) {
    const end = this.#at + count;
    if (end > this.bytes.length) throw new Exhausted();
    let hex = "0x";
    while (this.#at < end) hex += this.bytes[this.#at++].toString(16).padStart(2, "0");
    return BigInt(hex);
  }

  /** A place in proportion to its weight. @param {bigint[]} weights */
  pick(weights) {
    return this.between(sums(weights), 0, weights.length);
  }

  /**
   * A place k from `low` to below `high` in proportion to `totals[k + 1] - totals[k]`.
   * @param {bigint[]} totals
   * @param {number} low
   * @param {number} high
   */
  between(totals, low, high) {
    const target = totals[low] + this.below(totals[high] - totals[low]);
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (totals[middle] <= target) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** Sums of the numbers before each place. @param {bigint[]} weights */
export function sums(weights) {
  const found = [0n];
  for (const weight of weights) found.push(found[found.length - 1] + weight);
  return found;
}

/**
 * What `draw` makes of the stream of a subkey. WebCrypto gives bytes only later, so some are fetched in advance; where
 * they do not do, the draw is repeated from the beginning with more of the same stream.
 * @template T
 * @param {Bytes} subkey
 * @param {(stream: KeyStream) => T} draw
 * @returns {Promise<T>}
 */
export async function drawn(subkey, draw) {
  const key = await crypto.subtle.importKey("raw", subkey, "AES-CTR", false, ["encrypt"]);
  for (let count = 512; ; count *= 4) {
    const counter = new Uint8Array(16);
    const bytes = await crypto.subtle.encrypt({ name: "AES-CTR", counter, length: 128 }, key, new Uint8Array(count));
    try {
      return draw(new KeyStream(new Uint8Array(bytes)));
    } catch (error) {
      if (!(error instanceof Exhausted)) throw error;
    }
  }
}
