// Bundles the page: script, style, worker and engine in one file.
//   node explorer/build.mjs build/wasm build/explorer/rapt.html
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';

const here = path.dirname(fileURLToPath(import.meta.url));
const [wasm, out] = process.argv.slice(2);

// Bundles `entry` and everything it imports into one script. A literal `</script` would end the script element early.
function bundle(entry) {
  const script = execFileSync('esbuild', [path.join(here, entry), '--bundle', '--minify', '--format=iife',
    '--target=es2022', '--charset=utf8', '--log-level=warning', '--external:fs', '--external:path',
    `--alias:rapt-engine=${path.resolve(wasm, 'rapt_engine.js')}`], {maxBuffer: 1 << 26}).toString();
  return script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
}

const parts = {
  '/*STYLE*/': execFileSync('esbuild', [path.join(here, 'style.css'), '--bundle', '--minify']).toString().trim(),
  '<!--ENGINE-->': gzipSync(fs.readFileSync(path.join(wasm, 'rapt_engine.wasm')), {level: 9}).toString('base64'),
  '<!--WORKER-->': bundle('worker.mjs'),
  '<!--MAIN-->': bundle('main.mjs'),
};
let page = fs.readFileSync(path.join(here, 'page.html'), 'utf8');
for (const [place, text] of Object.entries(parts)) page = page.replace(place, () => text);
fs.mkdirSync(path.dirname(out), {recursive: true});
fs.writeFileSync(`${out}.part`, page);
fs.renameSync(`${out}.part`, out);
console.log(`${out}: ${(page.length / 1e6).toFixed(2)} MB`);
