import { test as base, expect, type Page } from '@playwright/test';
import { Host } from './host';

interface Journey {
  /** Additional environment variables of the host. */
  env: Record<string, string>;
  /** Whether the host has the starter model and tiers that name it. */
  furnished: boolean;
  /** A host, with the starter model as tiers `fast` and `primary` if it is furnished; ended after the test with all its processes. */
  host: Host;
  /** Errors and warnings of the browser, in all its tabs. Those that a test does not expect fail it. */
  complaints: Complaints;
  /** The chat page of a browser that has traded the token. */
  chat: Page;
}

class Complaints {
  readonly #recorded: string[] = [];
  readonly #allowed: RegExp[] = [];

  add(complaint: string): void {
    this.#recorded.push(complaint);
  }

  /** Expects an error, such as that of a request that the host refuses. Call it before the error happens. */
  expect(complaint: RegExp): void {
    this.#allowed.push(complaint);
  }

  check(): void {
    expect(
      this.#recorded.filter((text) => !this.#allowed.some((allowed) => allowed.test(text))),
      'errors in the browser',
    ).toEqual([]);
    expect(
      this.#allowed.filter((allowed) => !this.#recorded.some((text) => allowed.test(text))),
      'expected errors that did not come',
    ).toEqual([]);
  }
}

export const CONFIG = `# How I like it.
[tiers.fast]
model = "SmolLM2-135M-Instruct.Q4_1.gguf" # small and quick
context = 2048

[tiers.primary]
model = "SmolLM2-135M-Instruct.Q4_1.gguf"
context = 1024
`;

export const test = base.extend<Journey>({
  env: [{}, { option: true }],
  furnished: [true, { option: true }],
  host: async ({ env, furnished }, use, info) => {
    const host = new Host(env);
    try {
      if (furnished) {
        host.addModel();
        await host.configure(CONFIG);
      }
      await host.start();
      await use(host);
      await host.stop();
    } finally {
      if (info.error) await info.attach('host.log', { path: host.logFile });
      await host.remove();
    }
  },
  complaints: [
    // Depends on `host`, so that the check runs before the host ends.
    async ({ context, host: _host }, use) => {
      const complaints = new Complaints();
      context.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning')
          complaints.add(`${message.text()} (${message.location().url})`);
      });
      context.on('request', (request) => {
        if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url()))
          complaints.add(`asked for ${request.url()}`);
      });
      context.on('weberror', (error) => complaints.add(`uncaught: ${error.error().stack}`));
      await context.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (event) => {
          console.error(`content security policy: ${event.violatedDirective} forbids ${event.blockedURI}`);
        });
      });
      await use(complaints);
      complaints.check();
    },
    { auto: true },
  ],
  chat: async ({ host, page }, use) => {
    await signIn(page, host);
    await answers(page, SHORT);
    await page.goto(host.url);
    await use(page);
  },
});

/** Signs in as the token page does, without showing it. */
export async function signIn(page: Page, host: Host): Promise<void> {
  const headers = { Authorization: `Bearer ${host.token}` };
  const response = await page.request.post(`${host.url}/tierbar/v1/session`, { headers });
  expect(response.status()).toBe(204);
  const half = response.headers()['x-tierbar-session'] ?? '';
  await page.addInitScript((half) => localStorage.setItem('x-tierbar-session', half), half);
  // For the requests of tests, which no page sends.
  await page.context().setExtraHTTPHeaders({ 'x-tierbar-session': half });
}

/** The same short answer every time: a model this small may otherwise repeat itself for minutes. */
export const SHORT = { temperature: 0, max_tokens: 200 };
/** An answer that fills the context, so that it is still streaming when the test acts on it. At a low temperature it would repeat
 * itself, and be stopped for that. */
export const ENDLESS = { temperature: 1.2, seed: 3, repeat_penalty: 1.1, ignore_eos: true };

/** Adds these options to the page's turns on their way to the host from now on. */
export async function answers(page: Page, options: typeof SHORT | typeof ENDLESS): Promise<void> {
  const url = '**/tierbar/v1/chats/*/turns';
  await page.unroute(url);
  await page.route(url, async (route) => {
    const body = route.request().postDataJSON() as Record<string, unknown>;
    await route.continue({ postData: { ...body, options } });
  });
}

export async function ask(page: Page, question: string): Promise<void> {
  await page.getByTestId('composer').fill(question);
  await page.getByTestId('send').click();
}

export { expect };
