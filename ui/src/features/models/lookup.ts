/** What somebody who typed this looks for: a repository's files, one certain file, or words to search for. */
export type Lookup = { repository: string } | { reference: string } | { words: string };

const HUB = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;

export function lookup(text: string): Lookup | null {
  const typed = text.trim();
  if (typed === '') return null;
  // A page of the hub means what is on it; a file's address there is fetched as any other.
  const page = HUB.test(typed) && !/\/(?:resolve|blob)\//.test(typed);
  const rest = page ? typed.replace(HUB, '').replace(/(?:[?#].*|\/(?:tree\/[^/]+)?\/?)$/, '') : typed;
  if (/^https?:\/\//i.test(rest)) return { reference: rest };
  if (/^[\w.-]+\/[\w.-]+$/.test(rest)) return { repository: rest };
  if (/^[\w.-]+\/[\w.-]+[:/]\S+$/.test(rest) || /^[\w.-]+:[\w.-]+$/.test(rest)) return { reference: rest };
  return { words: typed };
}
