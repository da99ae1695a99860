import type {
  CatalogModel,
  Chat,
  ChatMessage,
  Config,
  Connections,
  ContextEntry,
  Documents,
  Entry,
  History,
  LibraryModel,
  ModelDisk,
  Part,
  RequestRecord,
  SetupPlan,
  Status,
  TierPlan,
  TierStatus,
} from '../src/platform/openapi';
import { configured, TIER } from '../src/testing/config';
import { Network, type Sent, STATUS } from '../src/testing/host';
import { account, catalogModel, GIB, localModel, offered, refused, verdict } from '../src/testing/models';

/** When all of it happens. */
export const NOW = Date.parse('2026-11-26T10:00:00Z');
const MINUTE = 60_000;

const FAST = 'gemma-4-E2B-it-UD-Q4_K_XL';
const EVERYDAY = 'gemma-4-E4B-it-UD-Q4_K_XL';
const DEEP = 'Qwen3.5-35B-A3B-UD-IQ2_M';
const EMBEDDER = 'all-MiniLM-L6-v2-Q8_0';

function tier(id: string, model: string | null, parts: Partial<TierStatus> = {}): TierStatus {
  return { ...(STATUS.tiers[0] as TierStatus), id, model, ...parts };
}

/** Tiers of a Mac of 16 GB: Everyday is loaded. */
export const TIERS: TierStatus[] = [
  tier('fast', FAST, { context_tokens: 16384, unloads_at_ms: null }),
  tier('primary', EVERYDAY, {
    state: 'ready',
    pid: 412,
    footprint_bytes: 7.4 * GIB,
    context_tokens: 32768,
    input_modalities: ['text', 'image'],
    steps_down_to: 'fast',
    unloads_at_ms: NOW + 8 * MINUTE,
    plan: {
      placement: 'resident',
      context_tokens: 32768,
      kind: 'generative',
      lines: [
        { what: 'dense_weights', bytes: 4.6 * GIB },
        { what: 'projector', bytes: 0.9 * GIB },
        { what: 'kv_cache', bytes: 1.4 * GIB },
        { what: 'compute_buffers', bytes: 0.5 * GIB },
        { what: 'app', bytes: 0.25 * GIB },
      ],
    },
  }),
  tier('heavy', DEEP, {
    context_tokens: 12288,
    state: 'failed',
    reason: 'it needs 11.7 GiB and 9.1 GiB are free; quit other apps, or choose a smaller quant',
  }),
  tier('sonnet', 'claude-sonnet-4-5', { engine: 'endpoint', state: 'ready', context_tokens: 200_000 }),
];

export function status(parts: Partial<Status> = {}): Status {
  return {
    ...STATUS,
    ram: { total_bytes: 16 * GIB, available_bytes: 4.6 * GIB, pressure: 'normal' },
    swap: { used_bytes: 1.2 * GIB, growth_bytes_per_minute: 38 * 2 ** 20 },
    speed: { decode_tokens_per_second: 17.8, prefill_tokens_per_second: 214 },
    budget: { total_bytes: 12 * GIB, planned_bytes: 7.65 * GIB },
    tiers: TIERS,
    ...parts,
  };
}

/** As after an installation. */
export const WITHOUT_MODELS = status({
  ram: { total_bytes: 16 * GIB, available_bytes: 11 * GIB, pressure: 'normal' },
  swap: { used_bytes: 0, growth_bytes_per_minute: 0 },
  speed: { decode_tokens_per_second: null, prefill_tokens_per_second: null },
  budget: { total_bytes: 12 * GIB, planned_bytes: 0 },
  tiers: ['fast', 'primary', 'heavy'].map((id) => tier(id, null)),
});

function fit(gib: number, speed: number | null) {
  return verdict({
    total_bytes: gib * GIB,
    lines: [
      { what: 'dense_weights', bytes: (gib - 1.8) * GIB },
      { what: 'kv_cache', bytes: 1.1 * GIB },
      { what: 'compute_buffers', bytes: 0.45 * GIB },
      { what: 'app', bytes: 0.25 * GIB },
    ],
    context_tokens: 32768,
    speed:
      speed === null
        ? null
        : {
            low: speed * 0.9,
            high: speed * 1.1,
            measured: null,
            error: null,
            active_bytes: 2 * GIB,
            paged_bytes: 0,
          },
  });
}

