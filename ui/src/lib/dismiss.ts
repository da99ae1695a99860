import type { Attachment } from 'svelte/attachments';

interface Popup {
  /** Whether the popup is open; otherwise keys pass through. */
  open: () => boolean;
  /** `refocus`: whether the focus returns to the button. */
  close: (refocus: boolean) => void;
}

/** Closes a popup on Escape, on a click outside and when Tab leaves it. Attach it to the element around button and popup. */
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
