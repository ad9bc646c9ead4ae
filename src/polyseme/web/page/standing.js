/** What became of a report: queued and stored are different words. */

import { filled, h } from "./dom.js";
import { exactMessage, leaving } from "./leaving.js";

/**
 * @typedef {import("./wording.js").Wording} Wording
 * @typedef {import("../client/polyseme-client.js").Queued} Queued
 * @typedef {{retry: () => void, withdraw: () => void, again: () => void}} Actions
 */

/** What the collector says where no other answer would be taken either. */
const FINAL = new Set(["closed", "unknown"]);

/** Heading and text of a state. @param {Wording} wording @param {Queued} item @returns {[string, string[]]} */
export function wordsFor({ texts }, { state, said }) {
  const reasons = /** @type {Record<string, string>} */ (texts.reasons);
  switch (state) {
    case "stored":
      return [texts.stored, said ? [texts.storedText, said === "closed" ? texts.tooLate : reasons[said] ?? ""] : [texts.storedText]];
    case "refused":
      return [texts.refused, [reasons[said] ?? reasons.other, texts.refusedText]];
    case "leaving":
      return [texts.leaving, [texts.leavingText]];
    default:
      return [texts.queued, [texts.queuedText]];
  }
}

/** @param {Wording} wording @param {Queued} item */
function waitingFor(wording, { state, said, due, tries, earliest }) {
  const { texts, campaign } = wording;
  if (state !== "waiting" && state !== "leaving") return null;
  const hides = earliest > Date.now() && campaign.collection.delay > 0;
  const why = hides ? filled(texts.delay, { time: wording.duration(campaign.collection.delay) }) : !navigator.onLine ? texts.offline : said === "unreachable" ? texts.unreachable : said ? texts.busy : "";
  const now = due <= Date.now();
  const when = now ? (navigator.onLine ? texts.trying : "") : filled(texts.later, { time: wording.time(due) });
  return tries || !now || why ? h("p", { class: "help", id: "next-try" }, [why, when].filter(Boolean).join(" ")) : null;
}

/** @param {Wording} wording @param {Queued} item @param {Actions} actions */
export function standing(wording, item, actions) {
  const { texts } = wording;
  const [title, sentences] = wordsFor(wording, item);
  const report = JSON.parse(new TextDecoder().decode(item.body));
  const pending = item.state === "waiting" || item.state === "leaving";
  const delayed = item.earliest > Date.now();
  const buttons = [
    pending && !delayed && h("button", { type: "button", class: "primary", id: "retry", click: actions.retry }, texts.retry),
    item.state === "refused" && !FINAL.has(item.said) && h("button", { type: "button", class: "primary", id: "again", click: actions.again }, texts.again),
    (item.state === "waiting" || (item.state === "stored" && !item.said)) &&
      h("button", { type: "button", id: "withdraw", click: actions.withdraw }, texts.withdraw),
  ];
  return h(
    "div",
    {},
    h(
      "section",
      { class: `verdict ${item.state}`, "data-state": item.state, id: "verdict" },
      h("h1", { tabindex: "-1", id: "heading" }, title),
      ...sentences.filter(Boolean).map((sentence) => h("p", {}, sentence)),
      waitingFor(wording, item),
      h("div", { class: "actions" }, ...buttons),
    ),
    ...(item.state === "waiting" || item.state === "stored"
      ? [
          h("h2", {}, item.state === "stored" ? texts.wasSent : texts.willBeSent),
          leaving(wording, report, null),
          exactMessage(wording, report),
        ]
      : []),
  );
}

/**
 * Ask before a report is withdrawn.
 * @param {Wording} wording @returns {Promise<boolean>}
 */
export function confirmed({ texts }) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    h("h2", { id: "dialog-title" }, texts.withdrawTitle),
    h("p", {}, texts.withdrawText),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", class: "danger", id: "withdraw-yes", click: () => dialog.close("yes") }, texts.withdrawYes),
      h("button", { type: "button", id: "withdraw-no", click: () => dialog.close("") }, texts.withdrawNo),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    }),
  );
}
