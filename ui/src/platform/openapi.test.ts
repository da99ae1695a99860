// @vitest-environment node
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('has the types of docs/openapi.json', async () => {
  const check = promisify(execFile)('npm', ['run', '--silent', 'api', '--', '--check'], {
    cwd: new URL('../..', import.meta.url).pathname,
  });
  await expect(check, 'run `npm run api` in ui/').resolves.toBeDefined();
});
