import { defineConfig } from '@playwright/test';
import journeys from '../playwright.config';

// The demo of the README: `make recording`.
export default defineConfig(journeys, {
  testDir: '.',
  outputDir: '../../test-results/recording',
  use: { trace: 'off', locale: 'en-US', viewport: { width: 980, height: 640 } },
});
