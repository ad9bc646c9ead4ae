/** What the workbench's server answers. The token comes in the fragment of the printed address and is kept by the browser. */

const KEY = "polyseme-workbench-token";

/**
 * @typedef {{where: string, what: string, hint: string, line: number | null}} Trouble
 * @typedef {{command: string, python: string}} Receipt
 * @typedef {{id: string, kind: string, state: string, code: number | null, share: number | null, stage: string, gap: number | null, messages: string[], events: number}} Job
 * @typedef {{label: string, changes: Record<string, any>, remove: string[], job: Record<string, any> | null}} Step
 * @typedef {{color: string, title: string, why: string[], steps: Step[], details: string[]}} Light
 * @typedef {{name: string, title: string, before: number | null, after: number | null, worst_group: number | null, group: string, floor: number | null, low: number | null, high: number | null}} Attacker
 * @typedef {{name: string, size: number, l: number, d: number, p: number, feasible: boolean, identifiable: boolean, obstacle: string, error: number | null, attackers: Attacker[], limit: number | null, floor: number, farthest: number | null}} Card
 * @typedef {{light: Light, cards: Card[], method: any, records: number | null, remarks: string[], receipt: Receipt}} Outlook
 * @typedef {{path: string, options: Record<string, string>, rows: number | null, columns: string[], first: Record<string, string>[], unique: number | null, known: string[], reading: boolean, share: number, problems: Trouble[]}} Table
 * @typedef {{
 *   version: string, number: number, table: Table | null,
 *   policy: {path: string, text: string, revision: string, problems: Trouble[], document: any},
 *   history: {undo: string | null, redo: string | null, entries: any[], place: number},
 *   release: {path: string, exists: boolean, revision: string | null}, jobs: Job[], limits: number[],
 * }} State
 */

/** An answer that is not yes. */
export class Refused extends Error {
  /** @param {number} status @param {any} found */
  constructor(status, found) {
    super(found.title ?? `The workbench answered ${status}.`);
    this.status = status;
    /** @type {Trouble[]} */
    this.problems = found.problems ?? [];
    this.detail = found.detail ?? "";
    /** @type {State | undefined} */
    this.state = found.state;
  }
}

/** The server does not answer. */
export class Gone extends Error {}

/** Take the token out of the address bar. */
export function takeToken() {
  const found = location.hash.slice(1);
  if (found && !found.startsWith("/")) {
    localStorage.setItem(KEY, found);
    history.replaceState(null, "", "/#/table");
  }
}

const headers = () => ({ authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}` });

/** @param {string} path @param {any} [body] @returns {Promise<Response>} */
async function answered(path, body) {
  const sent = body === undefined ? { headers: headers() } : { method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(`/api/${path}`, { ...sent, credentials: "omit", cache: "no-store" }).catch(() => {
    throw new Gone("The workbench has stopped. Start it again in the terminal: your policy is on disk.");
  });
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

/** @param {string} path @returns {Promise<any>} */
export const get = async (path) => (await answered(path)).json();

/** @param {string} path @param {any} body @returns {Promise<any>} */
export const post = async (path, body) => (await answered(path, body)).json();

/** The lines of a stream, one document each. @param {string} path @param {(line: any) => void} heard */
export async function follow(path, heard) {
  const answer = await answered(path);
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) heard(JSON.parse(line));
  }
}

/** Open a download by a ticket. @param {string} name @param {boolean} [tab] */
export async function download(name, tab = false) {
  const { url } = await post("tickets", { name });
  if (tab) window.open(url, "_blank", "noopener");
  else location.assign(url);
}
