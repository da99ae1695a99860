import './app.css';
import { mount } from 'svelte';
import Root from './features/popover/Root.svelte';
import { startApp } from './lib/app';
import { detectPlatform } from './platform';

const app = startApp(await detectPlatform());
mount(Root, { target: document.getElementById('app') as HTMLElement, props: { app } });
