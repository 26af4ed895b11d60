// Questions, each answered by a small exhibit with settings. They have the order and the numbers of
// `rapt explain --questions`.
import {chooser, follow, h, rich} from '../dom.mjs';
import {drawBlocks} from './blocks.mjs';

class QuestionsView {
  constructor(root, app) {
    this.app = app;
    this.number = Number(app.state.q ?? 0);
    this.settings = Object.fromEntries(Object.entries(app.state).filter(([key]) => key.startsWith('s.'))
      .map(([key, value]) => [key.slice(2), value]));
    this.list = h('nav', {'aria-label': app.say('questions.list')});
    this.place = h('article', {'aria-live': 'off'});
    root.append(h('h1', {}, app.say('questions.title')), h('p', {class: 'lead'}, app.say('questions.lead')),
      h('div', {class: 'questions'}, this.list, this.place));
    this.begin();
  }
  // Ignores pending results.
  unmount() {
    this.gone = true;
    this.asked = undefined;
  }

  async begin() {
    const {app} = this;
    this.all = await app.engine.call('questions', {lang: app.lang});
    if (this.gone) return;
    if (!this.all.some(({number}) => number === this.number)) this.number = this.all[0].number;
    this.drawList();
    await this.open(this.number, this.settings, {unasked: true});
  }
  drawList() {
    const {app} = this;
    this.list.replaceChildren(h('ol', {}, this.all.map(({number, question}) => h('li', {value: number}, h('a', {
      href: `#questions?q=${number}&lang=${app.lang}`, 'aria-current': number === this.number ? 'true' : undefined,
      onclick: async (event) => {
        event.preventDefault();
        await this.open(number, {});
        this.drawList();
        this.place.querySelector('h2')?.focus();
      },
    }, rich(question))))));
    follow(this.list, this.list.querySelector('[aria-current]'));
  }

  async open(number, settings, {unasked = false} = {}) {
    const {app} = this;
    this.number = number;
    this.settings = settings;
    const asked = this.asked = {};
    let exhibit;
    try {
      exhibit = await app.busy(app.engine.call('exhibit', {number, lang: app.lang, settings}));
    } catch (error) {
      if (this.asked === asked) this.place.replaceChildren(h('p', {class: 'error', role: 'alert'}, error.message));
      return;
    }
    if (this.asked !== asked) return;
    app.state = {};
    app.change({q: number, ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`s.${key}`, value]))},
      {unasked});
    this.draw(exhibit);
  }

  draw(exhibit) {
    const {app} = this;
    const at = this.all.findIndex(({number}) => number === exhibit.number);
    const switches = exhibit.switches.map(({key, label, choices, chosen}) => chooser({
      name: key, label, choices, chosen, change: async (value) => {
        await this.open(exhibit.number, {...this.settings, [key]: value});
        this.place.querySelector(`input[name="${key}"]:checked`)?.focus();
      },
    }));
    const set = exhibit.switches.filter(({choices, chosen}) => chosen !== choices[0].value)
      .map(({key, chosen}) => `--set ${key}=${chosen}`);
    if (app.lang === 'zh') set.push('--lang zh');
    const turn = (number, words, name) => h('button', {
      type: 'button', class: name, disabled: number === undefined, onclick: async () => {
        await this.open(number, {});
        this.drawList();
        this.place.querySelector('h2')?.focus();
      },
    }, app.say(words));
    this.place.replaceChildren(
      h('p', {class: 'count'}, app.say('questions.count', exhibit.number, this.all.length)),
      h('h2', {tabindex: -1}, rich(exhibit.question)), h('p', {class: 'answer'}, rich(exhibit.answer)),
      switches.length ? h('form', {class: 'switches', onsubmit: (event) => event.preventDefault()}, switches) : '',
      ...drawBlocks(exhibit.blocks, app),
      h('p', {class: 'twin'}, app.say('questions.twin'), ' ',
        h('code', {}, ['rapt explain --question', exhibit.number, ...set].join(' '))),
      h('div', {class: 'turn'}, turn(this.all[at - 1]?.number, 'questions.back', 'back'),
        turn(this.all[at + 1]?.number, 'questions.forward', 'forward primary')));
  }
}

export const questions = {
  mount(root, app) {
    const view = new QuestionsView(root, app);
    return {unmount: () => view.unmount()};
  },
};