function row(tier: string, name: string, about: string, bytes: number, speed: number): TierPlan {
  return {
    tier,
    name,
    about,
    reference: `unsloth/${name.replaceAll(' ', '-')}-GGUF:UD-Q4_K_XL`,
    quant: 'UD-Q4_K_XL',
    size_bytes: bytes,
    download_bytes: bytes,
    reason: 'It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality.',
    grounds: { basis: 'balanced', measured: null, perplexity_increase: null },
    fit: fit(bytes / GIB + 1.9, speed),
    installed: null,
    in_use: false,
    replaces: null,
  };
}

export const PLAN: SetupPlan = {
  machine: {
    ram_bytes: 16 * GIB,
    budget_bytes: 12 * GIB,
    others_bytes: 3 * GIB,
    gpu_bytes: 11.84 * GIB,
    memory_bytes_per_second: 100e9,
    disk_bytes_per_second: 2.8e9,
    disk_free_bytes: 214e9,
  },
  tiers: [
    row('fast', 'Gemma 4 E2B', 'Quick answers, classification, and routing.', 3_184_496_736, 38),
    row('primary', 'Gemma 4 E4B', 'Everyday chat, summaries, and compression.', 5_126_306_944, 19),
    row('heavy', 'Qwen3.5 35B-A3B', 'Hard questions; the largest model for 16 GB.', 11_391_613_568, 14),
  ],
  download_bytes: 19_702_417_248,
  first: 'primary',
  models_dir: '/Users/ada/Library/Application Support/Tierbar/models',
  room: { path: '/Users/ada', disk: '1', free_bytes: 214e9, room_bytes: 204e9 },
  notes: [],
};

const CATALOG: CatalogModel[] = [
  catalogModel('Gemma 4 E2B', {
    about: 'Quick answers, classification, and routing.',
    tier: 'fast',
    capabilities: { inputs: ['text', 'image', 'audio'], thinking: true, tools: true },
    context_train: 131072,
    quants: [
      offered('unsloth/gemma-4-E2B-it-GGUF:Q4_K_M', {
        size_bytes: 3_106_738_272,
        fit: fit(5.7, 39),
      }),
      offered('unsloth/gemma-4-E2B-it-GGUF:UD-Q4_K_XL', {
        size_bytes: 3_184_496_736,
        recommended: true,
        reason: 'It fits in memory with 4 to 5 bits per weight, the usual balance of speed and quality.',
        fit: fit(5.8, 38),
        installed: true,
      }),
    ],
  }),
  catalogModel('Qwen3.5 35B-A3B', {
    about: 'Hard questions; the largest model for 16 GB.',
    tier: 'heavy',
    capabilities: { inputs: ['text', 'image'], thinking: true, tools: true },
    context_train: 262144,
    speeds: [
      {
        chip: 'Apple M4',
        ram_gb: 24,
        engine: 'llama.cpp',
        quant: 'UD-Q4_K_XL',
        tokens_per_second: 24.1,
        source: 'https://example.com/speed',
      },
    ],
    scores: [{ benchmark: 'MMLU-Pro', score: 80.9, source: 'https://example.com/score' }],
    quants: [
      offered('unsloth/Qwen3.5-35B-A3B-GGUF:UD-IQ2_M', {
        size_bytes: 11_391_613_568,
        recommended: true,
        reason: 'It is the largest quant that fits in memory.',
        fit: fit(11.7, 14),
      }),
      offered('unsloth/Qwen3.5-35B-A3B-GGUF:Q4_K_M', {
        size_bytes: 22_016_023_168,
        fit: refused({ total_bytes: 21.9 * GIB }),
      }),
    ],
  }),
  catalogModel('DeepSeek R1 Distill 14B', {
    about: 'Math and puzzles, reasoned step by step; it always thinks first.',
    tier: 'heavy',
    capabilities: { inputs: ['text'], thinking: true, tools: false },
    context_train: 131072,
    licence: 'MIT',
    quants: [
      offered('bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF:Q4_K_M', {
        size_bytes: 8_988_110_240,
        recommended: true,
        fit: fit(11.8, 9),
      }),
    ],
  }),
];

