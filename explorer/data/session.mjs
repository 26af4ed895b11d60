// The loaded files and the workers that read them. A session outlives its view: changing the language redraws the view
// and keeps the files. One worker serves the large map, another the thumbnails. Removing the last file ends both
// workers, which frees all their memory.
import {placeOf} from './arrays.mjs';
import {headsIn} from './config.mjs';
import {withHeads, withInput} from './layers.mjs';
import {decided, subjectsIn} from './subjects.mjs';

// Cache limits: exact rows, and maps of whole heads.
const ROWS = 256, WHOLES = 8;

// Inserts an entry and evicts the oldest.
function keep(map, most, key, value) {
  if (map.size >= most) map.delete(map.keys().next().value);
  map.set(key, value);
  return value;
}

// The text of a file, {blob} or {base64}.
async function textOf({blob, base64}) {
  return blob ? blob.text() : new TextDecoder().decode(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)));
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
    this.labels = this.sampleLabels = this.config = undefined;
    this.chosen = {};
    this.asked = this.subject = undefined;
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
    const problems = [], opened = [];
    let config;
    for (const file of files) {
      const {name} = file;
      try {
        if (/\.txt$/i.test(name)) {
          this.labels = labelsIn(await textOf(file));
        } else if (/\.json$/i.test(name)) {
          config = headsIn(name, await textOf(file));
        } else {
          if (!/\.(npy|npz|safetensors)$/i.test(name)) throw Object.assign(new Error(name), {name: 'UnknownKind'});
          await this.workers();
          opened.push({name, ...await this.look.call('dataOpen', file)});
          if (this.sampleLabels) this.dropSample();
          this.files = [...this.files.filter((each) => each.name !== name), opened.at(-1)];
        }
      } catch (error) {
        problems.push({name, error});
      }
    }
    this.configure(config, opened);
    this.answer(opened);
    return problems;
  }
  // A config.json belongs to the models that are loaded with it; alone, to those that are there, or else to the next.
  configure(config, opened) {
    const models = (files) => files.filter((file) => file.layers.length && !file.sample);
    const now = models(opened);
    const one = config ?? (now.length ? this.config : undefined);
    if (!one) return;
    const owners = now.length ? now : models(this.files);
    for (const file of owners) file.config = one;
    this.config = owners.length ? undefined : one;
  }
  // An input that is loaded while the input of a layer is asked for is the answer.
  answer(opened) {
    if (!this.asked?.lacks.some(([key]) => key === 'data.inputUnknown')) return;
    const layer = this.subjects().find(({id}) => id === this.asked.id);
    const fresh = layer?.inputs.filter((array) => opened.some((file) => file.name === array.file)
      && !this.asked.inputs.some((other) => placeOf(other) === placeOf(array)));
    if (fresh?.length === 1) this.chosen.inputs = withInput(this.chosen.inputs, layer, placeOf(fresh[0]));
  }

  subjects() {
    return subjectsIn(this.files);
  }
  /** Records choices of the user. The number of heads and the input are those of the current layer. */
  prefer({heads, input, ...others}) {
    Object.assign(this.chosen, others);
    if (heads) this.chosen.heads = withHeads(this.chosen.heads, this.asked, Number(heads));
    if (input) this.chosen.inputs = withInput(this.chosen.inputs, this.asked, input);
  }
  /** Tells the workers the current subject. `asked` is the same subject, or one that the user must complete first. */
  async choose() {
    const all = this.subjects().filter((subject) => !subject.wrong).map((subject) => decided(subject, this.chosen));
    const isComplete = (subject) => !subject.lacks.length;
    this.asked = all.find(({id}) => id === this.chosen.subject) ?? all.find(isComplete) ?? all[0];
    this.forget();
    this.subject = this.asked && isComplete(this.asked) ? this.asked : undefined;
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
