import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';
import { strings } from './strings/plugin.ts';

// One build for both homes: the host serves it at `/`, the app's windows load it from tauri://localhost.
// Nothing is inlined, so that it runs under a content security policy of `'self'`.
export default defineConfig({
  base: './',
  plugins: [strings(), svelte(), svelteTesting()],
  build: {
    target: 'safari16',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: ['index.html', 'settings.html', 'popover.html'] },
  },
  worker: { format: 'es' },
  test: {
    environment: 'jsdom',
    include: ['{src,strings}/**/*.test.ts'],
    restoreMocks: true,
    // A guard against hanging, not a measure.
    testTimeout: 60_000,
  },
});
