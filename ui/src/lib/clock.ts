import { createSubscriber } from 'svelte/reactivity';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

/** Returns the milliseconds since 1970; what shows them updates every second. */
export function now(): number {
  subscribe();
  return Date.now();
}
