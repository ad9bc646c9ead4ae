/** Makes the page open without a network: everything it is made of goes into a cache, from which a worker serves it. */

const CACHE = "polyseme-page";
const PAGE = "dom form leaving offline page standing texts texts.de texts.en texts.es texts.fr texts.ja tokens wording";
const CLIENT = "campaign chain fields fingerprint kinds ohttp polyseme-client posterior queue recurrence report sampling send strata stream tokens";

/** @param {string} address of the collector */
export const pageFiles = (address) => [
  ...PAGE.split(" ").map((name) => `${address}/page/${name}.js`),
  ...CLIENT.split(" ").map((name) => `${address}/client/${name}.js`),
  `${address}/page/page.css`,
  `${address}/page/icon.svg`,
];

/**
 * Keep the page and its campaign for days without a network. Where a browser cannot, the page works all the same.
 * @param {string} address
 * @param {string} id
 */
export async function keepForLater(address, id) {
  if (!("serviceWorker" in navigator) || !("caches" in globalThis)) return;
  try {
    const cache = await caches.open(CACHE);
    await cache.addAll([...pageFiles(address), `${address}/c/${id}`, `${address}/v1/campaigns/${id}`]);
    await navigator.serviceWorker.register(trusted(`${address}/page/sw.js`), { scope: `${address}/c/` });
    await navigator.serviceWorker.ready;
    document.documentElement.dataset.offline = "ready";
  } catch {
    // Private windows and full disks: then it works as long as there is a network.
    document.documentElement.dataset.offline = "no";
  }
}

/** The only address of a script that this page ever makes. @param {string} url @returns {string} */
function trusted(url) {
  const types = /** @type {any} */ (globalThis).trustedTypes;
  const policy = types?.createPolicy("polyseme", { createScriptURL: (/** @type {string} */ given) => given });
  return policy ? policy.createScriptURL(url) : url;
}
