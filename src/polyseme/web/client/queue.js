/**
 * Reports that wait to be sent, in IndexedDB: what was put here survives the tab, the browser and the power.
 *
 * A report is sent as often as it takes, always the same bytes under the same id, and the collector stores it once. The
 * database holds sets and ids, never an answer. The id of a report is enough to withdraw it. It also holds which
 * questions were answered: a second campaign that asks the same is noticed.
 */

import { require } from "./fields.js";
import { addsTo, askedBy } from "./recurrence.js";
import { reportBody } from "./report.js";
import { newDeviceKey } from "./stream.js";

/**
 * @typedef {"waiting" | "stored" | "refused" | "leaving"} State
 *   waiting to be sent, stored (the collector said so), refused for good, or on its way out again
 * @typedef {{
 *   id: string, campaign: string, address: string, relay: string | null, gateway?: string | null, size: number,
 *   body: import("./stream.js").Bytes, state: State, earliest: number, due: number, tries: number, said: string,
 * }} Queued
 *   earliest: the moment up to which the campaign's random delay lasts; due: when it may be tried (milliseconds since
 *   1970); said: the last problem, as its name in the protocol
 */

/** @typedef {import("./recurrence.js").Asked} Asked */

/** No report waits longer than this: the clock has been put back. */
export const LONGEST_WAIT = 8 * 24 * 3600e3;

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const result = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @param {Asked} one @param {Asked} other */
const same = (one, other) => one.name === other.name && one.drawn === other.drawn;

/** @param {string} campaign @param {Asked[]} asked @param {any[]} all of the database @returns {string[]} */
function repeated(campaign, asked, all) {
  const others = all.filter(({ id }) => id.startsWith("asked ") && id !== `asked ${campaign}`).flatMap(({ value }) => value);
  return asked.filter((one) => others.some((earlier) => addsTo(one, earlier))).map(({ name }) => name);
}

export class Queue {
  /** @type {Promise<IDBDatabase> | undefined} */
  #opened;

  /** @param {string} [name] of the database; all pages of a site that name the same one share it */
  constructor(name = "polyseme") {
    this.name = name;
  }

  #open() {
    const request = indexedDB.open(this.name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(this.name, { keyPath: "id" });
    return result(request).then((database) => {
      // Another version of the page may change the database; this one reopens it when it needs it.
      database.onversionchange = () => database.close();
      return database;
    });
  }

  /**
   * One transaction, on the disk when this resolves. Tried a second time on a fresh connection: browsers close them.
   * @template T
   * @param {(store: IDBObjectStore) => Promise<T>} work
   * @param {boolean} [again]
   * @returns {Promise<T>}
   */
  async #writing(work, again = true) {
    try {
      const database = await (this.#opened ??= this.#open());
      const transaction = database.transaction(this.name, "readwrite", { durability: "strict" });
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const [found] = await Promise.all([work(transaction.objectStore(this.name)), done]);
      return found;
    } catch (error) {
      this.#opened = undefined;
      if (!again) throw error;
      return this.#writing(work, false);
    }
  }

  /**
   * Keep a report; it is on the disk when this resolves. It is sent after a random part of the campaign's delay.
   * @param {import("./campaign.js").Campaign} campaign
   * @param {import("./report.js").Report} report
   * @param {string} address of the collector
   * @param {boolean} [once] whether to leave it where this device has a report for the campaign already
   * @param {boolean} [again] whether the person agrees where `repeats` names a question; otherwise it is refused
   * @returns {Promise<boolean>} whether it was kept
   */
  put(campaign, report, address, once = false, again = false) {
    const { relay, size, delay, gateway, draws, reports } = campaign.collection;
    require(!relay || gateway, "collection.gateway");
    const due = Date.now() + Math.random() * delay * 1e3;
    /** @type {Queued} */
    const item = {
      id: report.id,
      campaign: campaign.id,
      address,
      relay,
      gateway,
      size,
      body: reportBody(report, size),
      state: "waiting",
      earliest: due,
      due,
      tries: 0,
      said: "",
    };
    const asked = askedBy(campaign, report);
    return this.#writing(async (store) => {
      /** @type {any[]} */
      const all = await result(store.getAll());
      const kept = all.filter(({ campaign, state }) => campaign === item.campaign && state !== "refused").length;
      const there = once && kept > 0;
      // Readers of the release count on how many reports one draw stands for.
      require(there || draws === "fresh" || kept < (reports ?? 1), "collection.reports", "no more reports of a device");
      const [name] = again || there ? [] : repeated(campaign.id, asked, all);
      require(name === undefined, String(name), "answered for another campaign, and both sets could be intersected");
      if (!there) {
        const id = `asked ${campaign.id}`;
        const before = all.find((one) => one.id === id)?.value ?? [];
        store.put({ id, value: [...before.filter((/** @type {Asked} */ one) => !asked.some((other) => same(one, other))), ...asked] });
        store.put(item);
      }
      return !there;
    });
  }

  /**
   * The columns whose sets could be intersected with those that this device sent to other campaigns.
   * @param {import("./campaign.js").Campaign} campaign @param {import("./report.js").Report} report
   * @returns {Promise<string[]>}
   */
  async repeats(campaign, report) {
    const all = await this.#writing((store) => result(store.getAll()));
    return repeated(campaign.id, askedBy(campaign, report), all);
  }

  /** Every report. @returns {Promise<Queued[]>} */
  async all() {
    const found = await this.#writing((store) => result(store.getAll()));
    return found.filter(({ body }) => body);
  }

  /**
   * Change a report; nothing where it is gone.
   * @param {string} id
   * @param {(item: Queued) => Partial<Queued> | null} change null forgets it
   * @returns {Promise<Queued | undefined>} as it is afterwards
   */
  change(id, change) {
    return this.#writing(async (store) => {
      /** @type {Queued | undefined} */
      const item = await result(store.get(id));
      const changed = item && change(item);
      if (changed) store.put(Object.assign(/** @type {Queued} */ (item), changed));
      else if (item) store.delete(id);
      return changed ? item : undefined;
    });
  }

  /**
   * What is kept under a name: this value, unless there is one already.
   * @template T @param {string} id @param {T} value @returns {Promise<T>}
   */
  once(id, value) {
    return this.#writing(async (store) => {
      const found = await result(store.get(id));
      if (!found) store.put({ id, value });
      return found ? found.value : value;
    });
  }

  /** The key of this device for sticky sets; made once, and never readable. @returns {Promise<CryptoKey>} */
  async key() {
    return this.once("key", await newDeviceKey());
  }
}
