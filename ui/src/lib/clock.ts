import { createSubscriber } from 'svelte/reactivity';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

/** Milliseconds since 1970, told anew each second to what shows it. */
export function now(): number {
  subscribe();
  return Date.now();
}
