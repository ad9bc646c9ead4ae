/** Charts as SVG: how far a campaign has come, and shares with their intervals. */

import { h, s } from "./dom.js";

/** @typedef {import("./api.js").Shares} Shares */

const ROW = 30;
const NARROW = 560;
const AXIS = 34;

/** @param {number | null} share @param {number} [digits] */
export const percent = (share, digits = 1) =>
  share === null ? "not known" : share.toLocaleString("en", { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Steps of an axis that people can count with. @param {number} low @param {number} high @param {number} most */
export function ticks(low, high, most) {
  const rough = (high - low) / most;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * ten).find((one) => one >= rough - 1e-12) ?? 10 * ten;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9; at += 1) found.push(at * step || 0);
  return { found, step };
}

/**
 * Reports against the minimum and the plan.
 * @param {number} reports @param {number} minimum @param {number} planned
 */
export function progress(reports, minimum, planned) {
  const most = Math.max(reports, minimum, planned, 1);
  const at = (/** @type {number} */ number) => `${(100 * number) / most}%`;
  const bar = s(
    "svg",
    { class: "progress", width: "100%", height: 14, role: "img", "aria-label": `${reports} reports; minimum ${minimum}, planned ${planned}` },
    s("rect", { class: "track", x: 0, y: 3, width: "100%", height: 8, rx: 4 }),
    reports > 0 && s("rect", { class: reports >= minimum ? "done" : "short", x: 0, y: 3, width: at(reports), height: 8, rx: 4 }),
    minimum < most && s("rect", { class: "mark", x: at(minimum), y: 0, width: 2, height: 14 }),
  );
  return bar;
}

/**
 * The range of all intervals, with zero in it.
 * @param {Shares} shares @param {number[]} shown @returns {[number, number]}
 */
function range({ groups }, shown) {
  const low = groups.flatMap((group) => shown.map((code) => group.low[code] ?? group.share[code] ?? 0));
  const high = groups.flatMap((group) => shown.map((code) => group.high[code] ?? group.share[code] ?? 0));
  return [Math.min(0, ...low), Math.max(...high, 0.01)];
}

/**
 * Points with intervals, one panel a group, all on one axis.
 * @param {Shares} shares @param {number[]} shown the codes, in their order @param {number} width in pixels
 */
export function sharesChart(shares, shown, width) {
  const [low, high] = range(shares, shown);
  const narrow = width < NARROW;
  const longest = Math.max(...shown.map((code) => shares.labels[code].length));
  const left = narrow ? 14 : Math.min(Math.max(longest * 7.2 + 16, 90), width * 0.36);
  const right = 76;
  const row = narrow ? ROW + 16 : ROW;
  const scale = (/** @type {number} */ share) => left + ((share - low) / (high - low)) * (width - left - right);
  const { found, step } = ticks(low, high, narrow ? 4 : 8);
  const digits = step * 100 < 1 ? 1 : 0;
  const panels = shares.groups.map((group) => {
    const height = shown.length * row + AXIS;
    const bottom = shown.length * row + 4;
    const grid = found.map((at) => s("line", { class: at === 0 ? "zero" : "grid", x1: scale(at), x2: scale(at), y1: 0, y2: bottom }));
    const numbers = found.map((at) => s("text", { class: "tick", x: scale(at), y: bottom + 18, "text-anchor": "middle" }, percent(at, digits)));
    const rows = shown.map((code, place) => mark(shares.labels[code], group, code, place * row, { scale, left, narrow, width, row }));
    const name = `${shares.question}${group.name ? `, ${group.name}` : ""}: shares with ${percent(shares.level, 0)} intervals`;
    const drawing = s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }, ...grid, ...rows, ...numbers);
    const caption = group.name && h("h4", {}, group.name, h("span", { class: "quiet" }, ` ${group.records.toLocaleString("en")} reports`));
    return h("figure", {}, caption, drawing);
  });
  return h("div", { class: "panels" }, ...panels);
}

/**
 * One share.
 * @param {string} label @param {import("./api.js").Group} group @param {number} code @param {number} top
 * @param {{scale: (share: number) => number, left: number, narrow: boolean, width: number, row: number}} place
 */
function mark(label, group, code, top, { scale, left, narrow, width, row }) {
  const [share, low, high] = [group.share[code], group.low[code], group.high[code]];
  const middle = top + (narrow ? row - 12 : row / 2);
  const room = Math.floor((narrow ? width - 16 : left - 14) / 7.2);
  const text = label.length > room ? `${label.slice(0, room - 1)}…` : label;
  return s(
    "g",
    { class: "row" },
    s("title", {}, `${label}: ${percent(share)}, from ${percent(low)} to ${percent(high)}`),
    narrow
      ? s("text", { class: "label", x: left + 6, y: top + 18 }, text)
      : s("text", { class: "label", x: left - 12, y: middle + 4.5, "text-anchor": "end" }, text),
    low !== null && high !== null && s("line", { class: "interval", x1: scale(low), x2: scale(high), y1: middle, y2: middle }),
    low !== null && s("line", { class: "end", x1: scale(low), x2: scale(low), y1: middle - 5, y2: middle + 5 }),
    high !== null && s("line", { class: "end", x1: scale(high), x2: scale(high), y1: middle - 5, y2: middle + 5 }),
    share !== null && s("circle", { class: "point", cx: scale(share), cy: middle, r: 5 }),
    s("text", { class: "value", x: width - 4, y: middle + 4.5, "text-anchor": "end" }, percent(share)),
  );
}

/** The same numbers as a table. @param {Shares} shares @param {number[]} shown */
export function sharesTable(shares, shown) {
  const grouped = Boolean(shares.by);
  const head = [grouped && shares.by, "Answer", "Share", "From", "To"].filter(Boolean);
  const rows = shares.groups.flatMap((group) =>
    shown.map((code) =>
      h(
        "tr",
        {},
        grouped && h("th", { scope: "row" }, group.name),
        h("th", { scope: "row" }, shares.labels[code]),
        ...[group.share[code], group.low[code], group.high[code]].map((number) => h("td", { class: "number" }, percent(number, 2))),
      ),
    ),
  );
  const titles = head.map((text, at) => h("th", { scope: "col", class: at >= head.length - 3 ? "number" : undefined }, /** @type {string} */ (text)));
  const caption = `Estimated shares with ${percent(shares.level, 0)} intervals`;
  const table = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...titles)), h("tbody", {}, ...rows));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, table);
}
