// Your data: drop a file, and view its heads.
import {download, h} from '../dom.mjs';
import {exact, RowPanel, tokenOf} from './row.mjs';
import {pngOf, svgOf, VECTOR} from './exports.mjs';
import {Grid, SORTS} from './grid.mjs';
import {LargeMap} from './large.mjs';
import {linesOf, MOST} from './lines.mjs';
import {choices, intake, loaded} from './panel.mjs';
import {Session} from './session.mjs';

const MOST_NUMBERS = 1 << 20;  // in a CSV file; a larger map is reduced to the maximum in each cell
const STOPPED = /^stopped$|was freed$/;  // the errors of requests whose data was released

let session;  // outlives the view

class View {
  constructor(root, app) {
    this.app = app;
    this.root = root;
    session ??= new Session(app.engine);
    this.alerts = h('div', {class: 'data-alerts', role: 'alert'});
    this.place = h('div', {});
    root.append(h('h1', {}, app.say('data.title')), h('p', {class: 'lead'}, app.say('data.lead')), this.alerts,
      this.place);
    this.listening = new AbortController();
    this.listenForDrops(this.listening.signal);
    // The colours of the axes depend on the theme.
    this.themes = new MutationObserver(() => this.large?.draw());
    this.themes.observe(document.documentElement, {attributeFilter: ['data-theme']});
    this.draw();
    this.takeResult();
  }
  // Listens on the whole page: a file dropped outside the view would make the browser navigate to it.
  listenForDrops(signal) {
    const on = (name, act) => document.addEventListener(name, (event) => {
      event.preventDefault();
      this.root.classList.toggle('dropping', name === 'dragover');
      act?.(event);
    }, {signal});
    on('dragover');
    on('dragleave');
    on('drop', (event) => this.give([...event.dataTransfer.files]));
  }
  unmount() {
    this.gone = true;
    this.listening.abort();
    this.themes.disconnect();
    this.large?.destroy();
    this.grid?.destroy();
  }

  // Loads the files that `rapt run --html` embedded in the page.
  takeResult() {
    const element = document.getElementById('result');
    if (!element || session.resultTaken) return;
    session.resultTaken = true;
    try {
      const {files = [], labels, title} = JSON.parse(element.textContent);
      if (labels) session.labels = labels;
      session.title = title;
      this.take(files);
    } catch (error) {
      this.alert([{name: 'result', error}]);
    }
  }

  give(files) {
    return this.take(files.map((file) => ({name: file.name, blob: file})));
  }
  async sample() {
    await this.app.busy(session.addSample(this.app.lang));
    if (!this.gone) await this.choose({});
  }
  async take(files) {
    if (!files.length) return;
    this.alerts.replaceChildren();
    const problems = await this.app.busy(session.add(files), this.app.say('data.reading'));
    if (this.gone) return;
    this.alert(problems);
    if (problems.length < files.length) await this.choose({});  // at least one file was opened: find subjects again
  }
  alert(problems) {
    this.alerts.replaceChildren(...problems.map(({name, error}) => {
      const said = error.said ? this.app.say(...error.said)
        : error.name === 'TooLarge' ? this.app.say('data.tooLarge', name)
        : error.name === 'UnknownKind' ? this.app.say('data.unknownKind', name) : error.message;
      return h('p', {class: 'error'}, said.includes(name) ? said : `${name}: ${said}`);
    }));
  }
  fail(error) {
    if (!this.gone && !STOPPED.test(error.message)) this.alert([{name: session.subject?.title ?? 'rapt', error}]);
  }
  removeAll() {
    session.clear();
    this.alerts.replaceChildren();
    this.draw();
    document.getElementById('data-choose')?.focus();
  }

  async choose(chosen) {
    const focused = document.activeElement?.id;
    session.prefer(chosen);
    try {
      await session.choose();
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.gone) return;
    this.draw();
    if (focused?.startsWith('data-')) document.getElementById(focused)?.focus();
  }

