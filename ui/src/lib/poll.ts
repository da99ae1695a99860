/** Reads at once, and then at an interval while the page is visible, one read at a time. Returns a function that stops it. */
export function poll(read: () => Promise<unknown>, everyMs: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  let reading = false;
  async function again() {
    clearTimeout(timer);
    if (ended || reading || document.hidden) return;
    reading = true;
    try {
      await read();
    } finally {
      reading = false;
      if (!ended) timer = setTimeout(() => void again(), everyMs);
    }
  }
  const seen = () => void again();
  document.addEventListener('visibilitychange', seen);
  void again();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', seen);
  };
}
