/** Sampling documents: the integers from which Python and JavaScript draw the same sets. */

import { integer, object, require, Workload } from "./fields.js";
import { KINDS } from "./kinds.js";
import { drawn } from "./stream.js";

/** The truth probability of sets that always hold the true value. */
const ONE = 2 ** 53;
/** Of a set: more do not fit into a report. */
const MOST_CANDIDATES = 1000;

export class Sampling {
  /** @type {number[] | undefined} */
  #inclusion;

  /**
   * Checks every number; throws a `CampaignError`.
   * @param {unknown} given the document
   * @param {string} [where] its place, for messages
   * @param {Workload} [workload] what the campaign may still ask of a device
   * @param {boolean} [declared] whether a prior is declared for its values
   */
  constructor(given, where = "document", workload = new Workload(), declared = false) {
    const document = object(given, where);
    require(Object.hasOwn(KINDS, document.kind), where);
    const [read, fields] = KINDS[document.kind];
    /** The document with its fields in their order. @type {import("./kinds.js").Document} */
    this.document = {};
    for (const key of `kind l p53 ${fields}`.split(" ")) if (key in document) this.document[key] = document[key];
    this.l = integer(document.l, 1, MOST_CANDIDATES, where);
    this.p53 = integer(document.p53, 0, ONE, where);
    this.kind = read(this.document, where, (units) => workload.charge(units, where), declared);
    this.size = this.kind.size;
  }

  /** The probability that each value is in a blind set. */
  get inclusion() {
    return (this.#inclusion ??= this.kind.inclusion());
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
