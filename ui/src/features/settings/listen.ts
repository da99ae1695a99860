/** Whether other computers can reach an address such as `127.0.0.1:11435`. */
export function isBeyondLoopback(listen: string): boolean {
  const host = listen
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  return !(host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host));
}
