import { relative, resolve } from 'node:path';
import type { Plugin } from 'vite';
import { compile } from './catalog.ts';
import { extract, hasTexts } from './extract.ts';

/** Has the window's texts looked up in the page's language, and makes modules of the catalogs. */
export function strings(): Plugin {
  let root = '';
  return {
    name: 'tierbar-strings',
    configResolved(config) {
      root = config.root;
    },
    transform: {
      order: 'pre',
      filter: { id: { include: /\.(svelte|ts|po)(\?|$)/, exclude: /node_modules/ } },
      async handler(code, id) {
        const [file = '', query] = id.split('?');
        if (file.endsWith('.po')) return { code: compile(code), map: null };
        const path = relative(root, file);
        if (query || !path.startsWith('src/') || !hasTexts(path)) return null;
        const { messages, rewrite } = await extract(code, path);
        if (messages.length === 0) return null;
        const { code: rewritten, map } = rewrite(resolve(root, 'src/lib/language.ts'));
        return rewritten === undefined ? null : { code: rewritten, map: map as string };
      },
    },
  };
}
