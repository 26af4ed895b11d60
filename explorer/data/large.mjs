// One head, large: zoom, pan, a cursor. Each frame draws the available data; when movement pauses, the worker computes
// the visible part at screen resolution.
import {h} from '../dom.mjs';
import {boxOf, brightest, drawPlot, imageOf} from './plot.mjs';

const PAUSE = 120;        // milliseconds without movement before a finer map is requested
const LEAST = 4;          // cells across at maximum zoom
const MOST_CELLS = 1024;  // maximum cells across a map: painting it must not block the page

const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

export class LargeMap {
  /** `hooks`: map(request) → cells; point(cursor, keyboard); lock(query); error(error). */
  constructor(app, hooks) {
    this.app = app;
    this.hooks = hooks;
    this.pointers = new Map();
    this.canvas = h('canvas', {
      class: 'data-canvas', tabindex: 0, role: 'application', 'aria-describedby': 'data-keys',
      onkeydown: (event) => this.key(event), onwheel: (event) => this.wheel(event),
      onpointerdown: (event) => this.down(event), onpointermove: (event) => this.move(event),
      onpointerup: (event) => this.up(event), onpointercancel: (event) => this.up(event),
      onpointerleave: () => this.pointers.size || this.hooks.point(undefined),
    });
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.canvas);
    this.view = {left: 0, top: 0, keys: 1, queries: 1};
  }
  destroy() {
    this.watch.disconnect();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.destroyed = true;
  }

  /** Shows another head or subject; `draft` is a coarse map to draw until the requested one arrives. */
  async show({subject, head, names, draft}) {
    const same = this.subject === subject;
    this.subject = subject;
    this.names = names;
    this.head = head;
    this.detail = undefined;
    if (!same) {
      this.view = {left: 0, top: 0, keys: subject.keys, queries: subject.queries};
      this.base = undefined;
      this.cursor = {query: 0, key: 0};
      this.shown = false;
      this.locked = undefined;
    }
    if (draft) this.setBase(draft);
    this.resize();
    const whole = {head, queries: [0, subject.queries], keys: [0, subject.keys], cell: this.cellFor(subject)};
    // Requests for a part wait until the whole map has arrived: a newer request would cancel it.
    const pending = this.pending = {};
    const map = await this.hooks.map(whole).finally(() => {
      if (this.pending === pending) this.pending = undefined;
    });
    if (!map || this.destroyed || this.head !== head || this.subject !== subject) return undefined;
    this.setBase(map);
    this.moved();
    return map;
  }
  setBase(map) {
    this.base = map;
    Object.assign(this, brightest(map));
    this.paint();
  }
  setLog(logarithmic) {
    this.logarithmic = logarithmic;
    this.paint();
  }
  setLock(query) {
    this.locked = query;
    this.draw();
  }
  paint() {
    for (const layer of this.layers()) layer.image = imageOf(layer, this.top, this.logarithmic);
    this.draw();
  }
  layers() { return [this.base, this.detail].filter(Boolean); }

  // Coordinates.
  box() { return boxOf(this.width ?? 640, this.height ?? 640, Boolean(this.names?.keys)); }
  pixels(size) { return Math.min(MOST_CELLS, Math.max(64, Math.floor(size * Math.min(devicePixelRatio, 2)))); }
  /** The smallest number of tokens per cell for which this many queries and keys fit the box. */
  cellFor({queries, keys}) {
    const {width, height} = this.box();
    return Math.max(1, Math.ceil(keys / this.pixels(width)), Math.ceil(queries / this.pixels(height)));
  }
  resize() {
    const {clientWidth: width, clientHeight: height} = this.canvas;
    if (!width || (width === this.width && height === this.height && this.ratio === devicePixelRatio)) return;
    [this.width, this.height, this.ratio] = [width, height, devicePixelRatio];
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.drawNow();
    if (this.base) this.moved();
  }
  cellAt(event) {
    const bounds = this.canvas.getBoundingClientRect(), box = this.box(), {view} = this;
    const x = (event.clientX - bounds.left - box.left) / box.width;
    const y = (event.clientY - bounds.top - box.top) / box.height;
    return {x, y, inside: x >= 0 && x < 1 && y >= 0 && y < 1,
      key: clamp(Math.floor(view.left + x * view.keys), 0, this.subject.keys - 1),
      query: clamp(Math.floor(view.top + y * view.queries), 0, this.subject.queries - 1)};
  }
  zoom() { return this.subject.keys / this.view.keys; }
  maxZoom() { return Math.max(1, Math.max(this.subject.keys, this.subject.queries) / LEAST); }

  /** Zooms around the point (x, y) of the box, given as fractions. */
  zoomTo(zoom, x = 0.5, y = 0.5) {
    const {view, subject} = this;
    const next = clamp(zoom, 1, this.maxZoom());
    const [keys, queries] = [subject.keys / next, subject.queries / next];
    this.go({left: view.left + x * (view.keys - keys), top: view.top + y * (view.queries - queries), keys, queries});
  }
  pan(x, y) {
    const {view} = this;
    this.go({...view, left: view.left + x * view.keys, top: view.top + y * view.queries});
  }
  go(view) {
    const {subject} = this;
    this.view = {...view, left: clamp(view.left, 0, subject.keys - view.keys),
      top: clamp(view.top, 0, subject.queries - view.queries)};
    this.canvas.style.touchAction = this.zoom() > 1.01 ? 'none' : 'pan-y';
    this.moved();
  }
  /** The visible part: whole tokens, each range as [begin, end). */
  region() {
    const {view, subject} = this;
    const part = (begin, size, all) =>
      [Math.max(0, Math.floor(begin + 1e-6)), Math.min(all, Math.ceil(begin + size - 1e-6))];
    return {queries: part(view.top, view.queries, subject.queries), keys: part(view.left, view.keys, subject.keys)};
  }

  moved() {
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refine().catch((error) => this.hooks.error(error)), PAUSE);
  }
  // Requests the visible part if the current data is coarser than the screen.
  async refine() {
    const {base, detail, view, subject, head} = this;
    if (!base || this.pending || this.destroyed) return;
    const cell = this.cellFor(view);
    if (cell >= base.cell) {
      if (detail && cell > detail.cell) this.detail = undefined;
      this.draw();
      return;
    }
    const seen = this.region();
    const covers = detail && detail.cell === cell && detail.queries[0] <= seen.queries[0]
      && detail.queries[1] >= seen.queries[1] && detail.keys[0] <= seen.keys[0] && detail.keys[1] >= seen.keys[1];
    if (covers) return;
    // Includes a margin, so that small movements need no request; aligned to whole cells, so that cells do not shift.
    const around = ([begin, end], all) => {
      const more = Math.ceil((end - begin) * 0.15);
      const [first, last] = [Math.floor(Math.max(0, begin - more) / cell), Math.ceil((end + more) / cell)];
      return [first * cell, Math.min(all, last * cell)];
    };
    const map = await this.hooks.map({head, cell, queries: around(seen.queries, subject.queries),
      keys: around(seen.keys, subject.keys)});
    if (!map || this.destroyed || this.head !== head || this.subject !== subject) return;
    this.detail = map;
    map.image = imageOf(map, this.top, this.logarithmic);
    this.draw();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => this.drawNow());
  }
  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    if (!this.width || !this.subject || this.destroyed) return;
    const context = this.canvas.getContext('2d');
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawPlot(context, this.scene());
  }
  scene() {
    const style = getComputedStyle(this.canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const say = (key) => this.app.say(key);
    const {width, height, view} = this;
    return {width, height, view, layers: this.layers().filter((layer) => layer.image),
      names: this.names ?? {}, top: this.top ?? 1, more: this.more, logarithmic: this.logarithmic, locked: this.locked,
      cursor: this.shown ? this.cursor : undefined,
      colors: {ink: color('--ink'), quiet: color('--quiet'), paper: color('--paper'), line: color('--line')},
      words: {queries: say('data.queryAxis'), keys: say('data.keyAxis'), weight: say('data.weight')}};
  }

  // The cursor.
  point({query, key}, keyboard) {
    this.cursor = {query, key};
    this.shown = true;
    if (keyboard) this.follow();
    this.draw();
    this.hooks.point(this.cursor, keyboard);
  }
  // Scrolls the view to keep the cursor visible.
  follow() {
    const {view, cursor} = this;
    const to = (begin, size, place) => (place < begin ? place : place + 1 > begin + size ? place + 1 - size : begin);
    const next = {...view, left: to(view.left, view.keys, cursor.key), top: to(view.top, view.queries, cursor.query)};
    if (next.left !== view.left || next.top !== view.top) this.go(next);
  }

  key(event) {
    if (!this.subject || event.ctrlKey || event.metaKey || event.altKey) return;
    const {subject, cursor, view} = this;
    const far = (size) => (event.shiftKey ? Math.max(1, Math.round(size / 10)) : 1);
    const [stepKey, stepQuery] = [far(view.keys), far(view.queries)];
    const to = (query, key) =>
      this.point({query: clamp(query, 0, subject.queries - 1), key: clamp(key, 0, subject.keys - 1)}, true);
    const middle = [(cursor.key + 0.5 - view.left) / view.keys, (cursor.query + 0.5 - view.top) / view.queries]
      .map((part) => clamp(part, 0, 1));
    const actions = {
      ArrowLeft: () => to(cursor.query, cursor.key - stepKey), ArrowRight: () => to(cursor.query, cursor.key + stepKey),
      ArrowUp: () => to(cursor.query - stepQuery, cursor.key),
      ArrowDown: () => to(cursor.query + stepQuery, cursor.key),
      Home: () => to(cursor.query, 0), End: () => to(cursor.query, subject.keys - 1),
      PageUp: () => to(cursor.query - Math.ceil(view.queries / 2), cursor.key),
      PageDown: () => to(cursor.query + Math.ceil(view.queries / 2), cursor.key),
      '+': () => this.zoomTo(this.zoom() * 1.5, ...middle), '=': () => this.zoomTo(this.zoom() * 1.5, ...middle),
      '-': () => this.zoomTo(this.zoom() / 1.5, ...middle), 0: () => this.zoomTo(1),
      Enter: () => this.hooks.lock(this.locked === cursor.query ? undefined : cursor.query),
      Escape: () => this.hooks.lock(undefined),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
  wheel(event) {
    if (!this.subject) return;
    event.preventDefault();
    const {x, y} = this.cellAt(event);
    const lines = event.deltaMode === 1 ? 30 : 1;
    this.zoomTo(this.zoom() * Math.exp(-event.deltaY * lines * 0.0015), clamp(x, 0, 1), clamp(y, 0, 1));
  }

  down(event) {
    if (!this.subject || (event.pointerType === 'mouse' && event.button !== 0)) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    this.travel = this.pointers.size > 1 ? Infinity : 0;
  }
  move(event) {
    if (!this.subject) return;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const at = this.cellAt(event);
      if (at.inside) this.point(at, false);
      return;
    }
    const box = this.box();
    const others = [...this.pointers.values()].filter((each) => each.pointerId !== event.pointerId);
    if (others.length) {
      const [other] = others;
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      const middle = (side) => (event[side] + other[side]) / 2;
      const {x, y} = this.cellAt({clientX: middle('clientX'), clientY: middle('clientY')});
      this.zoomTo(this.zoom() * apart(event) / Math.max(1, apart(before)), clamp(x, 0, 1), clamp(y, 0, 1));
    }
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    this.travel += Math.abs(dx) + Math.abs(dy);
    const share = others.length ? 0.5 : 1;
    this.pan(-dx * share / box.width, -dy * share / box.height);
    this.pointers.set(event.pointerId, event);
  }
  up(event) {
    const known = this.pointers.delete(event.pointerId);
    if (!known || this.travel > 4 || event.type === 'pointercancel') return;
    const at = this.cellAt(event);
    if (!at.inside) return;
    this.point(at, false);
    this.hooks.lock(this.locked === at.query ? undefined : at.query);
  }
}
