// Train: a model learns the induction task in the page, while the maps of both heads update.
import {h, rich} from '../dom.mjs';
import {paintWeights} from '../paint.mjs';
import {lossChart} from './loss.mjs';

class TrainView {
  constructor(root, app) {
    this.app = app;
    this.engine = app.engine.fork();
    this.seed = Number(app.state.seed ?? 1);
    this.causal = app.state.causal !== '0';
    this.rate = app.state.rate ? Number(app.state.rate) : undefined;
    this.running = false;
    this.seconds = 0;
    this.chart = lossChart(app);
    this.make(root);
    this.engine.listen('look', (report) => this.show(report));
    this.begin();
  }

  unmount() {
    this.gone = true;
    this.engine.stop();
  }

  make(root) {
    const {app} = this;
    const button = (key, act, more = {}) => h('button', {type: 'button', onclick: act, ...more}, app.say(key));
    this.start = button('train.start', () => this.heed(this.toggle()), {class: 'primary', id: 'train-start'});
    const seed = h('input', {type: 'number', id: 'seed', min: 0, max: 999999, value: this.seed, onchange: () => {
      this.seed = Math.max(0, Math.floor(Number(seed.value) || 0));
      this.begin();
    }});
    this.rateField = h('input', {type: 'range', id: 'rate', min: -4.5, max: -1.5, step: 0.05, oninput: () => {
      this.rate = 10 ** Number(this.rateField.value);
      this.sayRate();
      this.keep();
      this.heed(this.begun.then(() => this.engine.call('trainRate', {rate: this.rate})));
    }});
    this.rateWords = h('output', {for: 'rate'});
    const causal = h('input', {type: 'checkbox', id: 'future', checked: this.causal, onchange: () => {
      this.causal = causal.checked;
      this.keep();
      this.heed(this.recompute());
    }});
    this.status = h('p', {class: 'status'});
    this.measures = h('tbody', {});
    this.letters = h('p', {class: 'letters-row'});
    this.cheat = h('p', {class: 'prose mood-wrong', hidden: true});
    this.canvases = [0, 1].map((layer) => h('canvas', {role: 'img', 'aria-label': app.say(`train.layer${layer}`), class: 'map'}));
    root.append(
      h('h1', {}, app.say('train.title')), h('p', {class: 'lead'}, rich(app.say('train.lead'))),
      h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
        h('div', {class: 'field buttons'}, this.start, button('train.step', () => this.heed(this.one())),
          button('train.again', () => this.begin())),
        h('div', {class: 'field'}, h('label', {for: 'seed'}, app.say('train.seed')), seed),
        h('div', {class: 'field'}, h('label', {for: 'rate'}, app.say('train.rate')), this.rateField, this.rateWords),
        h('div', {class: 'field check'}, causal, h('label', {for: 'future'}, app.say('walk.causal')))),
      this.status, h('progress', {id: 'train-progress', max: 1, value: 0, 'aria-label': app.say('train.progress')}), this.cheat,
      h('div', {class: 'train'},
        this.canvases.map((canvas, layer) => h('figure', {class: 'map-figure'},
          h('figcaption', {}, app.say(`train.layer${layer}`)), canvas)),
        h('figure', {class: 'chart-figure'}, h('figcaption', {}, app.say('train.loss')), this.chart.element)),
      h('p', {class: 'quiet'}, app.say('train.row')), this.letters,
      h('div', {class: 'scroll'}, h('table', {class: 'plain'}, h('caption', {}, app.say('train.measures')),
        h('thead', {}, h('tr', {}, ['train.measure', 'train.now', 'train.goal'].map((key) =>
          h('th', {scope: 'col'}, app.say(key))))), this.measures)));
  }
  keep() {
    this.app.change({seed: this.seed, causal: this.causal ? undefined : 0, rate: this.rate?.toPrecision(3)});
  }
  sayRate() {
    this.rateWords.textContent = this.rate.toPrecision(2);
    this.rateField.setAttribute('aria-valuetext', this.rate.toPrecision(2));
  }

  // Starting, stepping and changing a setting wait for the promise `begun`.
  begin() {
    this.begun = this.beginNow();
    this.heed(this.begun);
    return this.begun;
  }
  // Shows an error, unless the view was closed.
  heed(promise) {
    promise.catch((error) => {
      if (!this.gone) this.status.textContent = error.message;
    });
  }
  async beginNow() {
    await this.run(false);
    if (this.gone) return;
    this.keep();
    this.chart.clear();
    const {letters, places, rate, ...report} = await this.engine.call('trainBegin',
      {seed: this.seed, causal: this.causal, rate: this.rate});
    this.rate ??= rate;
    this.rateField.value = Math.log10(this.rate);
    this.sayRate();
    const known = new Set(places.map((place) => place + 1));
    this.letters.replaceChildren(...letters.map((letter, n) => h(known.has(n) ? 'mark' : 'span', {}, letter)));
    this.began = undefined;
    this.seconds = 0;
    this.show(report);
  }
  async run(running) {
    this.running = running;
    this.start.textContent = this.app.say(running ? 'train.pause' : 'train.start');
    if (running) this.began = performance.now() - this.seconds * 1000;
    if (this.state) await this.engine.call('trainRun', {running});
  }
  async toggle() {
    await this.begun;
    if (this.state?.done) await this.begin();
    await this.run(!this.running);
    this.app.announce(this.app.say(this.running ? 'train.running' : 'train.paused'));
  }
  async recompute() {
    await this.begun;
    this.show(await this.engine.call('trainCausal', {causal: this.causal}));
  }
  async one() {
    await this.begun;
    await this.run(false);
    this.show(await this.engine.call('trainStep', {}));
  }

  show(report) {
    const {app} = this;
    this.state = report;
    if (this.running) this.seconds = (performance.now() - this.began) / 1000;
    this.chart.add(report.losses);
    report.maps.forEach((map, layer) => this.paint(this.canvases[layer], map));
    document.getElementById('train-progress').value = report.step / report.steps;
    this.status.textContent = app.say('train.status', report.step, report.step ? report.loss.toFixed(3) : '–',
      this.seconds.toFixed(1));
    if (report.measures) this.showMeasures(report);
    if (!report.done || !this.running) return;
    this.running = false;
    this.start.textContent = app.say('train.start');
    this.status.textContent += ` · ${app.say(report.reached ? 'train.reached' : 'train.over')}`;
    app.announce(this.status.textContent);
  }
  showMeasures({measures, honest}) {
    const {app} = this;
    const percent = (value) => `${(100 * value).toFixed(1)} %`;
    const row = (words, value, goal) => h('tr', {}, h('th', {scope: 'row'}, words),
      h('td', {class: 'amount'}, percent(value)), h('td', {class: 'amount'}, goal === undefined ? '' : `${percent(goal)}`));
    const rows = measures.map(({key, value, goal}) => row(app.say(`train.measure.${key}`), value, goal));
    rows.splice(1, 0, row(app.say('train.honest'), honest));
    this.measures.replaceChildren(...rows);
    const accuracy = measures[0].value;
    this.cheat.hidden = this.causal;
    this.cheat.textContent = app.say('train.cheats', percent(accuracy), percent(honest));
  }
  paint(canvas, map) {
    const size = Math.sqrt(map.length);
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const context = canvas.getContext('2d');
    const image = context.createImageData(size, size);
    paintWeights(image, map);
    context.putImageData(image, 0, 0);
  }
}

export const train = {
  mount(root, app) {
    const view = new TrainView(root, app);
    return {unmount: () => view.unmount()};
  },
};
