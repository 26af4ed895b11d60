// What is loaded, and the workers that read it. It outlives the view: another language draws the view anew, and the
// files stay. One worker shows the large map, another fills the thumbnails; with the last file both go, and with
// them all their memory.
import {decided, subjectsIn} from './subjects.mjs';

// What is kept of what was computed: exact rows, and maps of whole heads.
const ROWS = 256, WHOLES = 8;

// Puts it in, and the oldest out.
function keep(map, most, key, value) {
  if (map.size >= most) map.delete(map.keys().next().value);
  map.set(key, value);
  return value;
}

/** Calls one at a time: of those that wait, only the newest is made; the others resolve to undefined. */
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

  /** Everything as at the beginning. */
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

  // What was computed of another subject.
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

  /** The built-in layer, and its words. It goes when a file comes. */
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

  /** Opens files, {name, blob} or {name, base64}; returns what went wrong, [{name, error}]. */
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
  /** Tells the workers what is looked at now; undefined where there is nothing to look at. */
  async choose() {
    const all = this.subjects().filter((subject) => !subject.wrong);
    const one = all.find((subject) => subject.id === this.chosen.subject) ?? all[0];
    this.forget();
    this.subject = one && decided(one, this.chosen);
    if (!this.subject) return;
    await Promise.all([this.look.call('dataSubject', this.subject), this.grid.call('dataSubject', this.subject)]);
  }

  /** Token names of queries and keys: where queries are the last of more keys, so are their names. */
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
      if (!row || turn !== this.turn) return undefined;  // something newer was asked for
      keep(this.rows, ROWS, key, row.values);
    }
    return this.rows.get(key);
  }
  // All of them: the view in another language shows them again.
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

/** Names of tokens: one on each line, or, in a single line, between spaces. */
export function labelsIn(text) {
  const lines = text.replace(/\r\n?/g, '\n').replace(/\n$/, '').split('\n');
  return lines.length > 1 ? lines : lines[0].split(/ +/).filter(Boolean);
}
