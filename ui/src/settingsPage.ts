import { mount } from 'svelte';
import Root from './features/settings/Root.svelte';
import { startApp } from './lib/app';
import { detectPlatform } from './platform';

window.name = 'tierbar-settings';
document.title = 'Tierbar Settings';
const app = startApp(await detectPlatform());
mount(Root, { target: document.getElementById('app') as HTMLElement, props: { app } });
