/** Reads at once, and again every so often while the page can be seen; never twice at a time. Returns what ends it. */
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
