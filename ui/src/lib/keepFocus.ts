const FOCUSABLE =
  ':is(a[href], button, input, select, textarea, summary, [tabindex="0"]):not(:disabled, [tabindex="-1"])';

/**
 * Keeps the keyboard’s place within an element: what has the focus may be removed or disabled, and the focus would go to the
 * page’s beginning. Returns how to stop.
 */
export function keepFocus(root: HTMLElement): () => void {
  let held: HTMLElement | null = null;
  /** What holds it, the innermost first, and what comes before and after it. */
  let around: Element[] = [];
  let order: HTMLElement[] = [];

  function remember({ target }: FocusEvent) {
    held = target as HTMLElement;
    order = [...root.querySelectorAll<HTMLElement>(FOCUSABLE)];
    around = [];
    for (let outer = held.parentElement; outer && root.contains(outer); outer = outer.parentElement)
      around.push(outer);
  }

  /** Focus that is taken elsewhere, and a click beside everything, end it; going away does not. */
  function forget({ relatedTarget }: FocusEvent) {
    const left = held;
    if (relatedTarget) held = null;
    else
      setTimeout(() => {
        if (
          held === left &&
          left?.isConnected &&
          !left.matches(':disabled') &&
          document.activeElement !== left
        )
          held = null;
      });
  }

  const canTake = (element: HTMLElement) =>
    element !== held &&
    element.isConnected &&
    element.matches(FOCUSABLE) &&
    (element.checkVisibility?.() ?? true);

  function neighbor(): HTMLElement | undefined {
    const at = order.indexOf(held as HTMLElement);
    const near = [...order.slice(at + 1), ...order.slice(0, Math.max(at, 0)).reverse()];
    for (const outer of around) {
      if (!outer.isConnected) continue;
      const within = [
        ...near.filter((element) => outer.contains(element)),
        ...outer.querySelectorAll<HTMLElement>(FOCUSABLE),
      ];
      const found = within.find(canTake);
      if (found) return found;
    }
    return undefined;
  }

  function settle() {
    const active = document.activeElement;
    if (held === null || (active !== null && active !== document.body && active !== held)) return;
    if (!held.isConnected) return neighbor()?.focus({ preventScroll: true });
    if (!held.matches(':disabled')) {
      if (active !== held) held.focus({ preventScroll: true });
      return;
    }
    // A form that is done is there for the next entry. Another button comes back once it has worked.
    const { form, type } = held as HTMLButtonElement;
    if (type === 'submit')
      [...(form?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])]
        .find(canTake)
        ?.focus({ preventScroll: true });
  }

  const observer = new MutationObserver(settle);
  observer.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ['disabled'] });
  root.addEventListener('focusin', remember);
  root.addEventListener('focusout', forget);
  return () => {
    observer.disconnect();
    root.removeEventListener('focusin', remember);
    root.removeEventListener('focusout', forget);
  };
}