const DISKS: ModelDisk[] = [
  {
    folder: PLAN.models_dir,
    size_bytes: 494_384_795_648,
    free_bytes: 212_400_000_000,
    models: [
      { keeper: 'tierbar', bytes: 8_300_000_000 },
      { keeper: 'lm_studio', bytes: 4_100_000_000 },
    ],
  },
];

const MODELS: LibraryModel[] = [
  localModel(EVERYDAY, {
    size_bytes: 5_126_306_944,
    tiers: ['primary'],
    input_modalities: ['text', 'image'],
    account: account({
      architecture: 'gemma4',
      quant: 'UD-Q4_K_XL',
      parameters: 7_500_000_000,
      context_train: 131072,
      thinking: true,
      tools: true,
    }),
    fit: fit(7.65, 19),
  }),
  localModel(FAST, {
    size_bytes: 3_184_496_736,
    tiers: ['fast'],
    reference: 'unsloth/gemma-4-E2B-it-GGUF:UD-Q4_K_XL',
    account: account({
      architecture: 'gemma4',
      quant: 'UD-Q4_K_XL',
      parameters: 4_600_000_000,
      context_train: 131072,
      thinking: true,
      tools: true,
    }),
    fit: fit(5.8, 38),
  }),
  localModel(EMBEDDER, {
    size_bytes: 25_000_000,
    account: account({
      architecture: 'bert',
      kind: 'embedding',
      quant: 'Q8_0',
      parameters: 22_700_000,
      context_train: 512,
      chat_template: false,
    }),
    fit: verdict({
      total_bytes: 0.2 * GIB,
      lines: [{ what: 'dense_weights', bytes: 0.2 * GIB }],
    }),
  }),
];

const CONTEXT: ContextEntry = {
  name: 'The handbook',
  model: EVERYDAY,
  tokens: 24_180,
  bytes: 1_214_000_000,
  raw_bytes: 1_445_000_000,
  created: NOW / 1000 - 7200,
  form: 'exact',
  kv_cache: 'f16',
};

export const CONFIG: Config = configured({
  contexts: { ...configured().contexts, store: 's3://ada-contexts/tierbar' },
  policy: { ...configured().policy, home: 'primary', quiet_hours: '22:00-07:00' },
  notifications: { downloads: true, queue: true, memory: true, unloads: false },
  tiers: {
    fast: { ...TIER, model: FAST },
    primary: { ...TIER, model: EVERYDAY, context: 32768, idle_unload: '30m' },
    heavy: { ...TIER, model: DEEP, thinking: true },
    sonnet: {
      ...TIER,
      model: 'claude-sonnet-4-5',
      engine: { endpoint: 'https://api.anthropic.com', dialect: 'anthropic' },
    },
  },
  chains: {
    write: {
      steps: ['sonnet', 'primary', 'queue'],
      retries: 1,
      wait: '30s',
      time: '5m',
      cost: 0.05,
      hedge: '0s',
      mark: true,
      triage: false,
    },
  },
});

const DOCUMENTS: Documents = {
  sources: [
    {
      id: 1,
      path: '/Users/ada/Papers',
      collection: 'Papers',
      is_folder: true,
      is_missing: false,
      problem: null,
      indexed: 212,
      waiting: 14,
      failed: 0,
      noticed: 3,
      read_pictures: false,
      passages: 18_340,
      without_vectors: 0,
      left_out: null,
    },
    {
      id: 2,
      path: '/Users/ada/Notes',
      collection: 'Documents',
      is_folder: true,
      is_missing: false,
      problem: null,
      indexed: 96,
      waiting: 0,
      failed: 1,
      noticed: 0,
      read_pictures: false,
      passages: 1204,
      without_vectors: 0,
      left_out: 'Not searched: 3 files (.gitignore), 1 lock file',
    },
  ],
  indexing: {
    state: 'indexing',
    file: '/Users/ada/Papers/lighthouses.pdf',
    done: 212,
    waiting: 14,
    embedder: 'all-MiniLM-L6-v2',
    problem: null,
  },
};

