/** Make the release: where, in which format, with progress and cancel. */

import { post } from "./api.js";
import { app, receiptOf, render as again, show } from "./app.js";
import { h } from "../admin/dom.js";
import { percent } from "./words.js";

export const heading = "Make the release";

/** @param {boolean} accept */
async function start(accept) {
  const value = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (document.getElementById(id))?.value ?? "";
  try {
    const { job, receipt } = await post("jobs", { kind: "anonymize", out: value("out") || "release", format: value("format"), key: value("key"), accept });
    receiptOf(receipt);
    app.state.jobs.push(job);
    again();
  } catch (error) {
    show(error);
  }
}

/** @param {import("./api.js").Job} job */
function running(job) {
  const words = job.state === "waiting" ? "Waiting for another job" : `${job.stage || "Starting"}${job.gap ? `; the loss could still be ${job.gap.toPrecision(3)} less` : ""}`;
  return h(
    "section",
    { class: "card" },
    h("p", {}, words),
    h("progress", { max: 1, value: job.share ?? 0, "aria-label": "Progress" }),
    h("p", { class: "row" }, h("span", {}, job.share === null ? "" : percent(job.share, 0)), h("button", { id: "cancel", click: () => void post(`jobs/${job.id}/cancel`, {}).catch(show) }, "Cancel")),
  );
}

/** @param {import("./api.js").Job} job */
function outcome(job) {
  const { release, policy } = app.state;
  if (job.state === "canceled") return h("section", { class: "light" }, h("p", {}, h("strong", {}, "Canceled. Nothing was written.")));
  if (job.state === "done") {
    return h("section", { class: "light green" }, h("p", {}, h("strong", {}, `The release is in the folder ${release.path}.`)), release.revision !== policy.revision && h("p", {}, "The policy was changed since."), job.messages.length > 0 && h("ul", {}, ...job.messages.map((text) => h("li", {}, text))), h("p", {}, h("a", { class: "button primary", href: "#/results" }, "Next: what the release shows")));
  }
  const tick = h("input", { type: "checkbox", id: "accept" });
  const refused = job.state === "refused";
  return h(
    "section",
    { class: "light red" },
    h("p", {}, h("strong", {}, refused ? "Not released. Nothing was written." : "The command failed. Nothing was written.")),
    h("pre", {}, job.messages.join("\n")),
    h("p", {}, h("a", { class: "button", href: "#/protection" }, "Change the settings")),
    refused && job.code === 1 && h("p", { class: "row" }, tick, h("label", { for: "accept" }, "I accept this risk. The release will say so."), h("button", { id: "anyway", click: () => (tick.checked ? void start(true) : tick.focus()) }, "Publish all the same")),
  );
}

export function render() {
  const { jobs, table, policy, release } = app.state;
  if (!table?.rows) return h("p", {}, h("a", { href: "#/table" }, "Choose a table first."));
  const made = jobs.filter(({ kind }) => kind === "anonymize");
  const last = made[made.length - 1];
  const going = last && ["waiting", "running"].includes(last.state);
  const wrong = policy.problems.length > 0;
  const field = (/** @type {string} */ id, /** @type {string} */ label, /** @type {Node} */ input, /** @type {string} */ help) => h("div", {}, h("label", { for: id }, label), input, help && h("p", { class: "quiet" }, help));
  return h(
    "div",
    {},
    h(
      "form",
      { class: "card grid", submit: (/** @type {Event} */ event) => (event.preventDefault(), void start(false)) },
      field("out", "Folder", h("input", { id: "out", value: release.path }), release.exists ? "There is a release, which will be replaced." : ""),
      field("format", "Format", h("select", { id: "format" }, h("option", { value: "" }, "Parquet"), h("option", { value: "csv" }, "CSV")), ""),
      field("key", "Key file", h("input", { id: "key", placeholder: "none" }), "Were these people published before, or will they be again? Name a key (polyseme key new FILE), so that sets cannot be intersected."),
      h("p", {}, h("button", { id: "make", class: "primary", disabled: wrong || Boolean(going) }, "Make the release"), wrong && h("span", { class: "warn" }, " The policy has problems: see Protection.")),
    ),
    last && (going ? running(last) : outcome(last)),
  );
}
