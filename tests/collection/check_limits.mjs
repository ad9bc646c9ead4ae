// What the client finds in documents, and what it refuses: node check_limits.mjs CLIENT_FOLDER CASES.json
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , folder, file] = process.argv;
const client = async (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { Sampling } = await client("sampling.js");
const { largestOdds, worstPosterior } = await client("posterior.js");
const { needingConsent, readCampaign } = await client("campaign.js");
const { answer } = await client("report.js");
const { addsTo, askedBy } = await client("recurrence.js");
const cases = JSON.parse(readFileSync(file, "utf-8"));
const found = { findings: [], work: {}, campaigns: {}, repeats: {} };

/** What became of something: "" where nothing was wrong. */
async function said(work) {
  try {
    await work();
    return "";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

for (const { document, prior } of cases.findings) {
  const sampling = new Sampling(document);
  found.findings.push([worstPosterior(sampling, prior), worstPosterior(sampling), largestOdds(sampling)]);
}
for (const [name, document] of Object.entries(cases.work)) {
  const began = process.cpuUsage();
  found.work[name] = [await said(async () => new Sampling(document)), process.cpuUsage(began).user / 1e6];
}
for (const [name, document] of Object.entries(cases.campaigns)) {
  const campaign = await readCampaign(new TextEncoder().encode(document));
  const codes = { illness: 5 };
  found.campaigns[name] = [
    await said(() => answer(campaign, codes)),
    await said(() => answer(campaign, codes, { consent: true })),
    (await said(() => needingConsent(campaign))) || needingConsent(campaign).map((column) => column.name),
  ];
}
const asked = {};
for (const [name, document] of Object.entries(cases.questions)) {
  const campaign = await readCampaign(new TextEncoder().encode(document));
  [asked[name]] = askedBy(campaign, { open: {} });
}
for (const one of Object.keys(asked))
  for (const other of Object.keys(asked)) found.repeats[`${one}, ${other}`] = addsTo(asked[other], asked[one]);
console.log(JSON.stringify(found));
