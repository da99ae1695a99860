import { join } from 'node:path';
import { defineConfig } from '@playwright/test';

// Every state of the windows, played: checked by axe, and compared with its pictures in pictures/states. `make snapshots` accepts
// a change.
export default defineConfig({
  testDir: '.',
  outputDir: '../../test-results/pictures',
  snapshotPathTemplate: '{testDir}/states/{arg}{ext}',
  reporter: 'list',
  fullyParallel: true,
  workers: 2,
  forbidOnly: true,
  updateSnapshots: 'none',
  // Guards against hanging, not measures.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  use: {
    actionTimeout: 30_000,
    navigationTimeout: 30_000,
    locale: 'en-US',
    timezoneId: 'UTC',
    viewport: { width: 980, height: 680 },
    launchOptions: {
      args: ['--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb'],
      env: { ...process.env, FONTCONFIG_FILE: join(import.meta.dirname, 'fonts.conf') },
      ...(process.platform === 'linux' && { executablePath: '/usr/bin/chromium' }),
    },
  },
});
