// Thumbnails of all heads, computed one by one in their own worker and sorted as the user chooses.
import {h} from '../dom.mjs';
import {brightest, imageOf} from './plot.mjs';

export const SORTS = ['number', 'entropy', 'distance', 'similarity'];
const SIZE = 128;  // maximum number of cells across

export class Grid {
  /** `hooks`: thumbnail(head, cell), similarity(head), select(head), error(error). */
  constructor(app, hooks) {
    this.app = app;
    this.hooks = hooks;
    this.list = h('div', {class: 'data-heads', role: 'listbox', 'aria-label': app.say('data.heads'),
      onkeydown: (event) => this.key(event)});
    this.progress = h('progress', {max: 1, value: 0, 'aria-label': app.say('data.filling')});
    this.status = h('p', {class: 'quiet data-filling'}, this.progress, this.words = h('span', {}));
    this.element = h('section', {class: 'data-grid'}, this.list, this.status);
  }
  destroy() { this.turn = undefined; }

  async show({subject, head, sort, logarithmic}) {
    const turn = this.turn = {};
    Object.assign(this, {subject, head, sort, logarithmic, known: new Map(), similar: new Map()});
    this.items = Array.from({length: subject.heads}, (_, n) => this.item(n));
    this.arrange();
    const cell = Math.max(1, Math.ceil(Math.max(subject.queries, subject.keys) / SIZE));
    // The selected head first: it is the one on screen.
    const order = [head, ...this.items.keys()].filter((each, n) => n === 0 || each !== head);
    for (const [done, each] of order.entries()) {
      this.tell(done);
      const map = await this.hooks.thumbnail(each, cell);
      if (this.turn !== turn) return;
      this.known.set(each, map);
      this.paint(each);
      if (this.sort !== 'number' && (done % 4 === 3 || done + 1 === order.length)) await this.resort();
      if (this.turn !== turn) return;
    }
    this.tell(order.length);
  }
  tell(done) {
    const all = this.subject.heads;
    this.progress.value = done / all;
    this.progress.hidden = done === all;
    this.words.textContent = this.app.say(...(done === all ? ['data.filled', all] : ['data.fillingOf', done, all]));
  }

  item(head) {
    const canvas = h('canvas', {width: 1, height: 1, 'aria-hidden': 'true'});
    const note = h('small', {});
    const element = h('div', {role: 'option', class: 'data-head', tabindex: -1, 'aria-selected': 'false',
      'data-head': head, onclick: () => this.pick(head)}, canvas, h('span', {}, this.app.say('data.head', head)), note);
    return {element, canvas, note};
  }
  paint(head) {
    const map = this.known.get(head);
    if (!map) return;
    const {canvas} = this.items[head];
    const image = imageOf(map, brightest(map).top, this.logarithmic);
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext('2d').drawImage(image, 0, 0);
    canvas.classList.add('there');
    this.note(head);
  }
  // The value that heads are sorted by, shown under each thumbnail.
  note(head) {
    const map = this.known.get(head);
    const {note, element} = this.items[head];
    const similar = this.similar.get(head);
    const value = this.sort === 'similarity' ? similar : map?.[this.sort];  // undefined when sorted by number
    note.textContent = value === undefined ? '' : this.app.say(`data.note.${this.sort}`, value.toFixed(2));
    element.setAttribute('aria-label', [this.app.say('data.head', head), note.textContent].filter(Boolean).join(', '));
  }

  // A few thumbnails per frame: drawing all at once would block the page.
  async setLog(logarithmic) {
    const {turn} = this;
    this.logarithmic = logarithmic;
    for (const [n, head] of [...this.known.keys()].entries()) {
      if (n % 4 === 0) await new Promise((resolve) => requestAnimationFrame(resolve));
      if (this.turn !== turn || this.logarithmic !== logarithmic) return;
      this.paint(head);
    }
  }
  async setSort(sort) {
    this.sort = sort;
    await this.resort();
  }
  async resort() {
    if (this.sort === 'similarity') this.similar = new Map(await this.hooks.similarity(this.head));
    this.arrange();
  }
  /** The heads in display order. */
  order() {
    const heads = [...this.items.keys()];
    if (this.sort === 'number') return heads;
    // Similarity: largest first. Other measures: smallest first. Heads without a value yet come last.
    const value = (head) => (this.sort === 'similarity' ? -(this.similar.get(head) ?? -Infinity)
      : this.known.get(head)?.[this.sort] ?? Infinity);
    return heads.sort((a, b) => value(a) - value(b) || a - b);
  }
  arrange() {
    const order = this.order();
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...order.map((head) => this.items[head].element));
    for (const head of order) this.note(head);
    this.mark();
    if (focused) this.items[this.head].element.focus();
  }
  mark() {
    this.items.forEach(({element}, head) => {
      element.setAttribute('aria-selected', String(head === this.head));
      element.tabIndex = head === this.head ? 0 : -1;
    });
  }
  async pick(head) {
    if (head === this.head) return;
    this.head = head;
    this.mark();
    this.items[head].element.focus({preventScroll: true});
    this.items[head].element.scrollIntoView({block: 'nearest', inline: 'nearest'});
    this.hooks.select(head);
    // While the user steps through heads, the order stays fixed, but the values are relative to the new head.
    if (this.sort === 'similarity') {
      const similar = await this.hooks.similarity(head).catch(() => []);
      if (this.head !== head) return;
      this.similar = new Map(similar);
      for (const each of this.items.keys()) this.note(each);
    }
  }
  key(event) {
    const at = [...this.list.children].indexOf(this.items[this.head].element);
    const standing = [...this.list.children].map((child) => Number(child.dataset.head));
    const columns = getComputedStyle(this.list).gridTemplateColumns.split(' ').length || 1;
    const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -at,
      End: standing.length - 1 - at};
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.hooks.select(this.head, true);
      return;
    }
    if (!(event.key in moves)) return;
    event.preventDefault();
    const next = at + moves[event.key];
    if (next >= 0 && next < standing.length) this.pick(standing[next]);
  }
}