  // Everything below the title.
  draw() {
    const {app} = this;
    this.large?.destroy();
    this.grid?.destroy();
    this.large = this.grid = undefined;
    const {asked, subject} = session;
    const parts = [intake(app, {give: (files) => this.give(files), empty: !asked,
      sample: () => this.sample().catch((error) => this.fail(error))})];
    if (session.files.length || session.labels || session.config) {
      parts.push(loaded(app, session, () => this.removeAll()));
    }
    if (asked && !subject) parts.push(this.controls(), this.lacking(asked.lacks));
    if (!asked && session.files.length) {
      const wrong = session.subjects().slice(0, 8).map((each) => each.wrong);
      parts.push(this.lacking(wrong.length ? wrong : [['data.nothing']]));
    }
    if (!subject) {
      parts.push(h('details', {class: 'data-help', open: !session.files.length},
        h('summary', {}, app.say('data.whatFiles')),
        h('ul', {}, ['weights', 'qk', 'layer', 'config', 'labels'].map((kind) =>
          h('li', {}, app.say(`data.help.${kind}`))))));
    }
    this.place.replaceChildren(...parts);
    if (subject) this.drawSubject(subject);
  }

  controls() {
    return choices(this.app, session, {choose: (chosen) => this.choose(chosen), sort: this.sort,
      logarithmic: this.logarithmic, change: (state) => this.change(state)});
  }
  // What the user must say or load before there is something to show.
  lacking(sentences) {
    return h('div', {role: 'status', class: 'data-lacking'},
      sentences.map(([key, ...rest]) => h('p', {}, this.app.say(key, ...rest))));
  }

  drawSubject(subject) {
    const {app} = this;
    this.head = Math.min(Math.max(0, Number(app.state.head) || 0), subject.heads - 1);
    this.sort = SORTS.includes(app.state.sort) ? app.state.sort : 'number';
    this.logarithmic = app.state.log === '1';
    this.names = session.names();

    this.large = new LargeMap(app, {
      map: (request) => session.map(request), point: (cursor, keyboard) => this.point(cursor, keyboard),
      lock: (query) => this.lock(query).catch((error) => this.fail(error)), error: (error) => this.fail(error)});
    this.large.setLog(this.logarithmic);
    this.grid = new Grid(app, {thumbnail: (head, cell) => session.thumbnail(head, cell),
      similarity: (head) => session.similarity(head),
      select: (head, inside) => this.select(head, inside).catch((error) => this.fail(error))});
    this.row = new RowPanel(app, () => {
      this.lock(undefined);
      this.large.canvas.focus();
    });
    this.heading = h('h2', {id: 'data-heading'});
    this.reading = h('output', {class: 'data-reading'}, app.say('data.hint'));
    this.lines = h('section', {class: 'data-lines-place'});
    const zoom = (label, words, act) =>
      h('button', {type: 'button', 'aria-label': words, title: words, onclick: act}, label);
    const save = (kind) => h('button', {type: 'button', id: `data-${kind}`,
      onclick: () => this.app.busy(this.save(kind)).catch((error) => this.fail(error))}, kind.toUpperCase());
    const several = subject.heads > 1;
    this.place.append(
      this.controls(),
      ...subject.notes.map(([key, ...rest]) => h('p', {class: 'quiet data-note'}, app.say(key, ...rest))),
      session.sampleLabels ? h('p', {}, app.say('data.sampleNote')) : this.mismatch(subject),
      h('div', {class: several ? 'data-desk' : 'data-desk single'}, several && this.grid.element,
        h('section', {class: 'data-large', 'aria-labelledby': 'data-heading'}, this.heading,
          h('p', {class: 'quiet data-about'}, this.about(subject)), this.large.canvas,
          h('div', {class: 'data-tools'}, this.reading, h('span', {class: 'data-buttons'},
            zoom('+', app.say('data.zoomIn'), () => this.large.zoomTo(this.large.zoom() * 1.5)),
            zoom('−', app.say('data.zoomOut'), () => this.large.zoomTo(this.large.zoom() / 1.5)),
            zoom('↺', app.say('data.whole'), () => this.large.zoomTo(1)))),
          h('p', {class: 'quiet', id: 'data-keys'}, app.say('data.keys')),
          h('div', {class: 'data-buttons', role: 'group', 'aria-label': app.say('data.export')},
            h('span', {class: 'quiet'}, app.say('data.export')), save('png'), save('svg'), save('csv')),
          this.row.element, this.lines)));
    this.select(this.head).catch((error) => this.fail(error));
    const {head, sort, logarithmic} = this;
    this.grid.show({subject, head, sort, logarithmic}).catch((error) => this.fail(error));
  }
  about({kind, heads, headsFrom, kvHeads, queries, keys, title}) {
    const shared = kvHeads && kvHeads !== heads ? `, ${this.app.say('data.shared', kvHeads)}` : '';
    return `${session.title ? `${session.title} · ` : ''}${this.app.say(`data.kind.${kind}`, title)} · `
      + `${this.app.say('data.sizes', heads, queries, keys)}${shared}`
      + `${headsFrom ? ` · ${this.app.say(...headsFrom)}` : ''}`;
  }
  mismatch({keys}) {
    const {labels} = session;
    if (!labels || labels.length === keys) return '';
    return h('p', {class: 'quiet'}, this.app.say('data.labelsMisfit', labels.length, keys));
  }

