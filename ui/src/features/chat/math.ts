import { escapeHtml } from '../../lib/html';

type Renderer = (tex: string, display: boolean) => string;

const FORMULA = 'Formula';

/** A longer formula stays source: it would not be readable, and the renderer recurses. */
const LONGEST = 5000;

let renderer: Renderer | null = null;
let loading: Promise<void> | null = null;

/** Loads what draws formulas. Until then, and if that fails, formulas are shown as their source. */
export function loadMath(): Promise<void> {
  loading ??= import('./mathml').then(
    ({ renderMath }) => {
      renderer = renderMath;
    },
    () => {
      loading = null;
    },
  );
  return loading;
}

/** Whether the HTML has a formula that waits for `loadMath`. */
export function awaitsMath(html: string): boolean {
  return renderer === null && html.includes('class="formula-source pending"');
}

/** Returns a formula as MathML, or its source as code if it is not TeX that the renderer knows. */
export function formula(tex: string, display: boolean, source: string): string {
  if (tex.length > LONGEST) return sourceOf(source);
  if (renderer === null) return sourceOf(source, ' pending');
  try {
    const math = renderer(tex, display);
    return display ? `<span class="formula" role="group" aria-label="${FORMULA}">${math}</span>` : math;
  } catch {
    return sourceOf(source);
  }
}

function sourceOf(source: string, state = ''): string {
  return `<code class="formula-source${state}">${escapeHtml(source)}</code>`;
}
