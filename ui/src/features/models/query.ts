/** What a typed text means: a repository's files, one file, or keywords to search for. */
export type Query = { repository: string } | { reference: string } | { keywords: string };

const HUB = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;

/** Returns `null` for a blank text. */
export function parseQuery(text: string): Query | null {
  const typed = text.trim();
  if (typed === '') return null;
  // The address of a page of the hub means its repository or file; a file's own address is downloaded like any other.
  const page = HUB.test(typed) && !/\/(?:resolve|blob)\//.test(typed);
  const rest = page ? typed.replace(HUB, '').replace(/(?:[?#].*|\/(?:tree\/[^/]+)?\/?)$/, '') : typed;
  if (/^https?:\/\//i.test(rest)) return { reference: rest };
  if (/^[\w.-]+\/[\w.-]+$/.test(rest)) return { repository: rest };
  if (/^[\w.-]+\/[\w.-]+[:/]\S+$/.test(rest) || /^[\w.-]+:[\w.-]+$/.test(rest)) return { reference: rest };
  return { keywords: typed };
}
