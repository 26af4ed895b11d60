// The loss curve so far, drawn with at most 200 points: each is the mean over a range of steps.
import {svg} from '../dom.mjs';

const WIDTH = 420, HEIGHT = 260, LEFT = 34, BOTTOM = 34, TOP = 8, RIGHT = 8;
const MOST = 4.5;  // slightly above log 64, the loss of a uniform guess among 64 letters

export function lossChart(app) {
  const line = svg('polyline', {class: 'line line-0'});
  const ends = svg('text', {x: WIDTH - RIGHT, y: HEIGHT - 18, 'text-anchor': 'end'});
  const up = (loss) => TOP + (1 - Math.min(MOST, loss) / MOST) * (HEIGHT - TOP - BOTTOM);
  const element = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', class: 'chart', 'aria-label': app.say('train.loss')},
    [0, 1, 2, 3, 4].map((tick) => [
      svg('line', {x1: LEFT, x2: WIDTH - RIGHT, y1: up(tick), y2: up(tick), class: 'rule'}),
      svg('text', {x: LEFT - 6, y: up(tick) + 4, 'text-anchor': 'end'}, String(tick))]),
    svg('text', {x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, 'text-anchor': 'middle'}, app.say('train.steps')), ends, line);
  let points = [];
  const draw = () => {
    const last = points.at(-1)?.[0] ?? 1;
    const across = (step) => LEFT + step / Math.max(100, last) * (WIDTH - LEFT - RIGHT);
    const bin = Math.max(1, Math.ceil(points.length / 200));
    const means = [];
    for (let n = 0; n < points.length; n += bin) {
      const part = points.slice(n, n + bin);
      means.push([part.at(-1)[0], part.reduce((sum, [, loss]) => sum + loss, 0) / part.length]);
    }
    line.setAttribute('points', means.map(([step, loss]) => `${across(step).toFixed(1)},${up(loss).toFixed(1)}`).join(' '));
    ends.textContent = String(last);
  };
  return {
    element,
    add(more) {
      points.push(...more);
      draw();
    },
    clear() {
      points = [];
      draw();
    },
  };
}
