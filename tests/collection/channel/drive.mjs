// Runs one task of the browser's modules for a test in Python: `node drive.mjs MODULES`, JSON in and out.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const modules = pathToFileURL(`${process.argv[2]}/`);
const ohttp = await import(new URL("ohttp.js", modules));
const tokens = await import(new URL("tokens.js", modules));

const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
const hex = (content) => Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join("");
const big = (text) => BigInt(`0x${text}`);

async function pair(text) {
  const pkcs8 = unhex(`302e020100300506032b656e04220420${text}`);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  const publicKey = await crypto.subtle.importKey("jwk", { kty: "OKP", crv: "X25519", x }, "X25519", true, []);
  return { privateKey, publicKey };
}

const tasks = {
  async hpke({ public: key, info, message, aad, once, exports }) {
    const sealed = await ohttp.seal(unhex(key), unhex(info), unhex(message), unhex(aad), await pair(once));
    return {
      encapsulated: hex(sealed.encapsulated),
      ciphertext: hex(sealed.ciphertext),
      exports: await Promise.all(exports.map(async ([label]) => [label, hex(await sealed.exported(unhex(label), 32))])),
    };
  },
  async ohttp({ keys, request, once, encapsulated_response }) {
    const sealed = await ohttp.encapsulate(ohttp.configuration(unhex(keys)), unhex(request), await pair(once));
    return { body: hex(sealed.body), response: hex(await sealed.opened(unhex(encapsulated_response))) };
  },
  async blind({ n, message, salt, inverse, blind_signature }) {
    const modulus = big(n);
    const factor = tokens.inverted(big(inverse), modulus);
    const length = n.length / 2;
    const encoded = await tokens.emsaPss(unhex(message), unhex(salt), 8 * length - 1);
    const blinding = await tokens.blindMessage(
      modulus, 65537n, length, unhex(message), unhex(salt), factor, tokens.inverted(factor, modulus),
    );
    const signature = (big(blind_signature) * blinding.inverse) % modulus;
    return { encoded: hex(encoded), blinded: hex(blinding.blinded), signature: signature.toString(16) };
  },
  async send({ relay, keys, url, size, body }) {
    const answer = await ohttp.postThrough(relay, unhex(keys), url, "application/json", unhex(body), size);
    return { status: answer.status, headers: answer.headers, body: hex(answer.body) };
  },
  async token({ issuer, key, campaign, invitation }) {
    const blinding = await tokens.blind(unhex(key), campaign);
    const token = await tokens.finalize(
      unhex(key), blinding, await tokens.askIssuer(issuer, campaign, invitation, blinding),
    );
    return { token: tokens.toText(token), id: hex(await tokens.reportId(token)) };
  },
  async wrong({ key, campaign, signature }) {
    return { token: hex(await tokens.finalize(unhex(key), await tokens.blind(unhex(key), campaign), unhex(signature))) };
  },
  invitations: ({ codes }) => codes.map(tokens.isInvitation),
  responses: ({ messages }) =>
    messages.map((message) => {
      const { status, headers, body } = ohttp.responseParts(unhex(message));
      return { status, headers, body: hex(body) };
    }),
};

const { task, given } = JSON.parse(readFileSync(0, "utf8"));
try {
  console.log(JSON.stringify({ result: await tasks[task](given) }));
} catch (error) {
  console.log(JSON.stringify({ error: String(error) }));
}