const CONNECTIONS: Connections = {
  server: {
    url: 'http://127.0.0.1:11435',
    mcp_command: ['/Applications/Tierbar.app/Contents/MacOS/tierbar', 'mcp'],
    key_required: false,
    tiers: [{ id: 'primary', context_tokens: 32768, tools: true }],
    embedder: null,
  },
  clients: [
    {
      id: 'claude-code',
      name: 'Claude Code',
      about: 'agent in the terminal',
      needs: { tools: true, context: 32768 },
      found: true,
      model: 'primary',
      reason: 'primary is the usual tier',
      warnings: [
        'Claude Code sends 20,000 tokens with each request: a context of 32,768 leaves room for 12,768 more',
      ],
      settings: [
        {
          kind: 'environment',
          place: 'the environment of your shell',
          text: 'export ANTHROPIC_BASE_URL=http://127.0.0.1:11435\nexport ANTHROPIC_AUTH_TOKEN=unused\nexport ANTHROPIC_MODEL=primary',
          form: null,
        },
      ],
      notes: [],
    },
  ],
};

const LOG: Entry[] = (
  [
    [1, 'alarm', null, null, 'swap grew by 410 MiB in the last minute while 0.9 GiB was available'],
    [
      2,
      'unload',
      'heavy',
      DEEP,
      `unloaded ${DEEP} to free memory: swap grew by 410 MiB in a minute; 10.9 GiB came back in 0.4 s`,
    ],
    [3, 'calm', null, null, 'memory is calm again: 9.1 GiB available, swap no longer grows'],
    [5, 'load', 'primary', EVERYDAY, `loading ${EVERYDAY}: 7.7 GiB planned of 12 GiB`],
    [5, 'ready', 'primary', EVERYDAY, 'ready after 2.1 s, and uses 7.4 GiB'],
    [7, 'refusal', 'heavy', DEEP, 'it needs 11.7 GiB and 9.1 GiB are free'],
  ] as const
)
  .map(([minute, kind, tier, model, sentence], index) => ({
    id: index + 1,
    at_ms: NOW - (9 - minute) * MINUTE,
    kind,
    tier,
    model,
    sentence,
  }))
  .reverse();

const RECENT: RequestRecord[] = [
  {
    path: '/v1/messages',
    tier: 'primary',
    model: EVERYDAY,
    prompt: 1840,
    completion: 212,
    client: 'claude-code',
  },
  {
    path: '/tierbar/v1/chats/c1/turns',
    tier: 'primary',
    model: EVERYDAY,
    prompt: 412,
    completion: 388,
    client: null,
  },
].map(({ prompt, completion, ...rest }, index) => ({
  ...rest,
  id: 2 - index,
  at_ms: NOW - (index + 1) * 70_000,
  code: null,
  outcome: 'answered',
  prompt_tokens: prompt,
  completion_tokens: completion,
  duration_ms: 21_000,
  first_token_ms: 1200,
  waited_ms: 0,
}));

/** Ten minutes: a large model leaves for memory's sake, and a smaller one comes. */
const HISTORY: History = {
  step_seconds: 10,
  points: Array.from({ length: 60 }, (_, index) => {
    const flat = (value: number) => ({ mean: value, max: value });
    const wave = Math.sin(index / 4);
    const large = index < 18;
    const models = large ? 11.1 * GIB : index < 30 ? 0 : 7.4 * GIB;
    return {
      at: NOW / 1000 - (60 - index) * 10,
      samples: 10,
      pressure: index > 10 && large ? 'warning' : 'normal',
      ram_total_bytes: 16 * GIB,
      ram_used_bytes: flat(models + (4.1 + wave * 0.25) * GIB),
      swap_used_bytes: flat((large ? 0.2 + index * 0.06 : 1.25) * GIB),
      models_bytes: flat(models),
      disk_read_bytes_per_second: flat(index > 28 && index < 33 ? 1.4e9 : 4e5),
      decode_tokens_per_second: index > 36 && index % 7 < 4 ? flat(17 + wave) : null,
    };
  }),
};

export const ANSWER = `The dot product is $a \\cdot b = \\sum_i a_i b_i$, and its gradient is

\\[ \\nabla_a (a \\cdot b) = b, \\qquad \\lVert a \\rVert = \\sqrt{\\textstyle\\sum_i a_i^2} \\]

In Python, as in [the manual](https://docs.python.org/3/):

\`\`\`python
def dot(a: list[float], b: list[float]) -> float:  # the same length
    return sum(x * y for x, y in zip(a, b, strict=True))
\`\`\`

| Method | Time for 1,000,000 | Memory | Copies |
|---|---:|---:|---|
| \`sum\` with \`zip\` | 61 ms | 0 MB | none |
| \`numpy.dot\` | 0.4 ms | 16 MB | two, when it is given lists |
| \`math.sumprod\` | 9 ms | 0 MB | none |

1. Use \`math.sumprod\` from Python 3.12 on.
2. Use **NumPy** where the data is an array *already*.

> A product of small floats may underflow: scale them first.
`;

