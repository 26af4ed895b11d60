// Walk: the user's own sentence, step by step through attention; the engine computes every number.
import {chooser, follow, h, rich} from '../dom.mjs';
import {matrix, written} from '../matrix.mjs';
import {STEPS, writtenSum} from './steps.mjs';
import {vocabularyPage} from './vocabulary.mjs';

const HEADS = [1, 2, 3, 4, 6, 8, 12, 24];
// Where arrow keys have another meaning: fields, radio buttons, matrices, and what scrolls sideways.
const OWN_ARROWS = 'input, select, textarea, [contenteditable], [role=grid], .scroll';

class WalkView {
  constructor(root, app) {
    this.root = root;
    this.app = app;
    const {state} = app;
    this.text = state.text ?? app.say('walk.sentence');
    this.heads = HEADS.includes(Number(state.heads)) ? Number(state.heads) : 4;
    this.causal = state.causal === '1';
    this.step = Math.min(STEPS.length - 1, Math.max(0, STEPS.findIndex(({key}) => key === state.step)));
    this.head = Number(state.head ?? 0);
    this.part = ['q', 'k', 'v'].includes(state.part) ? state.part : 'q';
    this.controls = this.makeControls();
    this.stage = h('section', {class: 'stage', 'aria-labelledby': 'step-title'});
    this.list = h('ol', {class: 'steps'});
    root.append(h('h1', {}, app.say('walk.title')), h('p', {class: 'lead'}, app.say('walk.lead')), this.controls,
      h('div', {class: 'walk'}, h('nav', {'aria-label': app.say('walk.steps')}, this.list), this.stage));
    this.listening = new AbortController();
    document.addEventListener('keydown', (event) => this.key(event), {signal: this.listening.signal});
    this.compute({unasked: true});
  }
  // Ignores pending results.
  unmount() {
    clearTimeout(this.typing);
    this.listening.abort();
    this.asked = undefined;
  }