  change({sort, log}) {
    if (sort !== undefined) {
      this.sort = sort;
      this.app.change({sort: sort === 'number' ? undefined : sort});
      this.grid.setSort(sort).catch((error) => this.fail(error));
    }
    if (log !== undefined) {
      this.logarithmic = log === '1';
      this.app.change({log: log || undefined});
      this.large.setLog(this.logarithmic);
      this.grid.setLog(this.logarithmic);
    }
  }

  async select(head, inside = false) {
    const {app, large} = this, {subject} = session;
    if (inside) {
      large.canvas.focus();
      return;
    }
    this.head = head;
    this.reading.textContent = app.say('data.hint');  // the previous reading belongs to another head
    app.change({head: head || undefined});
    this.heading.textContent = app.say('data.head', head);
    large.canvas.setAttribute('aria-label', app.say('data.mapLabel', head, subject.queries, subject.keys));
    large.canvas.setAttribute('aria-busy', 'true');
    let map;
    try {
      map = await app.busy(large.show({subject, head, names: this.names, draft: this.grid.known?.get(head)}));
    } finally {
      if (large.head === head && !large.pending) large.canvas.setAttribute('aria-busy', 'false');
    }
    if (!map || this.gone || this.large !== large) return;
    performance.mark('rapt-data-shown');
    this.lines.replaceChildren();
    if (map.cell === 1 && map.rows <= MOST && map.columns <= MOST) {
      this.lines.append(h('h3', {}, app.say('data.lines')), h('p', {class: 'quiet'}, app.say('data.linesHint')),
        linesOf(app, map, this.names));
    }
    if (large.shown) this.point(large.cursor, false);
    if (large.locked !== undefined) await this.lock(large.locked);
  }

  // Shows the exact weight of a cell; with the keyboard, it is also announced.
  async point(cursor, keyboard) {
    if (!cursor) {
      this.wanted = undefined;
      return;
    }
    const {head, app, names} = this;
    this.wanted = cursor;
    const where = app.say('data.cell', tokenOf(names.queries, cursor.query), tokenOf(names.keys, cursor.key));
    const values = await session.row(head, cursor.query).catch((error) => this.fail(error));
    if (!values || this.gone || this.wanted !== cursor || this.head !== head) return;
    const text = `${where}: ${exact(values[cursor.key])}`;
    this.reading.textContent = text;
    this.reading.dataset.value = values[cursor.key];
    if (keyboard) app.announce(text);
  }
  async lock(query) {
    const {head, app, names} = this;
    this.large.setLock(query);
    if (query === undefined) {
      this.row.show();
      return;
    }
    const values = await session.row(head, query);
    if (!values || this.gone || this.large.locked !== query) return;
    this.row.show(query, values, names);
    app.announce(app.say('data.locked', tokenOf(names.queries, query)));
  }

  // The visible region, with the smallest cell size for which the map has at most `most` numbers.
  seen(most) {
    const {queries, keys} = this.large.region();
    const cell = Math.max(1, Math.ceil(Math.sqrt((queries[1] - queries[0]) * (keys[1] - keys[0]) / most)));
    return {head: this.head, queries, keys, cell};
  }
  async save(kind) {
    const {large, head} = this;
    const name = `${session.subject.title.replace(/[^\w.-]+/g, '_') || 'rapt'}-head${head}`;
    if (kind === 'png') {
      download(`${name}.png`, await pngOf(large.scene()), 'image/png');
    } else if (kind === 'svg') {
      // A small map is drawn cell by cell; a large one as the image on screen.
      const region = this.seen(VECTOR);
      const drawn = (region.cell === 1 && await session.map(region)) || large.layers().at(-1);
      download(`${name}.svg`, svgOf(large.scene(), drawn, `${session.subject.title}, head ${head}`), 'image/svg+xml');
    } else {
      const row = large.locked;
      const region = row === undefined ? this.seen(MOST_NUMBERS)
        : {head, queries: [row, row + 1], keys: [0, session.subject.keys], cell: 1};
      download(`${name}.csv`, await session.csv(region), 'text/csv');
    }
  }
}

export const data = {
  mount(root, app) {
    const view = new View(root, app);
    return {unmount: () => view.unmount()};
  },
};