export const REASONING =
  'The user wants the dot product and its gradient. I should give the formula first, then a short function, and compare the ways by speed. math.sumprod exists since Python 3.12.';

/** What a model may say, by mistake or by intention. */
export const HOSTILE = [
  'Before <script>window.ran = 1</script> <img src=x onerror="window.ran = 2"> <iframe srcdoc="<script>parent.ran = 3</script>"></iframe> [a link](javascript:window.ran=4) <svg onload="window.ran = 5"></svg> after.',
  `The file \u202egnp.exe\u202c is not a picture. \u2066\u2067\u2068 Bidi \u2069\u2069\u2069 ends here.`,
  `|${Array.from({ length: 200 }, (_, index) => ` column ${index + 1} |`).join('')}\n|${'---|'.repeat(200)}\n|${Array.from({ length: 200 }, (_, index) => ` ${index + 1} |`).join('')}`,
  'A formula without an end: \\( x = \\frac{1}{2} + \\left( y and $$ z',
  'word '.repeat(2000).trim(),
  'x'.repeat(1_000_000),
].join('\n\n');

let ids = 0;
function message(role: ChatMessage['role'], parts: Part[], more: Partial<ChatMessage> = {}): ChatMessage {
  ids += 1;
  return {
    id: ids,
    parent: ids - 1 || null,
    role,
    parts,
    tier: null,
    model: null,
    why: null,
    instead_of: null,
    finish: null,
    decode_tokens_per_second: null,
    time_to_first_token_ms: null,
    experts: null,
    times: null,
    context: null,
    left_out: null,
    ...more,
  };
}

export const text = (words: string): Part => ({ type: 'text', text: words });
export const question = (words: string, ...files: Part[]) => message('user', [...files, text(words)]);
export const answer = (parts: Part[], more: Partial<ChatMessage> = {}) =>
  message('assistant', parts, {
    tier: 'primary',
    model: EVERYDAY,
    why: 'it is a question of some length; primary is loaded',
    finish: 'stop',
    decode_tokens_per_second: 17.8,
    time_to_first_token_ms: 1240,
    context: { prompt_tokens: 412, answer_tokens: 388, context_tokens: 32768 },
    ...more,
  });

/** Adds a chat of these messages, each after the one before it. */
export function addChat(
  network: Network,
  title: string,
  messages: ChatMessage[],
  more: Partial<Chat> = {},
): Chat {
  messages.forEach((message, index) => {
    message.parent = messages[index - 1]?.id ?? null;
  });
  const at = new Date(NOW - network.chats.length * 3 * 3600_000).toISOString();
  const chat: Chat = {
    id: `chat-${network.chats.length + 1}`,
    title,
    model: 'primary',
    created_at: at,
    updated_at: at,
    when_full: 'refuse',
    instructions: '',
    sampling: {},
    thinking: null,
    pinned: false,
    turn: null,
    leaf: messages.at(-1)?.id ?? null,
    messages,
    ...more,
  };
  network.chats.push(chat);
  return chat;
}

