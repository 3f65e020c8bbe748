// Asks for every spelling of an address in three ways, and waits until none is on its way any more.
const ask = host => Promise.all([
  fetch(`http://${host}/`, {mode: 'no-cors'}),
  new Promise(done => Object.assign(new Image(), {onload: done, onerror: done, src: `http://${host}/`})),
  new Promise(done => {
    const socket = new WebSocket(`ws://${host}/`);
    socket.onopen = socket.onerror = done;
  }),
]).catch(() => {});
const waited = new Promise(done => setTimeout(done, 3000));
Promise.race([Promise.all(args.map(ask)), waited]).then(() => 'asked')
