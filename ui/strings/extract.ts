import { adapter } from '@wuchale/svelte';
import type { IndexTracker, Message } from 'wuchale';
import { Transformer } from 'wuchale/adapter-vanilla';
import { comparedIn, isWords } from './heuristic.ts';

/** `plural(n, ['# model', '# models'])` is one text with two forms. */
const PATTERNS: ConstructorParameters<typeof Transformer>[4] = [
  { name: 'plural', args: ['other', 'message', 'pluralFunc'] },
];

/** The page looks its texts up by themselves in English, so that there are no numbers to keep. */
const BY_TEXT = { get: (key: string) => JSON.stringify(key) } as unknown as IndexTracker;

/** A page is loaded in one language: what looks texts up is imported, and nothing has to be reactive. */
const plain = { wrapInit: (code: string) => code, wrapUse: (code: string) => code };
const RUNTIME = { initReactive: () => null, useReactive: false, plain, reactive: plain };
const UNUSED = { plain: '', reactive: '' };

/** The library does not look into errors that are thrown. */
class ScriptTransformer extends Transformer {
  override visitThrowStatement = ((node: { argument: Parameters<Transformer['visit']>[0] }) =>
    this.visit(node.argument)) as Transformer['visitThrowStatement'];
}

export interface Extracted {
  messages: Message[];
  /** Texts that begin or end with a space: parts of a sentence that is put together, which stay as they are. */
  fragments: string[];
  /** The file with its texts looked up by what is imported as `_w_runtime_` from `from`. */
  rewrite(from: string): { code?: string; map?: unknown };
}

/** Finds the texts of a file that the user reads. */
export async function extract(content: string, filename: string): Promise<Extracted> {
  const compared = comparedIn(content);
  const first = await transform(content, filename, compared);
  // The library's keys have no space around them.
  const fragments = first.msgs.flatMap(({ msgStr }) => msgStr).filter((text) => text !== text.trim());
  const left = new Set(fragments.map((text) => text.replace(/\{\d+\}/g, '#').trim()));
  const { msgs, output } =
    left.size === 0 ? first : await transform(content, filename, new Set([...compared, ...left]));
  return {
    messages: msgs,
    fragments,
    rewrite: (from) =>
      output(
        `import { translate as _w_runtime_, translate as _w_runtime_mod_ } from ${JSON.stringify(from)};`,
      ),
  };
}

function transform(content: string, filename: string, except: Set<string>) {
  const heuristic = ({ msgStr, details }: Message) =>
    isWords(msgStr.join('\n'), details, except) ? 'message' : false;
  if (filename.endsWith('.svelte')) {
    const svelte = adapter({ heuristic, patterns: PATTERNS, runtime: RUNTIME });
    return svelte.transform({ content, filename, index: BY_TEXT, expr: UNUSED, matchUrl: () => null });
  }
  return new ScriptTransformer(
    content,
    filename,
    BY_TEXT,
    heuristic,
    PATTERNS,
    UNUSED,
    RUNTIME,
    () => null,
  ).transform();
}

/** Whether a file under `src` has texts of the window. */
export function hasTexts(path: string): boolean {
  return (
    /\.(svelte|ts)$/.test(path) &&
    !/\.(test|d)\.ts$|(^|\/)testing\/|(^|\/)(platform\/openapi|lib\/language)\.ts$/.test(path)
  );
}
