// Draws the vectors of `polyseme-draw-1` with the client's modules; for Node and browsers alike.

const sha256 = async (text) => new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
const secret = (name, number) => sha256(`${name} ${number}`);
const hmacKey = async (bytes) =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const pieces = (flat, length) => Array.from({ length: flat.length / length }, (_, at) => flat.slice(at * length, (at + 1) * length));

/**
 * @param {any} vectors what the file holds
 * @param {(name: string) => Promise<any>} client loads one of the client's modules
 * @returns {Promise<{draws: number, posteriors: number, answers: number, worst: number, wrong: string[]}>}
 */
export async function checkVectors(vectors, client) {
  const { Sampling } = await client("sampling.js");
  const { stickySubkey } = await client("stream.js");
  const { fingerprint } = await client("fingerprint.js");
  const { worstPosterior } = await client("posterior.js");
  const found = { draws: 0, posteriors: 0, answers: 0, worst: 0, wrong: [] };
  const compare = (where, drawn, expected) => {
    found.draws += 1;
    if (String(drawn) !== String(expected)) found.wrong.push(`${where}: ${drawn} instead of ${expected}`);
  };
  for (const one of vectors.cases) {
    const { name, document, labels } = one;
    const sampling = new Sampling(document);
    const known = await fingerprint(name, labels, sampling.document);
    if (known !== one.fingerprint) found.wrong.push(`${name}: fingerprint`);
    const blind = new Sampling({ ...document, p53: 0 });
    const { l, size } = sampling;
    for (const [n, expected] of pieces(one.fresh, l).entries())
      compare(`${name} fresh ${n}`, await sampling.draw(n % size, await secret(name, n)), expected);
    for (const [n, expected] of pieces(one.blind, l).entries())
      compare(`${name} blind ${n}`, await blind.draw(n % size, await secret(name, n)), expected);
    for (const [n, expected] of pieces(one.sticky, l).entries()) {
      const subkey = await stickySubkey(await hmacKey(await secret(name, n)), known, n % 3, n % size);
      compare(`${name} sticky ${n}`, await sampling.draw(n % size, subkey), expected);
    }
  }
  for (const [at, { document, prior, posterior }] of vectors.posteriors.entries()) {
    const gap = Math.abs(worstPosterior(new Sampling(document), prior) / posterior - 1);
    found.posteriors += 1;
    found.worst = Math.max(found.worst, gap);
    if (!(gap < 1e-12)) found.wrong.push(`posterior ${at} is off by ${gap}`);
  }
  await checkCampaign(vectors.campaign, client, found);
  return found;
}

async function checkCampaign({ document, id, columns, answers }, client, found) {
  const { readCampaign } = await client("campaign.js");
  const { answer, reportBody } = await client("report.js");
  const campaign = await readCampaign(new TextEncoder().encode(document), id);
  for (const [number, { codes, sets }] of answers.entries()) {
    const key = await hmacKey(await secret("campaign", number));
    const given = Object.fromEntries(columns.map((name, at) => [name, codes[at]]));
    const report = await answer(campaign, given, { key });
    found.answers += 1;
    if (JSON.stringify(Object.values(report.sets)) !== JSON.stringify(sets)) found.wrong.push(`answer ${number}`);
    if (reportBody(report, campaign.collection.size).length !== campaign.collection.size) found.wrong.push("body");
  }
}
