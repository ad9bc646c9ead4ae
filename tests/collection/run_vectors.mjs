// Draws every vector again and says what differs: node run_vectors.mjs CLIENT_FOLDER VECTORS.json.gz
// The checking itself is in check_vectors.mjs, which also runs in a browser.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

import { checkVectors } from "./check_vectors.mjs";

const [, , folder, file] = process.argv;
const client = async (name) => import(pathToFileURL(`${folder}/${name}`).href);
const vectors = JSON.parse(gunzipSync(readFileSync(file)).toString("utf-8"));
const found = await checkVectors(vectors, client);
console.log(JSON.stringify(found));
process.exit(found.wrong.length ? 1 : 0);
