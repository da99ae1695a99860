/** What a page keeps in the browser: the last entries of a list. */
export interface Kept<T> {
  read: () => T[];
  write: (entries: T[]) => void;
  forget: () => void;
}

/** Where the storage is blocked, full or damaged, the list is as if it were empty: even naming the storage may throw. */
export function kept<T extends unknown[]>(key: string, most: number): Kept<T> {
  return {
    read() {
      try {
        const entries: unknown = JSON.parse(window.localStorage.getItem(key) ?? '[]');
        return Array.isArray(entries) ? (entries.filter(Array.isArray) as T[]) : [];
      } catch {
        return [];
      }
    },
    write(entries) {
      try {
        window.localStorage.setItem(key, JSON.stringify(entries.slice(-most)));
      } catch {
        // The page has it still.
      }
    },
    forget() {
      try {
        window.localStorage.removeItem(key);
      } catch {
        // There is nothing.
      }
    },
  };
}
