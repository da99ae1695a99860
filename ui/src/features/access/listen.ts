/** Whether other computers can reach an address such as `127.0.0.1:11435`. */
export function isBeyondLoopback(listen: string): boolean {
  const host = listen
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  return !(host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host));
}

/** The address with the same port at which other computers reach it. */
export function onNetwork(listen: string): string {
  return isBeyondLoopback(listen) ? listen : `0.0.0.0:${port(listen)}`;
}

/** The address with the same port that only this computer reaches. */
export function onLoopback(listen: string): string {
  return isBeyondLoopback(listen) ? `127.0.0.1:${port(listen)}` : listen;
}

function port(listen: string): string {
  return listen.match(/:(\d+)$/)?.[1] ?? '11435';
}
