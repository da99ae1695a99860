declare module '*.po' {
  import type { CompiledElement } from 'wuchale/compiler';

  const texts: Record<string, CompiledElement | CompiledElement[]>;
  export default texts;
  export function plural(n: number): number;
}
