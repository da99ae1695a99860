import { configure } from '@testing-library/svelte';
import { vi } from 'vitest';

// A guard against hanging, not a measure.
configure({ asyncUtilTimeout: 30_000 });

/** What a real browser has and jsdom has not. */
export function browser({ narrow = false } = {}): void {
  localStorage.clear();
  sessionStorage.clear();
  history.replaceState(null, '', '/');
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({ matches: narrow, addEventListener() {}, removeEventListener() {} }));
  // It says for itself that it is missing, at each call.
  HTMLCanvasElement.prototype.getContext = () => null;
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    this.dispatchEvent(new Event('close'));
  };
}
