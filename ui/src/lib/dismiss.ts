import type { Attachment } from 'svelte/attachments';

interface Popup {
  /** Whether there is anything to close: keys are let through else. */
  open: () => boolean;
  /** `refocus`: whether the focus goes back to what opened it. */
  close: (refocus: boolean) => void;
}

/** On the root of a button and what it opens: Escape, a click elsewhere and leaving it by Tab close it. */
export function dismiss({ open, close }: Popup): Attachment<HTMLElement> {
  return (root) => {
    const outside = (target: EventTarget | null) => !root.contains(target as Node);
    const listening = new AbortController();
    const { signal } = listening;
    root.addEventListener(
      'keydown',
      (event) => {
        if (event.key !== 'Escape' || !open()) return;
        event.stopPropagation();
        close(true);
      },
      { signal },
    );
    root.addEventListener(
      'focusout',
      (event) => {
        if (open() && event.relatedTarget && outside(event.relatedTarget)) close(false);
      },
      { signal },
    );
    window.addEventListener(
      'pointerdown',
      (event) => {
        if (open() && outside(event.target)) close(false);
      },
      { signal },
    );
    return () => listening.abort();
  };
}
