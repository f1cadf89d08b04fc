// The map of a model: a treemap of its scopes, area by number of operations, colour and pattern by
// device.  d3-hierarchy lays it out; two levels are drawn, and a tile opens to show the next.

const MOST_TILES = 120;
const MOST_INNER_TILES = 80;
const LEAST_AREA = 150; // in pixels; what is smaller is drawn as one tile, unless something in it is off its device
// A compiled function counts as one operation: a map without what is in it would hide the model.
const MOSTLY = 0.1;

class ScopeMap {
  /** onScope(path): a scope was opened;  onType(type): an op type in the open scope was chosen. */
  constructor(operations, { onScope, onType }) {
    this.operations = operations;
    this.onScope = onScope;
    this.onType = onType;
    this.root = rootScope(operations);
    this.scope = this.root;
    this.countingOnly = tallied(this.root.tally, true) >= tallied(this.root.tally, false) * MOSTLY;
    this.crumbs = el('nav', { class: 'crumbs', 'aria-label': 'Open scope' });
    this.area = el('div', {
      class: 'map', role: 'group', 'aria-label': 'Map of the model by scope',
      'aria-describedby': 'map-keys',
    });
    this.area.addEventListener('keydown', (event) => this._key(event));
    this.area.addEventListener('click', (event) => this._open(event.target.closest('.tile.leads')));
    new ResizeObserver(() => this._resized()).observe(this.area);
  }

  get element() {
    return section('Map of the model', 'map-title',
      el('div', { class: 'bar' }, this.crumbs, this._measure()),
      this.area,
      this._legend(),
      el('p', { class: 'hint', id: 'map-keys' },
        'Click or Enter opens a scope, Escape or Backspace goes back up, arrow keys move. ',
        'The table below follows.'));
  }

  /** Opens a scope; `focus` is the name of the tile that gets the keyboard, or true for the first. */
  open(scope, focus) {
    this.scope = scope;
    this.draw();
    this.onScope(scope.path);
    if (focus) this._focus(focus);
  }

  up() {
    if (this.scope.parent) this.open(this.scope.parent, `${this.scope.name}/`);
  }

  draw() {
    this.crumbs.replaceChildren(...this._crumbs());
    const width = this.area.clientWidth;
    const height = this.area.clientHeight;
    this.drawn = `${width}×${height}`;
    if (!width) return;
    this.least = (LEAST_AREA / (width * height)) * tallied(this.scope.tally, this.countingOnly);
    const root = d3.hierarchy(this._view(this.scope, 2), (view) => view.inner || view.children).sum((view) => (view.inner || view.children ? 0 : view.weight));
    d3.treemap().size([width, height]).round(true)
      .paddingInner((node) => (node.depth ? 1 : 4))
      .paddingTop((node) => (node.depth === 1 && node.children ? 24 : 0))
      .paddingRight((node) => (node.depth === 1 && node.children ? 3 : 0))
      .paddingBottom((node) => (node.depth === 1 && node.children ? 3 : 0))
      .paddingLeft((node) => (node.depth === 1 && node.children ? 3 : 0))(root);
    const tiles = (root.children || []).map((node) => this._tile(node));
    this.area.replaceChildren(...(tiles.length ? tiles : [el('p', { class: 'empty' }, 'No operation to show.')]));
    this.area.querySelector('.tile.leads')?.setAttribute('tabindex', '0');
  }

  /** What is drawn of a scope: {name, weight, tally, scope?, type?, inner?}, the largest first. */
  _view(scope, levels) {
    const most = levels === 2 ? MOST_TILES : MOST_INNER_TILES;
    const found = [];
    for (const below of scope.inside.scopes) {
      found.push({ name: `${below.name}/`, tally: below.tally, scope: below });
    }
    for (const [type, tally] of scope.inside.types) {
      found.push({ name: this.operations.texts[type] || '?', tally, type: this.operations.texts[type] });
    }
    for (const view of found) view.weight = tallied(view.tally, this.countingOnly);
    const there = found.filter((view) => view.weight > 0).sort((a, b) => b.weight - a.weight);
    const large = there.filter((view) => view.weight >= this.least || offending(view.tally));
    const shown = large.slice(0, most - 1);
    const kept = new Set(shown);
    const rest = there.filter((view) => !kept.has(view));
    if (rest.length) shown.push(rest.length > 1 ? this._rest(rest) : rest[0]);
    if (levels > 1) {
      for (const view of shown) if (view.scope?.opens) view.inner = this._view(view.scope, levels - 1).children;
    }
    return { children: shown };
  }

  _rest(views) {
    const tally = new Map();
    for (const view of views) for (const [key, weight] of view.tally) add(tally, key, weight);
    return { name: `and ${number(views.length)} smaller ones`, tally, weight: tallied(tally, this.countingOnly) };
  }

  _tile(node) {
    const { data: view } = node;
    const box = el('div', { class: 'tile' });
    place(box, node);
    const width = node.x1 - node.x0;
    const height = node.y1 - node.y0;
    const nested = node.children && width > 110 && height > 70;
    const split = parts(this.operations, view.tally, this.countingOnly);
    const off = split.filter((part) => part.offends).reduce((sum, part) => sum + part.weight, 0);
    if (nested) {
      box.classList.add('nested');
      for (const inner of node.children) box.append(this._inner(inner, node));
    } else {
      box.append(fill(split));
    }
    if (width > 44 && height > 20) box.append(tileLabel(view, off, width, height));
    const words = `${cut(view.name, 80)} ${figures(view.weight, off)}. ${shares(view.weight, split)}`;
    box.title = `${cut(view.name, 400)}: ${shares(view.weight, split)}`;
    if (view.scope || view.type !== undefined) {
      box.classList.add('leads');
      box.setAttribute('role', 'button');
      box.setAttribute('tabindex', '-1');
      box.setAttribute('aria-label', `${words}. ${view.scope ? 'Opens the scope.' : 'Filters the table.'}`);
      box.view = view;
    }
    return box;
  }

