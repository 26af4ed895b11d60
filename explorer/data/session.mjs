// The loaded files and the workers that read them. A session outlives its view: changing the language redraws the view
// and keeps the files. One worker serves the large map, another the thumbnails. Removing the last file ends both
// workers, which frees all their memory.
import {decided, subjectsIn} from './subjects.mjs';

// Cache limits: exact rows, and maps of whole heads.
const ROWS = 256, WHOLES = 8;

// Inserts an entry and evicts the oldest.
function keep(map, most, key, value) {
  if (map.size >= most) map.delete(map.keys().next().value);
  map.set(key, value);
  return value;
}

/** Runs one call at a time. Of the waiting calls only the newest runs; the others resolve to undefined. */
export function newestOnly(call) {
  let running = false, next;
  const run = async () => {
    running = true;
    while (next) {
      const {argument, resolve, reject} = next;
      next = undefined;
      await call(argument).then(resolve, reject);
    }
    running = false;
  };
  return (argument) => new Promise((resolve, reject) => {
    next?.resolve(undefined);
    next = {argument, resolve, reject};
    if (!running) run();
  });
}

export class Session {
  constructor(engine) {
    this.engine = engine;
    this.clear();
  }

  /** Resets everything. */
  clear() {
    this.look?.stop();
    this.grid?.stop();
    this.look = this.grid = undefined;
    this.files = [];
    this.labels = this.sampleLabels = undefined;
    this.chosen = {};
    this.subject = undefined;
    this.forget();
  }

  // Drops what was computed for the previous subject.
  forget() {
    this.turn = (this.turn ?? 0) + 1;
    this.rows = new Map();
    this.wholes = new Map();
    this.thumbnails = new Map();
  }

  async workers() {
    this.look ??= this.engine.fork();
    this.grid ??= this.engine.fork();
    const {look, grid} = this;
    this.askRow ??= newestOnly((argument) => this.look.call('dataRow', argument));
    await Promise.all([look.ready, grid.ready]);
  }

  /** Loads the example layer and its words. Loading a file removes it. */
  async addSample(lang) {
    await this.workers();
    const {name, blob, labels} = await this.look.call('dataSample', {lang});
    this.labels = this.sampleLabels = labels;
    const opened = await this.look.call('dataOpen', {name, blob});
    this.files = [{name, sample: true, ...opened}];
  }
  dropSample() {
    this.files = this.files.filter((file) => !file.sample);
    if (this.labels === this.sampleLabels) this.labels = undefined;
    this.sampleLabels = undefined;
  }

  /** Opens files, {name, blob} or {name, base64}; returns the errors, [{name, error}]. */
  async add(files) {
    const problems = [];
    for (const {name, blob, base64} of files) {
      try {
        if (/\.txt$/i.test(name)) {
          this.labels = labelsIn(await blob.text());
          continue;
        }
        if (!/\.(npy|npz|safetensors)$/i.test(name)) throw Object.assign(new Error(name), {name: 'UnknownKind'});
        await this.workers();
        const opened = await this.look.call('dataOpen', {name, blob, base64});
        if (this.sampleLabels) this.dropSample();
        this.files = [...this.files.filter((file) => file.name !== name), {name, ...opened}];
      } catch (error) {
        problems.push({name, error});
      }
    }
    return problems;
  }

  subjects() {
    return subjectsIn(this.files);
  }
  /** Tells the workers the current subject; undefined if there is none. */
  async choose() {
    const all = this.subjects().filter((subject) => !subject.wrong);
    const one = all.find((subject) => subject.id === this.chosen.subject) ?? all[0];
    this.forget();
    this.subject = one && decided(one, this.chosen);
    if (!this.subject) return;
    await Promise.all([this.look.call('dataSubject', this.subject), this.grid.call('dataSubject', this.subject)]);
  }

  /** Token names of queries and keys. If there are fewer queries than keys, queries have the names of the last keys. */
  names() {
    const {labels, subject} = this;
    if (!labels || !subject) return {};
    return {keys: labels, queries: labels.slice(Math.max(0, Math.min(labels.length, subject.keys) - subject.queries))};
  }

  async map(request) {
    const {head, queries, keys, cell} = request, {subject, turn} = this;
    const size = (range) => range[1] - range[0];
    const key = size(queries) === subject.queries && size(keys) === subject.keys ? `${head}:${cell}` : undefined;
    if (this.wholes.has(key)) return this.wholes.get(key);
    const map = await this.look.call('dataMap', request);
    if (map && key && turn === this.turn) keep(this.wholes, WHOLES, key, map);
    return map;
  }
  async row(head, query) {
    const key = `${head}:${query}`, {turn} = this;
    if (!this.rows.has(key)) {
      const row = await this.askRow({head, query});
      if (!row || turn !== this.turn) return undefined;  // superseded by a newer request
      keep(this.rows, ROWS, key, row.values);
    }
    return this.rows.get(key);
  }
  // Unbounded: a change of language redraws the view and shows all thumbnails again.
  async thumbnail(head, cell) {
    const {turn} = this;
    if (this.thumbnails.has(head)) return this.thumbnails.get(head);
    const map = await this.grid.call('dataThumbnail', {head, cell});
    if (turn === this.turn) this.thumbnails.set(head, map);
    return map;
  }
  similarity(head) { return this.grid.call('dataSimilarity', {head}); }
  csv(region) { return this.look.call('dataCsv', {region, labels: this.names()}); }
}

/** Token names: one per line, or all on one line, separated by spaces. */
export function labelsIn(text) {
  const lines = text.replace(/\r\n?/g, '\n').replace(/\n$/, '').split('\n');
  return lines.length > 1 ? lines : lines[0].split(/ +/).filter(Boolean);
}