/** A host with models, chats and a history. */
export function furnished(): Network {
  const network = new Network({ served: true });
  network.history = HISTORY;
  network.log = LOG;
  network.recent = RECENT;
  network.costs = {
    days: [
      {
        day: '2026-11-26',
        tasks: {
          summarize: { answers: 4, prompt_tokens: 18_200, completion_tokens: 1150, saved_tokens: 15_900 },
        },
      },
    ],
    total: { answers: 4, prompt_tokens: 18_200, completion_tokens: 1150, saved_tokens: 15_900 },
  };
  network.jobs = [
    {
      id: 'job-1',
      state: 'waiting',
      priority: 'normal',
      path: '/v1/chat/completions',
      created_ms: NOW - 4 * MINUTE,
      not_before_ms: NOW - 4 * MINUTE,
      deadline_ms: NOW + 24 * 60 * MINUTE,
      ended_ms: null,
      attempts: 2,
      max_attempts: 300,
      status: null,
      reason: 'heavy needs 11.7 GiB and 9.1 GiB are free',
      webhook: null,
    },
  ];
  network.chains = [
    {
      name: 'write',
      triage: false,
      steps: [
        { step: 'sonnet', gate: 'cooling', for_ms: 30_000, server: 'api.anthropic.com' },
        { step: 'primary' },
        { step: 'queue' },
      ],
    },
  ];
  network.presets = [
    {
      name: 'Brief',
      built_in: true,
      settings: {
        instructions: 'Answer in as few sentences as the question needs.',
        sampling: {},
        thinking: null,
      },
    },
  ];
  addChat(
    network,
    'Plan a weekend in Lisbon',
    [question('Plan a weekend in Lisbon'), answer([text('Start in Alfama.')])],
    { pinned: true },
  );
  addChat(network, 'Why does my build take so long?', [
    question('Why?'),
    answer([text('It compiles twice.')]),
  ]);
  addChat(network, 'The dot product in Python', [
    question('How do I compute a dot product in Python, and what is its gradient?'),
    answer([{ type: 'reasoning', text: REASONING }, text(ANSWER)]),
  ]);
  network.override = respond;
  return network;
}

/** Answers what the played host has no state for. */
export function respond({ method, path }: Sent): Response | null {
  const { pathname } = new URL(path, 'http://host');
  switch (pathname) {
    case '/tierbar/v1/models':
      return Response.json({ models_dir: PLAN.models_dir, disks: DISKS, models: MODELS });
    case '/v1/context':
      return Response.json({ object: 'list', data: [CONTEXT] });
    case '/v1/context/store':
      return Response.json({
        object: 'list',
        data: [
          CONTEXT,
          {
            ...CONTEXT,
            name: 'Field notes',
            form: 'compact',
            bytes: 412_000_000,
            created: CONTEXT.created - 86_400,
          },
        ],
      });
    case '/tierbar/v1/documents':
      return Response.json(DOCUMENTS);
    case '/tierbar/v1/catalog':
      return Response.json({ version: '1', date: '2026-11-20', refreshed: null, models: CATALOG });
    case '/tierbar/v1/setup':
      return Response.json({
        ...PLAN,
        tiers: PLAN.tiers.map((row, index) => ({
          ...row,
          in_use: index < 2,
          installed: index < 2 ? 'here' : null,
        })),
      });
    case '/tierbar/v1/setup/answers':
      return Response.json({ answers: [] });
    case '/tierbar/v1/config':
      return Response.json({
        path: '/Users/ada/Library/Application Support/Tierbar/config.toml',
        config: CONFIG,
      });
    case '/tierbar/v1/connect':
      return Response.json(CONNECTIONS);
    case '/tierbar/v1/secrets':
      return Response.json({
        secrets: [
          { name: 'hugging-face', source: null },
          { name: 'api.anthropic.com', source: 'keychain' },
        ],
      });
    case '/tierbar/v1/keys': {
      const key = {
        name: 'laptop',
        created_ms: NOW - 40 * 24 * 60 * MINUTE,
        last_used_ms: NOW - 3 * MINUTE,
        revoked_ms: null,
      };
      if (method === 'POST')
        return Response.json({ ...key, name: 'phone', key: 'tb-7f1c0a52d94e4d0b' }, { status: 201 });
      return Response.json({ keys: [key] });
    }
    case '/tierbar/v1/origins':
      return Response.json({
        allowed: ['https://notes.example'],
        refused: [{ origin: 'https://other.example', since_ms: NOW - MINUTE }],
        program_schemes: ['app', 'tauri', 'vscode-file'],
      });
    case '/tierbar/v1/hub/search':
      return Response.json({
        models: [
          {
            repository: 'bartowski/Qwen2.5-Coder-7B-Instruct-GGUF',
            downloads: 812_000,
            likes: 402,
            gated: false,
            updated: '2026-09-02T00:00:00Z',
          },
          {
            repository: 'meta-llama/Llama-3.2-3B-GGUF',
            downloads: 91_000,
            likes: 77,
            gated: true,
            updated: null,
          },
        ],
      });
    default:
      if (/\/tiers\/[^/]+\/(bench|tune)$/.test(pathname)) return Response.json({ report: null });
      return null;
  }
}
