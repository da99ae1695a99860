import { mount } from 'svelte';
import Root from './features/popover/Root.svelte';
import { startApp } from './lib/app';
import { onLanguageChoice } from './lib/language';
import { detectPlatform } from './platform';

document.title = 'Tierbar Overview';
onLanguageChoice(() => location.reload());
const app = startApp(await detectPlatform());
mount(Root, { target: document.getElementById('app') as HTMLElement, props: { app } });
