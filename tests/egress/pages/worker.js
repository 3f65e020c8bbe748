// As a dedicated, a shared or a service worker: asks for what its own address names, and tells whoever wants to know.
const kind = new URL(self.location).searchParams.get('kind');
const asked = Promise.allSettled([
  fetch(`https://${kind}.evil.example/`, {mode: 'no-cors'}),
  fetch(`https://www.example.com/${kind}`),
  fetch('http://127.0.0.1/', {mode: 'no-cors'}),
]).then(all => all.map(one => one.status));
if (kind === 'worker') asked.then(all => self.postMessage(all));
self.onconnect = event => asked.then(all => event.ports[0].postMessage(all));
self.oninstall = event => event.waitUntil(asked);
self.onactivate = event => event.waitUntil(self.clients.claim());
self.onmessage = event => asked.then(all => event.source?.postMessage(all));
