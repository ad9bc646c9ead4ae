/**
 * Devices that publish before they send: the client of a Polyseme collector. `docs/collection/client.md` explains it.
 *
 *     const device = new Device("https://collect.example.org");
 *     const campaign = await device.campaign(id);               // its hash and every number are checked
 *     const report = await device.answer(campaign, { disease: 3 });  // all that will leave; show it to the person
 *     await device.keep(campaign, report);                      // on the disk
 *     await device.send();                                      // stored, or tried again later
 */

import { readCampaign } from "./campaign.js";
import { Queue } from "./queue.js";
import { answer } from "./report.js";
import { send, withdraw } from "./send.js";

export { needingConsent, oddsOf, uniformOf, worstOf } from "./campaign.js";
export { CampaignError } from "./fields.js";
export { stratumOf } from "./strata.js";
export { Queue };

/**
 * @typedef {import("./campaign.js").Campaign} Campaign
 * @typedef {import("./report.js").Report} Report
 * @typedef {import("./queue.js").Queued} Queued
 */

/** What a page or an app needs for one collector. Fires `change` when a report changed, in whichever tab. */
export class Device extends EventTarget {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {string} [address] of the collector @param {Queue} [queue] */
  constructor(address = location.origin, queue = new Queue()) {
    super();
    this.address = address.replace(/\/+$/, "");
    this.queue = queue;
    this.tabs = new BroadcastChannel(queue.name);
    this.tabs.onmessage = () => this.dispatchEvent(new Event("change"));
  }

  #changed() {
    this.tabs.postMessage(0);
    this.dispatchEvent(new Event("change"));
  }

  /** The campaign that an id pins. @param {string} id @returns {Promise<Campaign>} */
  async campaign(id) {
    const found = await fetch(`${this.address}/v1/campaigns/${id}`, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (!found.ok) throw Object.assign(new Error(`the collector answered ${found.status}`), { status: found.status });
    return readCampaign(new Uint8Array(await found.arrayBuffer()), id);
  }

  /**
   * The report of an answer, after this device has checked what is promised. Nothing is kept and nothing is sent.
   * @param {Campaign} campaign
   * @param {Record<string, number>} codes
   * @param {string} [token]
   * @param {boolean} [consent] whether the person agrees, or is asked before sending, where `needingConsent` names a column
   * @returns {Promise<Report>}
   */
  async answer(campaign, codes, token, consent) {
    const key = campaign.collection.draws === "sticky" ? await this.queue.key() : undefined;
    return answer(campaign, codes, { key, token, consent });
  }

  /**
   * Keep a report for sending; see `Queue.put`.
   * @param {Campaign} campaign @param {Report} report @param {boolean} [once] @param {boolean} [again]
   */
  async keep(campaign, report, once, again) {
    const kept = await this.queue.put(campaign, report, this.address, once, again);
    this.#changed();
    return kept;
  }

  /**
   * Send what is due, and again when more is, as long as the page is open.
   * @param {boolean} [now] whether to try again at once what failed before
   */
  async send(now) {
    const next = await send(this.queue, () => this.#changed(), now);
    clearTimeout(this.#timer);
    if (next !== null) this.#timer = setTimeout(() => this.send(), Math.min(Math.max(next - Date.now(), 50), 2 ** 30));
  }

  /** Take a report back, now or as soon as the collector can be reached. @param {string} id */
  async withdraw(id) {
    await withdraw(this.queue, id);
    this.#changed();
    return this.send();
  }

  /** The reports of a campaign on this device. @param {string} campaign @returns {Promise<Queued[]>} */
  async reports(campaign) {
    return (await this.queue.all()).filter((item) => item.campaign === campaign);
  }
}
