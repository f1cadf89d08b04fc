// Elements, figures and the look of a device.

/** Makes an element.  A child that is a string goes in as text: markup has no way in. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** The data in an element of type application/json. */
function readJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

const NUMBERS = new Intl.NumberFormat('en');

function number(value) {
  return NUMBERS.format(value);
}

/** "1 operation", "1,204 operations". */
function counted(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** "99.3 %"; never rounded to 100 % or 0 % where it isn't. */
function percent(part, whole) {
  if (!whole) return '0 %';
  let text = ((part / whole) * 100).toFixed(1);
  if (text === '100.0' && part < whole) text = '99.9';
  if (text === '0.0' && part > 0) text = '0.1';
  return `${text.replace(/\.0$/, '')} %`;
}

/** "1.5 GiB"; powers of 1024, as TensorFlow's allocator counts. */
function size(bytes) {
  if (bytes === null || bytes === undefined) return 'size not known';
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? value.toFixed(value < 10 ? 2 : 1).replace(/\.?0+$/, '') : number(value)} ${units[unit]}`;
}

/** At most `length` characters: a name of 10 kB would only cost time in a line of a table. */
function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** The class that gives a device its colour and its pattern. */
function deviceClass(device) {
  const match = /(?:^|\/)([A-Za-z_]+):(\d+)$/.exec(device);
  if (!match) return 'dev-none';
  if (match[1] === 'GPU') return `dev-gpu${Number(match[2]) % 4}`;
  return match[1] === 'CPU' ? 'dev-cpu' : 'dev-other';
}

/** A device's name with a swatch of its colour and pattern. */
function deviceChip(device) {
  return el('span', { class: 'chip' },
    el('span', { class: `swatch ${deviceClass(device)}`, 'aria-hidden': 'true' }),
    cut(device, 60) || 'unknown');
}

/** The outcome of a test, as a sign and a word. */
function outcomeBadge(outcome) {
  const sign = { passed: '✓', failed: '✕', error: '!', expected: '✕', watched: '◌' }[outcome] || '·';
  return el('span', { class: `badge outcome-${outcome}` },
    el('span', { 'aria-hidden': 'true' }, sign), ` ${outcome}`);
}

/** A part of the page with a heading. */
function section(title, id, ...children) {
  return el('section', { class: 'card', 'aria-labelledby': id }, el('h3', { id }, title), ...children);
}
