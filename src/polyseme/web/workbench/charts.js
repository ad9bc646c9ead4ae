/** Charts as SVG: how often attackers guess right, and estimates with their intervals. A table of the numbers is beside each. */

import { h, s } from "../admin/dom.js";
import { count, percent } from "./words.js";

/** @typedef {import("./api.js").Attacker} Attacker */

/** A bar from before to after the release; the lower bound is dashed. @param {Attacker} one */
function bar(one) {
  const before = one.before ?? 0;
  const after = one.after ?? one.high ?? 1;
  const at = (/** @type {number} */ share) => `${100 * share}%`;
  return s(
    "svg",
    { class: "guess", width: "100%", height: 18, "aria-hidden": "true" },
    s("rect", { class: "track", x: 0, y: 2, width: "100%", height: 14 }),
    s("rect", { class: "before", x: 0, y: 2, width: at(before), height: 14 }),
    after > before && s("rect", { class: one.after === null ? "unknown" : "after", x: at(before), y: 2, width: at(after - before), height: 14 }),
    one.floor !== null && s("line", { class: "floor", x1: at(one.floor), x2: at(one.floor), y1: 0, y2: 18 }),
  );
}

/** How often each attacker guesses right, before and after the release. @param {Attacker[]} attackers @param {boolean} old */
export function attackersChart(attackers, old) {
  const rows = attackers.map((one) => {
    const number = one.after === null ? `not known; may be ${percent(one.high ?? 1, 0)}` : percent(one.after);
    const worst = one.worst_group !== null && one.after !== null && one.worst_group > one.after + 0.005 && one.group;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, one.title),
      h("td", { class: "wide" }, bar(one)),
      h("td", { class: "number", "data-label": "Before" }, percent(one.before)),
      h("td", { class: "number", "data-label": "After" }, h("strong", {}, number), worst && h("span", { class: "quiet small" }, `up to ${percent(one.worst_group)}: ${one.group}`)),
      h("td", { class: "number quiet", "data-label": "Lower bound" }, one.floor === null ? "–" : percent(one.floor)),
    );
  });
  const head = ["Attacker", "", "Before", "After", "Lower bound"].map((text, place) => h("th", { scope: "col", class: place > 1 ? "number" : place === 1 ? "wide" : null }, text || h("span", { class: "unseen" }, "Chart")));
  return h("table", { class: `attackers${old ? " old" : ""}` }, h("caption", {}, "How often would an attacker guess right?"), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

/** Estimates with intervals, and the truth where it is given. @param {any[]} cells @param {string} of @param {string | null} by @param {Record<string, number> | undefined} truth */
export function estimatesChart(cells, of, by, truth) {
  const most = Math.max(1, ...cells.map(({ high, estimate }) => high ?? estimate), ...Object.values(truth ?? {}));
  const at = (/** @type {number} */ number) => `${(100 * Math.max(number, 0)) / most}%`;
  const rows = cells.map((cell) => {
    const real = truth?.[cell[of]];
    const picture = s(
      "svg",
      { class: "estimate", width: "100%", height: 18, "aria-hidden": "true" },
      real !== undefined && s("rect", { class: "truth", x: 0, y: 4, width: at(real), height: 10 }),
      cell.low !== null && s("line", { class: "interval", x1: at(cell.low), x2: at(cell.high), y1: 9, y2: 9 }),
      s("circle", { class: "point", cx: at(cell.estimate), cy: 9, r: 4.5 }),
    );
    return h(
      "tr",
      {},
      by && h("th", { scope: "row" }, String(cell[by])),
      h("th", { scope: "row" }, String(cell[of])),
      h("td", { class: "wide" }, picture),
      h("td", { class: "number", "data-label": "Estimate" }, count(cell.estimate)),
      h("td", { class: "number", "data-label": "From" }, count(cell.low)),
      h("td", { class: "number", "data-label": "To" }, count(cell.high)),
      truth && h("td", { class: "number", "data-label": "Truth" }, count(real)),
    );
  });
  const names = [...(by ? [by] : []), of, "", "Estimate", "From", "To", ...(truth ? ["Truth"] : [])];
  const head = names.map((text) => h("th", { scope: "col", class: text === "" ? "wide" : ["Estimate", "From", "To", "Truth"].includes(text) ? "number" : null }, text || h("span", { class: "unseen" }, "Chart")));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Estimates" }, h("table", { class: "estimates" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}
