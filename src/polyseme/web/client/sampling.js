/** Sampling documents: the integers from which Python and JavaScript draw the same sets. */

import { integer, object, require } from "./fields.js";
import { KINDS, MOST_VALUES } from "./kinds.js";
import { drawn } from "./stream.js";

/** The truth probability of sets that always hold the true value. */
const ONE = 2 ** 53;

export class Sampling {
  /**
   * Checks every number; throws a `CampaignError`.
   * @param {unknown} given the document
   * @param {string} [where] its place, for messages
   */
  constructor(given, where = "document") {
    const document = object(given, where);
    require(Object.hasOwn(KINDS, document.kind), where);
    const [read, fields] = KINDS[document.kind];
    /** The document with its fields in their order. @type {import("./kinds.js").Document} */
    this.document = {};
    for (const key of `kind l p53 ${fields}`.split(" ")) if (key in document) this.document[key] = document[key];
    this.l = integer(document.l, 1, MOST_VALUES, where);
    this.p53 = integer(document.p53, 0, ONE, where);
    this.kind = read(this.document, where);
    this.size = this.kind.size;
  }

  /**
   * The set for a true value, ascending.
   * @param {number} code
   * @param {import("./stream.js").Bytes} subkey
   * @returns {Promise<number[]>}
   */
  async draw(code, subkey) {
    integer(code, 0, this.size - 1, "code");
    return drawn(subkey, (stream) =>
      this.p53 === ONE || stream.below(BigInt(ONE)) < BigInt(this.p53)
        ? this.kind.given(code, stream)
        : this.kind.blind(stream),
    );
  }
}
