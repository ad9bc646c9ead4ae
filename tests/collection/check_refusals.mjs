// What the client does with documents that are wrong: node check_refusals.mjs CLIENT_FOLDER CASES.json
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , folder, file] = process.argv;
const client = async (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { Sampling } = await client("sampling.js");
const { worstPosterior } = await client("posterior.js");
const { readCampaign } = await client("campaign.js");
const { answer } = await client("report.js");
const cases = JSON.parse(readFileSync(file, "utf-8"));
const found = {};

/** What became of something: "" where nothing was wrong. */
async function said(work) {
  try {
    await work();
    return "";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

for (const [name, document] of Object.entries(cases.sampling))
  found[`sampling ${name}`] = await said(async () => {
    const sampling = new Sampling(document);
    if (!(worstPosterior(sampling) <= 1)) throw new Error("no promise holds");
    for (let code = 0; code < sampling.size; code++) await sampling.draw(code, new Uint8Array(32));
  });
for (const [name, { document, id, codes, own }] of Object.entries(cases.campaigns))
  found[`campaign ${name}`] = await said(async () => {
    const campaign = await readCampaign(new TextEncoder().encode(document), id ?? undefined);
    const report = await answer(campaign, codes, own ?? {});
    found[`id ${name}`] = report.id;
  });
console.log(JSON.stringify(found));
