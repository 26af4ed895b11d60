// rapt for JavaScript: the C++ engine, on tensors in the engine's memory. Types: rapt.d.ts.
//
//   const rapt = await load(raptModule, bytesOfTheEngine);
//   const x = rapt.tensor(new Float32Array([1, 0, 0, 1]), [1, 1, 2, 2]);
//   const {out} = rapt.attention(x, x, x, {causal: true});
//   out.values();        // Float32Array [1, 0, 0.33, 0.67]
//   rapt.scope(() => …)  // frees every tensor created in it except what it returns

import {stored} from './archive.mjs';

// An object of the engine: it has a handle that must be released.
class Handle {
  constructor(rapt, handle) {
    this.rapt = rapt;
    this.handle = handle;
    rapt.scopes.at(-1)?.add(this);
  }
  free() {
    this.handle?.delete();
    this.handle = undefined;
  }
  get inside() {
    if (!this.handle) throw new ReferenceError(`this ${this.constructor.name} was freed`);
    return this.handle;
  }
}

class Tensor extends Handle {
  get shape() { return this.inside.shape; }
  get strides() { return this.inside.strides; }
  get dtype() { return this.inside.dtype; }
  values() { return this.inside.values(); }

  transpose(a, b) { return new Tensor(this.rapt, this.inside.transpose(a, b)); }
  slice(dim, begin, end) { return new Tensor(this.rapt, this.inside.slice(dim, begin, end)); }
  select(dim, index) { return new Tensor(this.rapt, this.inside.select(dim, index)); }
  reshape(shape) { return new Tensor(this.rapt, this.inside.reshape(shape)); }
  splitHeads(heads) { return new Tensor(this.rapt, this.inside.splitHeads(heads)); }
  combineHeads() { return new Tensor(this.rapt, this.inside.combineHeads()); }
  npy() { return this.rapt.module.npy(this.inside); }
}

// Options in which each Tensor is replaced by its handle.
function insideOptions(options) {
  if (!options) return {};
  const result = {...options};
  if (options.sinks) result.sinks = options.sinks.inside;
  if (options.masks) result.masks = options.masks.map((mask) => ({...mask, tensor: mask.tensor?.inside}));
  return result;
}

class Layer extends Handle {
  get config() { return this.inside.config; }
  parameters() { return this.rapt.named(this.inside.parameters()); }
  forward(query, options) { return this.forwardOf(query, undefined, undefined, options); }
  forwardOf(query, key, value, options) {
    return this.rapt.tensorsIn(
      this.inside.forward(query.inside, key?.inside, value?.inside, insideOptions(options)));
  }
}

class TensorFile extends Handle {
  entries() { return this.inside.entries(); }
  metadata() { return this.inside.metadata(); }
  layers() { return this.inside.layers(); }
  tensor(name = '') { return new Tensor(this.rapt, this.inside.tensor(name)); }
  layer(options) { return new Layer(this.rapt, this.rapt.module.Layer.load(this.inside, options)); }
}

class Model extends Handle {
  get config() { return this.inside.config; }
  parameters() { return this.rapt.named(this.inside.parameters()); }
  read(tokens) { return this.rapt.tensorsIn(this.inside.read(tokens)); }
}

class Training extends Handle {
  get state() { return this.inside.state; }
  get characters() { return this.inside.characters; }
  step() { return this.inside.step(); }
  setRate(rate) { this.inside.setRate(rate); }
  setCausal(causal) { this.inside.setCausal(causal); }
  evaluation({causal = false} = {}) { return this.inside.evaluation(causal); }
  example(seed) { return this.inside.example(seed); }
  read(tokens) { return this.rapt.tensorsIn(this.inside.read(tokens)); }
}

class Rapt {
  constructor(module) {
    this.module = module;
    this.scopes = [];
  }
  get version() { return this.module.version(); }
  instructionSets() { return this.module.instructionSets(); }

  tensor(numbers, shape, dtype = '') { return new Tensor(this, this.module.Tensor.of(numbers, shape, dtype)); }
  attention(query, key, value, options) {
    return this.tensorsIn(
      this.module.attention(query?.inside, key?.inside, value?.inside, insideOptions(options)));
  }
  weightsMap(query, key, options) {
    return new Tensor(this, this.module.weightsMap(query.inside, key.inside, insideOptions(options)));
  }
  linear(x, weight, bias) { return new Tensor(this, this.module.linear(x.inside, weight.inside, bias?.inside)); }
  layerNorm(x, weight, bias) { return new Tensor(this, this.module.layerNorm(x.inside, weight.inside, bias?.inside)); }
  rotary(x, options = {}) { return new Tensor(this, this.module.rotary(x.inside, options)); }
  layer(config) { return new Layer(this, this.module.Layer.make(config)); }
  async open(name, bytes) {
    const whole = name.endsWith('.npz') ? await stored(bytes) : bytes;
    return new TensorFile(this, this.module.File.open(name, whole));
  }
  openHeader(name, beginning, size) {
    return new TensorFile(this, this.module.File.openHeader(name, beginning, size));
  }
  walk(text, {heads = 4, causal = false} = {}) { return JSON.parse(this.module.walk(text, heads, causal)); }
  questions(lang) { return JSON.parse(this.module.questions(lang)); }
  exhibit(number, {lang = 'en', settings = {}} = {}) {
    return JSON.parse(this.module.exhibit(number, lang, settings));
  }
  builtinModel() { return new Model(this, this.module.Model.builtin()); }
  train(task, seed = 0) { return new Training(this, this.module.Training.begin(task, seed)); }

  scope(work) {
    const made = new Set();
    this.scopes.push(made);
    try {
      const result = work();
      this.keep(result, made);
      return result;
    } finally {
      this.scopes.pop();
      for (const each of made) each.free();
    }
  }

  // What a scope returns belongs to the scope around it.
  keep(result, made) {
    if (made.delete(result)) {
      this.scopes.at(-2)?.add(result);
    } else if (result && (Array.isArray(result) || Object.getPrototypeOf(result) === Object.prototype)) {
      for (const each of Object.values(result)) this.keep(each, made);
    }
  }
  // An object of the engine in which each tensor handle is replaced by a Tensor.
  tensorsIn(object) {
    if (object instanceof this.module.Tensor) return new Tensor(this, object);
    if (Array.isArray(object)) return object.map((each) => this.tensorsIn(each));
    return Object.fromEntries(Object.entries(object).map(([key, each]) => [key, this.tensorsIn(each)]));
  }
  named(list) {
    return Object.fromEntries(list.map(({name, tensor}) => [name, new Tensor(this, tensor)]));
  }
}

/** Loads the engine: `module` is what rapt_engine.js defines, `code` the bytes of rapt_engine.wasm, or the module
    compiled from them. */
export async function load(module, code) {
  const compiled = code instanceof WebAssembly.Module ? code : await WebAssembly.compile(code);
  return new Rapt(await module({
    instantiateWasm: (imports, receive) => {
      WebAssembly.instantiate(compiled, imports).then((instance) => receive(instance));
      return {};
    },
  }));
}
