// The worker: the engine, and a table of methods that the page may call. Each view has a file of methods.
import raptModule from 'rapt-engine';

import {load} from '../bindings/wasm/rapt.mjs';
import {methods as data} from './data/methods.mjs';
import {methods as exhibits} from './questions/methods.mjs';
import {methods as train} from './train/methods.mjs';
import {methods as walk} from './walk/methods.mjs';

const METHODS = {...walk, ...exhibits, ...data, ...train};
let rapt;

// Decodes the engine's code from base64 and gzip.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

async function start({packed, compiled}) {
  const module = compiled ?? await unpack(packed);
  rapt = await load(raptModule, module);
  return module;
}

/** Sends an unsolicited message. */
function tell(event, value, transfer = []) {
  self.postMessage({event, value}, transfer);
}

self.onmessage = async ({data: {id, method, argument}}) => {
  try {
    const result = method === 'start' ? await start(argument) : await METHODS[method](rapt, argument, tell);
    const transfer = result?.transfer ?? [];
    self.postMessage({id, result}, transfer);
  } catch (error) {
    self.postMessage({id, error: {name: error.name, message: error.message}});
  }
};
