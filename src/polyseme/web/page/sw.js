// Lets the page open without a network. What it holds was put into the cache by the page itself; whenever the network
// answers, the network's answer counts. Reports are not its business: they wait in IndexedDB.
const CACHE = "polyseme-page";
const PATIENCE = 5000;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== self.location.origin || pathname.endsWith("/state")) return;
  event.respondWith(answered(event.request));
});

async function answered(request) {
  const kept = await (await caches.open(CACHE)).match(request, { ignoreSearch: true, ignoreVary: true });
  if (!kept) return fetch(request);
  const late = new Promise((_, reject) => setTimeout(reject, PATIENCE));
  return Promise.race([fetch(request), late]).then(
    (fresh) => (fresh.ok ? fresh : fresh.status < 500 ? fresh : kept),
    () => kept,
  );
}
