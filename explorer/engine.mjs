// The engine as the page sees it. It runs in a worker, so that computation never blocks the page.
//
//   const engine = await startEngine();
//   const walk = await engine.call('walk', {text, heads: 4});
//   const training = engine.fork();          // a second worker, with the module compiled once
//   training.listen('progress', (state) => …);

class Engine {
  constructor(script, start) {
    this.script = script;
    this.worker = new Worker(script);
    this.waiting = new Map();
    this.listeners = new Map();
    this.calls = 0;
    this.worker.onmessage = ({data}) => this.receive(data);
    this.worker.onerror = (event) => this.fail(new Error(event.message));
    this.ready = this.call('start', start).then((compiled) => {
      this.compiled = compiled;
    });
    this.ready.catch(() => {});  // a caller that does not await `ready` gets the error from its first call
  }

  /** Calls a method of the worker and returns its result. Errors have the engine's messages. */
  call(method, argument, transfer = []) {
    return new Promise((resolve, reject) => {
      const id = ++this.calls;
      this.waiting.set(id, {resolve, reject});
      this.worker.postMessage({id, method, argument}, transfer);
    });
  }
  /** Listens to unsolicited messages of the worker; `event` is their name. */
  listen(event, hear) { this.listeners.set(event, hear); }
  /** Another worker, for long computations. */
  fork() { return new Engine(this.script, {compiled: this.compiled}); }
  stop() {
    this.worker.terminate();
    this.fail(new Error('stopped'));
  }

  receive({id, result, error, event, value}) {
    if (event) {
      this.listeners.get(event)?.(value);
      return;
    }
    const {resolve, reject} = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(Object.assign(new Error(error.message), {name: error.name}));
    else resolve(result);
  }
  fail(error) {
    for (const {reject} of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}

/** Starts the engine embedded in the page: its code as compressed text, its worker's script as a string. */
export async function startEngine() {
  const script = URL.createObjectURL(new Blob([document.getElementById('worker-code').textContent]));
  const engine = new Engine(script, {packed: document.getElementById('engine-code').textContent});
  await engine.ready;
  return engine;
}