  makeControls() {
    const {app} = this;
    const field = h('input', {type: 'text', id: 'sentence', value: this.text, maxlength: 400, autocomplete: 'off',
      'aria-describedby': 'sentence-error',
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.compute(), 200);
      }});
    this.field = field;
    const heads = h('select', {id: 'heads', onchange: () => {
      this.heads = Number(heads.value);
      this.head = Math.min(this.head, this.heads - 1);
      this.compute();
    }}, HEADS.map((each) => h('option', {value: each, selected: each === this.heads}, each)));
    const causal = h('input', {type: 'checkbox', id: 'causal', checked: this.causal, onchange: () => {
      this.causal = causal.checked;
      this.compute();
    }});
    this.error = h('p', {class: 'error', id: 'sentence-error', role: 'alert'});
    return h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
      h('div', {class: 'field wide'}, h('label', {for: 'sentence'}, app.say('walk.sentenceLabel')), field),
      h('div', {class: 'field'}, h('label', {for: 'heads'}, app.say('walk.heads')), heads),
      h('div', {class: 'field check'}, causal, h('label', {for: 'causal'}, app.say('walk.causal'))), this.error);
  }

  async compute({unasked = false} = {}) {
    clearTimeout(this.typing);
    this.text = this.field.value;
    const {app, text, heads, causal} = this;
    const asked = this.asked = {};
    try {
      const [walk, vocabulary] = await app.busy(Promise.all([app.engine.call('walk', {text, heads, causal}),
        app.engine.call('vocabulary', {text})]));
      if (this.asked !== asked) return;  // another sentence was typed since, or the view was closed
      this.walk = walk;
      this.vocabulary = vocabulary;
      this.error.textContent = '';
    } catch (error) {
      if (this.asked === asked) this.error.textContent = this.refusal(error);
      return;
    }
    this.head = Math.min(this.head, heads - 1);
    this.draw({unasked});
  }
  refusal({message}) {
    if (message.includes('no word')) return this.app.say('walk.empty');
    const tokens = message.match(/(\d+) tokens; the maximum is (\d+)/);
    return tokens ? this.app.say('walk.long', tokens[1], tokens[2]) : message;
  }

  // Shows another step, from its title on. Focus stays where it was: in the list, or on a button below the step.
  go(step, button = 'forward') {
    const inList = this.list.contains(document.activeElement), inStage = this.stage.contains(document.activeElement);
    this.step = step;
    this.draw();
    this.app.announce(this.title());
    if (inList) this.list.children[step].firstChild.focus({preventScroll: true});
    const turn = this.stage.querySelector(`.${button}:enabled`) ?? this.stage.querySelector('.turn :enabled');
    if (inStage) turn.focus({preventScroll: true});
    const title = this.stage.querySelector('h2'), {top, bottom} = title.getBoundingClientRect();
    const under = this.stage.querySelector('.turn').offsetHeight;
    if (top < 0 || bottom > innerHeight - under) title.scrollIntoView();
  }
  key(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!this.walk || !STEPS[this.step + by] || event.target.closest?.(OWN_ARROWS)) return;
    event.preventDefault();
    this.go(this.step + by, by < 0 ? 'back' : 'forward');
  }
  title() {
    return `${this.step + 1}. ${this.app.say(`walk.${STEPS[this.step].key}`)}`;
  }

  draw({unasked = false} = {}) {
    const {app, walk} = this;
    const step = STEPS[this.step];
    app.change({text: this.text, heads: this.heads, causal: this.causal ? 1 : undefined, step: step.key,
      head: this.head || undefined, part: step.parts ? this.part : undefined}, {unasked});
    this.list.replaceChildren(...STEPS.map(({key}, n) => h('li', {}, h('button', {
      type: 'button', 'aria-current': n === this.step ? 'step' : undefined, onclick: () => this.go(n),
    }, app.say(`walk.${key}`)))));
    follow(this.list, this.list.children[this.step]);
    const {L, E, H, D} = walk.sizes;
    const scale = walk.scale;
    const numbers = {
      scale: [D, scale.variance_before.toFixed(2), scale.variance_after.toFixed(2),
        Math.round(100 * scale.mean_largest_weight_before), Math.round(100 * scale.mean_largest_weight_after)],
      split: [H, E, D, 4 * E * E], combine: [H, E, D], projections: [E], output: [E],
    }[step.key] ?? [L, E, H, D];
    const words = step.key === 'mask' && walk.causal ? 'walk.mask.causal' : `walk.${step.key}.text`;
    this.stage.replaceChildren(
      h('h2', {id: 'step-title'}, this.title()),
      h('p', {}, rich(app.say(words, ...numbers))),
      ...(step.key === 'vocabulary' ? vocabularyPage(app, this.vocabulary) : this.panels(step)),
      h('div', {class: 'turn'},
        h('button', {type: 'button', class: 'back', disabled: this.step === 0, 'aria-keyshortcuts': 'ArrowLeft',
          onclick: () => this.go(this.step - 1, 'back')}, app.say('walk.back')),
        h('button', {type: 'button', class: 'forward primary', disabled: this.step === STEPS.length - 1,
          'aria-keyshortcuts': 'ArrowRight', onclick: () => this.go(this.step + 1)}, app.say('walk.forward'))));
  }

  panels(step) {
    const {app, walk} = this;
    const shown = step.shows(walk, this);
    const figures = {};
    const how = h('p', {class: 'how'}, app.say('walk.hover'));
    const clear = () => Object.values(figures).forEach((each) => each.mark());
    for (const panel of shown) {
      const {name, tensor, made, values, legendOfHeads} = panel;
      figures[name] = matrix({
        ...panel,
        title: name,
        announce: (text) => app.announce(text),
        legend: legendOfHeads ? Array.from({length: walk.sizes.H}, (_, n) => app.say('walk.head', n)) : undefined,
        read: (i, j) => this.reading(panel, i, j),
        point: (i, j) => {
          clear();
          figures[name].mark({cell: [i, j]});
          if (!made) return;
          const about = made(i, j);
          Object.entries(about.marks).forEach(([other, mark]) => figures[other].mark(mark));
          how.textContent = `${name}[${i}, ${j}] = ${writtenSum(about, values[i][j], (count) => app.say('walk.more', count))}`;
        },
      });
      if (panel.dense) figures[name].classList.add('dense');
      if (tensor) {
        figures[name].querySelector('figcaption').append(h('span', {class: 'layout'},
          ` ${app.say('shape')} (${tensor.shape.join(', ')}) · ${app.say('strides')} (${tensor.strides.join(', ')})`));
      }
    }
    const chosen = [];
    if (step.parts) {
      chosen.push(chooser({name: 'part', label: app.say('walk.which'), chosen: this.part,
        choices: step.parts.map((value) => ({value, label: value})), change: (part) => this.choose({part})}));
    }
    if (step.ofHead) {
      chosen.push(chooser({name: 'head', label: app.say('walk.whichHead'), chosen: this.head,
        choices: walk.heads.map(({head}) => ({value: head, label: app.say('walk.head', head)})),
        change: (head) => this.choose({head: Number(head)})}));
    }
    return [...chosen, shown.some(({made}) => made) ? how : undefined, h('div', {class: 'panels'}, Object.values(figures)), step.maps ? this.maps() : undefined]
      .filter(Boolean);
  }
  choose(change) {
    Object.assign(this, change);
    this.draw();
    this.stage.querySelector('input:checked')?.focus();
  }

  reading({name, values, rows, columns, paint}, i, j) {
    const {app} = this;
    if (name.startsWith('weights')) return app.say('walk.readWeight', rows[i], Math.round(100 * values[i][j]), columns[j]);
    if (/^(scores|scaled|masked)/.test(name)) {
      return values[i][j] === null ? app.say('walk.readHidden', rows[i], columns[j])
        : app.say('walk.readScore', rows[i], columns[j], written(values[i][j]));
    }
    return app.say(paint === 'group' ? 'walk.readGroup' : 'walk.readNumber', name, rows[i], columns[j],
      written(values[i][j], 3));
  }

  // All heads next to each other, each with what it mostly attends to.
  maps() {
    const {app, walk} = this;
    return h('div', {class: 'heads'}, h('h3', {}, app.say('walk.allHeads')), h('div', {class: 'panels'},
      walk.heads.map(({head, habit, share, keys_in_sight: keys, weights}) => matrix({
        title: `${app.say('walk.head', head)} · ${app.say(`walk.habit.${habit}`,
          habit === 'spread' ? keys.toFixed(1) : Math.round(100 * share))}`,
        rows: walk.tokens, columns: walk.tokens, values: weights, paint: 'weight',
        announce: (text) => app.announce(text),
        read: (i, j) => app.say('walk.readWeight', walk.tokens[i], Math.round(100 * weights[i][j]), walk.tokens[j]),
      }))));
  }
}

export const walk = {
  mount(root, app) {
    const view = new WalkView(root, app);
    return {unmount: () => view.unmount()};
  },
};
