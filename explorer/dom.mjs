// Creates elements in one expression: h('p', {class: 'quiet'}, 'text', h('b', {}, 'bold')).

const SVG = 'http://www.w3.org/2000/svg';

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style' && typeof value === 'object') {
      for (const [property, each] of Object.entries(value)) element.style.setProperty(property, each);
    } else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return make(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return make(document.createElementNS(SVG, tag), attributes, children);
}

/** Splits a text into nodes: parts between backticks become <code> elements. */
export function rich(text) {
  return text.split('`').map((part, n) => (n % 2 === 1 ? h('code', {}, part) : part));
}

/** A row of radio buttons: arrow keys move the selection, and screen readers announce the count. */
export function chooser({name, label, choices, chosen, change}) {
  return h('fieldset', {class: 'chooser'}, h('legend', {}, label), choices.map(({value, label: words}) =>
    h('label', {}, h('input', {
      type: 'radio', name, value, checked: String(value) === String(chosen), onchange: () => change(value),
    }), h('span', {}, words))));
}

/** Scrolls a list, and nothing around it, until one of its entries is in the middle. */
export function follow(list, entry) {
  const outer = list.getBoundingClientRect(), inner = entry.getBoundingClientRect();
  list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  list.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
}

/** Downloads a file. */
export function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], {type}));
  const link = h('a', {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