  /** What is inside a tile, for the eye alone: its name is no part of the tile's. */
  _inner(node, parent) {
    const { data: view } = node;
    const box = el('div', { class: 'inner', 'aria-hidden': 'true' });
    place(box, node, parent.x0, parent.y0);
    box.append(fill(parts(this.operations, view.tally, this.countingOnly)));
    box.title = cut(view.name, 400);
    if (node.x1 - node.x0 > 56 && node.y1 - node.y0 > 18) {
      box.append(el('span', { class: 'inner-label', 'data-name': cut(view.name, 80) }));
    }
    return box;
  }

  _crumbs() {
    const line = this.scope.line;
    return line.map((scope, n) => {
      const name = scope.parent ? cut(scope.name, 60) : 'all scopes';
      if (n === line.length - 1) return el('span', { 'aria-current': 'location' }, name);
      return [el('button', { type: 'button', class: 'link', onclick: () => this.open(scope, true) }, name),
        el('span', { class: 'slash', 'aria-hidden': 'true' }, '/')];
    }).flat();
  }

  /** What the area of a tile stands for. */
  _measure() {
    const choose = (event) => {
      this.countingOnly = event.target.value === 'counting';
      this.draw();
    };
    return el('label', { class: 'pick' }, 'Area ',
      el('select', { id: 'measure', onchange: choose },
        el('option', { value: 'counting', selected: this.countingOnly }, 'operations that count'),
        el('option', { value: 'all', selected: !this.countingOnly }, 'all operations')));
  }

  _legend() {
    const split = parts(this.operations, this.root.tally, false);
    const devices = [...new Set(split.map((part) => part.device))].sort();
    const off = split.find((part) => part.offends);
    const strong = off && el('span', { class: 'chip' },
      el('span', { class: `swatch offends ${deviceClass(off.device)}`, 'aria-hidden': 'true' }),
      'strong colour: off its device');
    return el('p', { class: 'legend map-legend' }, devices.map(deviceChip), strong);
  }

  _open(tile) {
    if (!tile) return;
    const { view } = tile;
    if (view.scope) this.open(view.scope, true);
    else this.onType(view.type);
  }

  _focus(wanted) {
    const tiles = [...this.area.querySelectorAll('.tile.leads')];
    const tile = tiles.find((candidate) => candidate.view.name === wanted) || tiles[0];
    if (!tile) return;
    tiles.forEach((other) => other.setAttribute('tabindex', '-1'));
    tile.setAttribute('tabindex', '0');
    tile.focus({ preventScroll: true });
  }

  _key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const tile = event.target.closest('.tile');
    if (event.key === 'Enter' || event.key === ' ') this._open(tile);
    else if (event.key === 'Escape' || event.key === 'Backspace') this.up();
    else if (event.key.startsWith('Arrow')) this._step(tile, event.key);
    else return;
    event.preventDefault();
  }

  /** Gives the keyboard to the nearest tile in a direction. */
  _step(tile, key) {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] || [0, 0];
    const from = middle(tile);
    let best = null;
    for (const other of this.area.querySelectorAll('.tile.leads')) {
      const [x, y] = middle(other);
      const along = (x - from[0]) * dx + (y - from[1]) * dy;
      const aside = Math.abs((x - from[0]) * dy) + Math.abs((y - from[1]) * dx);
      const distance = along + 2 * aside;
      if (other !== tile && along > 1 && (!best || distance < best.distance)) best = { other, distance };
    }
    if (!best) return;
    tile.setAttribute('tabindex', '-1');
    best.other.setAttribute('tabindex', '0');
    best.other.focus();
  }

  _resized() {
    if (this.drawn === `${this.area.clientWidth}×${this.area.clientHeight}`) return;
    const had = this.area.contains(document.activeElement) && document.activeElement.view?.name;
    this.draw();
    if (had) this._focus(had);
  }
}

function place(box, node, left = 0, top = 0) {
  box.style.left = `${node.x0 - left}px`;
  box.style.top = `${node.y0 - top}px`;
  box.style.width = `${node.x1 - node.x0}px`;
  box.style.height = `${node.y1 - node.y0}px`;
}

function middle(tile) {
  return [tile.offsetLeft + tile.offsetWidth / 2, tile.offsetTop + tile.offsetHeight / 2];
}

/** The colours of a tile, each as wide as its share. */
function fill(split) {
  return el('span', { class: 'fill' }, split.map((part) => {
    const piece = el('span', { class: `piece ${deviceClass(part.device)}${part.offends ? ' offends' : ''}` });
    piece.style.flexGrow = part.weight;
    return piece;
  }));
}

function tileLabel(view, off, width, height) {
  return el('span', { class: `tile-label${off ? ' has-off' : ''}` },
    el('span', { class: 'tile-name' }, cut(view.name, 80)), ' ',
    (width > 130 || (width > 60 && height > 44)) ? el('span', { class: 'tile-figures' }, figures(view.weight, off)) : null);
}

/** "1,204, 3 off". */
function figures(weight, off) {
  return `${number(weight)}${off ? `, ${number(off)} off` : ''}`;
}

/** "98 % on GPU:0, 2 % on CPU:0 (off its device)". */
function shares(weight, split) {
  return split.map((part) => `${percent(part.weight, weight)} on ${cut(part.device, 60) || 'an unknown device'}${part.offends ? ' (off its device)' : ''}`).join(', ');
}
