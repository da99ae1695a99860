import type { Attachment } from 'svelte/attachments';

/** Close enough to the end to count as being there, in CSS pixels. */
const NEAR = 32;

/** Keeps a scrolling element at its end while its content grows, until the reader scrolls up. */
export class StickToEnd {
  /** Whether the reader follows; if not, there may be something newer below. */
  following = true;
  #element: HTMLElement | null = null;
  #onChange: (following: boolean) => void;

  constructor(onChange: (following: boolean) => void) {
    this.#onChange = onChange;
  }

  /** For the element that scrolls; its first child is the content that grows. */
  attach: Attachment<HTMLElement> = (element) => {
    this.#element = element;
    let top = element.scrollTop;
    const onScroll = () => {
      const left = element.scrollHeight - element.clientHeight - element.scrollTop;
      if (left <= NEAR) this.#follow(true);
      else if (element.scrollTop < top) this.#follow(false);
      top = element.scrollTop;
    };
    const grown = new ResizeObserver(() => {
      if (this.following) this.#toEnd();
    });
    element.addEventListener('scroll', onScroll, { passive: true });
    grown.observe(element);
    if (element.firstElementChild) grown.observe(element.firstElementChild);
    return () => {
      element.removeEventListener('scroll', onScroll);
      grown.disconnect();
      this.#element = null;
    };
  };

  /** Stays where the reader is. What does not scroll has no other place than its end. */
  leave(): void {
    const element = this.#element;
    if (element && element.scrollHeight - element.clientHeight > NEAR) this.#follow(false);
  }

  jump(): void {
    this.#follow(true);
    this.#toEnd();
  }

  #toEnd(): void {
    if (this.#element) this.#element.scrollTop = this.#element.scrollHeight;
  }

  #follow(following: boolean): void {
    if (this.following === following) return;
    this.following = following;
    this.#onChange(following);
  }
}
