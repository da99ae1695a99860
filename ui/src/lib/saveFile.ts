/** Saves a file as a browser does, in the folder for downloads. */
export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download may begin after this call.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A file name of a title: without what file systems refuse. */
export function fileName(title: string, extension: string): string {
  const name = title
    // biome-ignore lint/suspicious/noControlCharactersInRegex: file systems refuse these.
    .replace(/[\u0000-\u001f\u007f/\\:*?"<>|]/g, ' ')
    .replace(/\s+/g, ' ')
    .slice(0, 80)
    .replace(/^[. ]+|[. ]+$/g, '');
  return `${name || 'New Chat'}.${extension}`;
}
