import { type Api, asApiError } from '../../lib/http';
import type { TierStatus } from '../../platform/openapi';
import { displayName } from '../tiers/tiers';
import { canContinue, isComplete } from './again';
import type { Conversation } from './conversation.svelte';

/** What commands act on besides the chat. */
export interface CommandSurroundings {
  api: Api;
  /** The names that `/model` takes. */
  models: string[];
  tiers: TierStatus[];
  /** Shows a sentence that comes later. */
  say(sentence: string): void;
  startNew(): void;
  showInstructions(): void;
  showMonitor(): void;
  /** Saves the chat of this id as a file. */
  exportAs(id: string): void;
}

/** Carries out a command of the composer. Returns what there is to say about it. */
export function runCommand(
  name: string,
  argument: string,
  chat: Conversation,
  around: CommandSurroundings,
): string | null {
  const { api, models } = around;
  const last = chat.turns.at(-1);
  switch (name) {
    case 'new':
      around.startNew();
      return null;
    case 'model':
      if (!models.includes(argument))
        return `There is no tier or chain “${argument}”. Choose one of ${models.join(', ')}.`;
      void chat.choose(argument);
      return `From now on, ${displayName(argument)} answers.`;
    case 'instructions':
      if (argument === '') {
        around.showInstructions();
        return null;
      }
      void chat.set({ instructions: argument }).then((refused) => {
        if (refused) around.say(refused.sentences);
      });
      return 'The next answers follow these instructions.';
    case 'agent': {
      const before = chat.agent;
      chat.agent = argument === '' ? null : argument;
      if (argument === '')
        return before === null ? 'Name a folder: /agent FOLDER' : 'The model can no longer act in a folder.';
      void api.post('/tierbar/v1/agent/folder', { body: { folder: argument } }).then(
        ({ folder }) => {
          if (chat.agent === argument) chat.agent = folder;
        },
        (cause: unknown) => {
          if (chat.agent === argument) chat.agent = before;
          // To be corrected.
          if (chat.draft === '') chat.draft = `/agent ${argument}`;
          around.say(asApiError(cause).sentences);
        },
      );
      return `From now on, the model can read files in ${argument}, and asks before it runs a command or changes a file.`;
    }
    case 'retry':
      if (chat.busy) return 'The answer is still being written.';
      if (!last?.question) return 'There is no message to answer again.';
      void chat.answer();
      return null;
    case 'continue': {
      if (chat.busy) return 'The answer is still being written.';
      const answer = last?.shown;
      if (!answer) return 'There is no answer to continue.';
      if (isComplete(answer)) return 'The last answer is complete.';
      if (!canContinue(answer, around.tiers)) return 'The tier that began this answer can’t continue it.';
      void chat.answer({ continued: answer });
      return null;
    }
    case 'good':
    case 'bad':
    case 'ungrade': {
      if (chat.busy) return 'The answer is still being written.';
      const answer = last?.shown;
      if (!answer) return 'There is no answer to grade.';
      const grade =
        name === 'ungrade' ? null : { verdict: name, ...(argument === '' ? {} : { why: argument }) };
      void chat.grade(answer, grade).then((refused) => {
        if (refused) around.say(refused.sentences);
      });
      if (name === 'ungrade') return 'The last answer has no grade.';
      return name === 'good' ? 'The last answer is graded as good.' : 'The last answer is graded as bad.';
    }
    case 'cost':
    case 'improve':
      around.showMonitor();
      return null;
    case 'export':
      if (chat.id === null) return 'There is nothing to export yet.';
      around.exportAs(chat.id);
      return null;
    case 'clear':
      if (chat.busy) return 'The answer is still being written.';
      chat.startOver();
      return null;
    default:
      return null;
  }
}
