// The page: four views in four tabs, in two languages and two themes. The URL hash stores the view, its state and the
// language.
//
// A view is {mount(root, app)}: it draws into `root` and returns {update(state), unmount()}. `app` offers:
//   app.say(key, …)      a sentence from strings.mjs        app.lang          'en' or 'zh'
//   app.engine           the engine (engine.mjs)            app.announce(t)   announces to screen readers, politely
//   app.state            the view's state in the URL        app.change({…})   changes it, without a redraw
//       with {unasked: true}, only in copied links: changing the URL while the user goes back would cancel going back
//   app.go(view, state)  opens another view
//   app.busy(promise, words)   shows a progress bar if the promise takes longer than half a second
import {data} from './data/view.mjs';
import {h} from './dom.mjs';
import {startEngine} from './engine.mjs';
import {questions} from './questions/view.mjs';
import {LANGUAGES, say} from './strings.mjs';
import {train} from './train/view.mjs';
import {walk} from './walk/view.mjs';

const VIEWS = {walk, questions, data, train};
const remembered = (key) => {
  try {
    return localStorage.getItem(`rapt.${key}`);
  } catch {
    return null;  // some browsers have no storage for pages opened from disk
  }
};
const remember = (key, value) => {
  try {
    localStorage.setItem(`rapt.${key}`, value);
  } catch { /* as above */ }
};

// #walk?text=…&heads=4
function addressed() {
  const [name, query = ''] = location.hash.slice(1).split('?');
  const state = Object.fromEntries(new URLSearchParams(query));
  const {lang, theme, ...rest} = state;
  return {view: VIEWS[name] ? name : undefined, lang, theme, state: rest};
}

class App {
  constructor(engine) {
    this.engine = engine;
    const at = addressed();
    this.lang = LANGUAGES.find((each) => each === (at.lang ?? remembered('lang')))
      ?? (navigator.language.startsWith('zh') ? 'zh' : 'en');
    this.theme = at.theme ?? remembered('theme') ?? 'auto';
    this.view = at.view ?? (document.getElementById('result') ? 'data' : 'walk');
    this.state = at.state;
  }
  say(key, ...parts) { return say(this.lang, key, ...parts); }

  announce(text) {
    const place = document.getElementById('announcer');
    if (place.textContent !== text) place.textContent = text;
  }
  address(state = this.state) {
    const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== undefined && value !== ''));
    query.set('lang', this.lang);
    return `#${this.view}?${query}`;
  }
  change(state, {unasked = false} = {}) {
    this.state = {...this.state, ...state};
    if (!unasked) this.writeAddress();
  }
  writeAddress() {
    if (location.hash !== this.address()) history.replaceState(null, '', this.address());
  }
  go(view, state = {}) {
    this.view = view;
    this.state = state;
    history.pushState(null, '', this.address());
    this.draw();
  }
  // A permanent link to the current state.
  async copyLink() {
    this.writeAddress();
    try {
      await navigator.clipboard.writeText(location.href);
      this.announce(this.say('linkCopied'));
    } catch {
      prompt(this.say('linkHere'), location.href);
    }
  }
  async busy(promise, words = this.say('computing')) {
    const bar = document.getElementById('progress');
    const timer = setTimeout(() => {
      bar.hidden = false;
      bar.querySelector('span').textContent = words;
    }, 500);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      bar.hidden = true;
    }
  }

  setTheme(theme) {
    this.theme = theme;
    remember('theme', theme);
    this.applyTheme();
  }
  applyTheme() {
    const dark = this.theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : this.theme === 'dark';
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }
  setLang(lang) {
    this.lang = lang;
    remember('lang', lang);
    this.writeAddress();
    this.draw();
    document.getElementById('lang').focus();
  }

  header() {
    const tabs = Object.keys(VIEWS).map((name) => h('a', {
      href: `#${name}?lang=${this.lang}`, 'aria-current': name === this.view ? 'page' : undefined,
      onclick: (event) => {
        event.preventDefault();
        this.go(name);
        document.getElementById('view').focus();
      },
    }, this.say(`tab.${name}`)));
    const other = this.lang === 'en' ? 'zh' : 'en';
    const dark = document.documentElement.dataset.theme === 'dark';
    return h('header', {},
      h('a', {class: 'skip', href: '#view', onclick: (event) => {
        event.preventDefault();
        document.getElementById('view').focus();
      }}, this.say('skip')),
      h('p', {class: 'brand'}, h('b', {}, 'rapt'), ' ', h('span', {class: 'tagline'}, this.say('tagline'))),
      h('nav', {'aria-label': this.say('views')}, tabs),
      h('div', {class: 'tools'},
        h('button', {type: 'button', onclick: () => this.copyLink()}, this.say('copyLink')),
        h('button', {type: 'button', onclick: () => {
          this.setTheme(dark ? 'light' : 'dark');
          this.draw();
        }}, this.say(dark ? 'light' : 'dark')),
        h('button', {type: 'button', id: 'lang', lang: other === 'zh' ? 'zh-CN' : 'en',
          onclick: () => this.setLang(other)}, other === 'zh' ? '中文' : 'English')));
  }

  draw() {
    this.mounted?.unmount?.();
    document.documentElement.lang = this.lang === 'zh' ? 'zh-CN' : 'en';
    document.title = `${this.say(`tab.${this.view}`)} · rapt`;
    this.applyTheme();
    const root = h('main', {id: 'view', tabindex: -1, class: `view-${this.view}`});
    document.getElementById('app').replaceChildren(this.header(), root, h('footer', {}, this.say('footer')));
    this.mounted = VIEWS[this.view].mount(root, this);
  }
}

async function begin() {
  const engine = await startEngine();
  const app = new App(engine);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => app.applyTheme());
  addEventListener('hashchange', () => {
    const at = addressed();
    if (at.lang && at.lang !== app.lang) app.lang = at.lang;
    app.view = at.view ?? app.view;
    app.state = at.state;
    app.draw();
  });
  app.writeAddress();  // so that going back returns to the default view
  app.draw();
  performance.mark('rapt-drawn');
}

begin().catch((error) => {
  document.getElementById('app').replaceChildren(h('p', {class: 'failed', role: 'alert'},
    `rapt could not start here / rapt 无法在此启动: ${error.message}`));
});
