declare module 'pdfjs-dist/legacy/build/pdf.min.mjs' {
  export { getDocument, PDFWorker } from 'pdfjs-dist';
}
declare module '*.mjs?worker' {
  export default class extends Worker {
    constructor();
  }
}
