import { mount } from 'svelte';
import { Chats } from './features/chat/chats.svelte';
import Root from './features/chat/Root.svelte';
import { startApp } from './lib/app';
import { onLanguageChoice } from './lib/language';
import { detectPlatform } from './platform';

window.name = 'tierbar-chats';
const app = startApp(await detectPlatform());
const chats = new Chats({ api: app.api });
onLanguageChoice(() => {
  if (!chats.unsaved) location.reload();
});
addEventListener('pagehide', () => chats.leave());
mount(Root, { target: document.getElementById('app') as HTMLElement, props: { app, chats } });
