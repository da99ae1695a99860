import './app.css';
import { startLanguage } from './lib/language';

// The page has texts that are looked up once, when it is loaded.
await startLanguage();
await import('./popoverPage');
