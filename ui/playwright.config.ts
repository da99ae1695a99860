import { defineConfig } from '@playwright/test';

// Journeys through the page in a real browser against the real host. Times are guards against hanging, not measures.
export default defineConfig({
  testDir: 'journey',
  outputDir: '../test-results/journey',
  reporter: 'list',
  // Each test has a host and a model of its own; several at once would only slow each other down.
  workers: 1,
  forbidOnly: true,
  timeout: 300_000,
  expect: { timeout: 60_000 },
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    trace: 'retain-on-failure',
    screenshot: 'only-on-failure',
    // Linux has its distribution's browser; on macOS Playwright brings its own.
    launchOptions: process.platform === 'darwin' ? {} : { executablePath: '/usr/bin/chromium' },
  },
});
