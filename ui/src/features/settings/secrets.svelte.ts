import type { Api } from '../../lib/http';
import { Resource } from '../../lib/resource.svelte';
import type { SecretPlace, SecretSource } from '../../platform/openapi';

/** What this page knows of tokens and keys for other services: where they are, not what they are. */
export class Secrets extends Resource<SecretPlace[]> {
  constructor(api: Api) {
    super(async () => (await api.get('/tierbar/v1/secrets')).secrets);
  }

  /** Where a secret is; `null` if nowhere, `undefined` while that is not known. */
  source(name: string): SecretSource | null | undefined {
    if (this.value === null) return undefined;
    return this.value.find((place) => place.name === name)?.source ?? null;
  }
}
