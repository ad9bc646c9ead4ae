/** What can be taken away. */

import { download, get, post } from "./api.js";
import { app, receiptOf, render as again, show } from "./app.js";
import { h } from "../admin/dom.js";

export const heading = "Download";

const FILES = /** @type {[string, string, string, boolean][]} */ ([
  ["policy", "Policy", "What was decided, as YAML.", false],
  ["release", "Release (ZIP)", "The data and the manifest, for readers.", true],
  ["report", "Report", "One page about the release. It opens in its own tab.", true],
  ["commands", "Commands (.sh)", "The same release from the command line.", false],
  ["python", "Python (.py)", "The same release from Python.", false],
  ["board", "For the ethics board (ZIP, no records)", "Policy, manifest and report.", true],
]);

async function report() {
  try {
    const { job, receipt } = await post("jobs", { kind: "report" });
    receiptOf(receipt);
    app.memory.report = "running";
    again();
    for (;;) {
      const { job: now } = await get(`jobs/${job.id}`);
      if (!["waiting", "running"].includes(now.state)) {
        app.memory.report = now.state === "done" ? "done" : now.messages.join("\n");
        return again();
      }
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  } catch (error) {
    show(error);
  }
}

export function render() {
  const { release } = app.state;
  const made = app.memory.report === "done";
  const rows = FILES.map(([name, label, help, needs]) => {
    const ready = !needs || (release.exists && (name === "release" || made));
    return h("li", { class: "card row spread" }, h("div", {}, h("strong", {}, label), h("p", { class: "quiet" }, help)), h("button", { id: `download-${name}`, disabled: !ready, click: () => void download(name, name === "report").catch(show) }, name === "report" ? "Open" : "Download"));
  });
  return h(
    "div",
    {},
    !release.exists && h("p", {}, "There is no release yet. ", h("a", { href: "#/release" }, "Make one.")),
    release.exists && !made && h("p", { class: "row" }, h("button", { id: "report", class: "primary", disabled: app.memory.report === "running", click: () => void report() }, app.memory.report === "running" ? "Writing the report" : "Write the report"), app.memory.report && app.memory.report !== "running" && h("span", { class: "warn" }, app.memory.report)),
    h("ul", { class: "plain" }, ...rows),
  );
}
