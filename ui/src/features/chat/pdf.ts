import type { PDFDocumentProxy } from 'pdfjs-dist';

/** Returns the text of a PDF, page by page. The library is loaded with the first PDF. */
export async function textOfPdf(data: ArrayBuffer): Promise<string> {
  const [{ getDocument, PDFWorker }, { default: Worker }] = await Promise.all([
    import('pdfjs-dist/legacy/build/pdf.min.mjs'),
    import('pdfjs-dist/legacy/build/pdf.worker.min.mjs?worker'),
  ]);
  const port = new Worker();
  const worker = PDFWorker.create({ port });
  // Nothing of it is drawn.
  const task = getDocument({
    data,
    worker,
    disableFontFace: true,
    isEvalSupported: false,
    stopAtErrors: false,
    // Errors alone: its warnings are for those who write it.
    verbosity: 0,
  });
  try {
    return await textOf(await task.promise);
  } finally {
    await task.destroy();
    worker.destroy();
    port.terminate();
  }
}

async function textOf(document: PDFDocumentProxy): Promise<string> {
  const pages: string[] = [];
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
    pages.push(text.trim());
    page.cleanup();
  }
  return pages.filter((text) => text !== '').join('\n\n');
}
