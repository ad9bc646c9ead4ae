/**
 * Sending what waits in a queue, until the collector has it; the same as `polyseme.device.delivery` in Python.
 *
 * A campaign that names a relay is never sent to directly: the only other way out of here is the relay's module.
 */

import { MEDIA_TYPE } from "./campaign.js";
import { LONGEST_WAIT } from "./queue.js";
import { utf8 } from "./stream.js";

/**
 * @typedef {import("./queue.js").Queue} Queue
 * @typedef {import("./queue.js").Queued} Queued
 * @typedef {{status: number, wait: number, said: any}} Reply
 */

/** Milliseconds for one try. */
const PATIENCE = 30e3;
const LONGEST_BACKOFF = 3600e3;
const PROBLEM = "urn:polyseme:problem:";

/**
 * One tab at a time works on the queue; a tab that dies lets go of it.
 * @param {Queue} queue
 * @param {() => Promise<any>} work
 * @returns {Promise<any>}
 */
const alone = (queue, work) => navigator.locks.request(`${queue.name}-sending`, work);

/**
 * Send every report that is due.
 * @param {Queue} queue
 * @param {() => void} [changed] told after each
 * @param {boolean} [hurry] whether to try again now what failed before; the campaign's delay is waited out anyway
 * @returns {Promise<number | null>} when to call again, in milliseconds since 1970; null where nothing waits
 */
export const send = (queue, changed = () => {}, hurry = false) =>
  alone(queue, async () => {
    for (const item of (await queue.all()).filter(unsettled)) {
      const wait = (hurry ? item.earliest : item.due) - Date.now();
      if (wait <= 0 || wait > LONGEST_WAIT) {
        // Noted before it is sent: one that may have arrived is never just forgotten.
        const trying = await queue.change(item.id, ({ tries }) => ({ tries: tries + 1 }));
        if (trying) await tried(queue, trying);
        changed();
      }
    }
    const next = (await queue.all()).filter(unsettled).map(({ due }) => due);
    return next.length ? Math.min(...next) : null;
  });

/** @param {Queued} item */
const unsettled = ({ state }) => state === "waiting" || state === "leaving";

/** @param {Queue} queue @param {Queued} item */
async function tried(queue, item) {
  const leaving = item.state === "leaving";
  const [what, type, body] = leaving
    ? /** @type {const} */ (["withdrawals", "application/json", utf8(JSON.stringify({ id: item.id }))])
    : /** @type {const} */ (["reports", MEDIA_TYPE, item.body]);
  // What cannot be read does not come from the collector.
  const { status, wait, said } = await posted(item, what, type, body).catch(() => ({ status: 0, wait: 0, said: {} }));
  const problem = String(said.type).startsWith(PROBLEM) ? said.type.slice(PROBLEM.length) : "";
  // A yes is the collector's own, not that of a proxy that answers everything with 200.
  if (status >> 1 === 100 && said.status === (leaving ? "withdrawn" : "stored"))
    return queue.change(item.id, () => (leaving ? null : { state: "stored", said: "" }));
  // What another try would not change: every no but "too slow", "too often" and "later".
  if (problem && status < 500 && status !== 408 && status !== 429)
    return queue.change(item.id, () => ({ state: leaving ? "stored" : "refused", said: problem }));
  // Twice as long after every try, and never at the same moment as others.
  const backoff = Math.min(2 ** item.tries * 1e3, LONGEST_BACKOFF) * (0.5 + Math.random() / 2);
  return queue.change(item.id, () => ({ due: Date.now() + Math.max(wait, backoff), said: problem || "unreachable" }));
}

/**
 * @param {Queued} item
 * @param {string} what
 * @param {string} type
 * @param {import("./stream.js").Bytes} body
 * @returns {Promise<Reply>}
 */
async function posted({ address, campaign, relay, gateway, size }, what, type, body) {
  const url = `${address}/v1/campaigns/${campaign}/${what}`;
  const signal = AbortSignal.timeout(PATIENCE);
  if (relay) {
    const { postThrough } = await import("./ohttp.js");
    const { fromText } = await import("./tokens.js");
    const { status, headers, body: said } = await postThrough(relay, fromText(String(gateway)), url, type, body, size, signal);
    return read(status, new Headers(headers), new TextDecoder().decode(said));
  }
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": type },
    body,
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "error",
    cache: "no-store",
    signal,
  });
  return read(answer.status, answer.headers, await answer.text());
}

/** @param {number} status @param {Headers} headers @param {string} text @returns {Reply} */
function read(status, headers, text) {
  const wait = Number(headers.get("retry-after")) * 1e3 || 0;
  return { status, wait: Math.min(wait, LONGEST_BACKOFF), said: JSON.parse(text) ?? {} };
}

/**
 * Take a report back. One that was never tried only leaves the queue; otherwise the collector is asked to forget it,
 * by `send`, as long as that takes.
 * @param {Queue} queue
 * @param {string} id
 */
export const withdraw = (queue, id) =>
  alone(queue, () =>
    queue.change(id, ({ state, tries }) => (state === "waiting" && !tries ? null : { state: "leaving", due: 0, tries: 1 })));
