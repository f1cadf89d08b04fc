// The scopes of a model, "model/block1/conv" is conv in block1 in model.  A level is worked out when
// it is looked at: a tree of 50,000 operations would cost a second, a level costs milliseconds.

class Scope {
  /** path: null for the root;  rows: numbers of the operations in it, at any depth. */
  constructor(operations, path, parent, rows) {
    this.operations = operations;
    this.path = path;
    this.parent = parent;
    this.rows = rows;
    this._inside = null;
    this._tally = null;
  }

  /** What its path adds to that of the scope around it. */
  get name() {
    return this.path === null ? '' : this.path.slice(this.parent.prefix.length);
  }

  /** What the paths of the scopes in it begin with. */
  get prefix() {
    return this.path === null ? '' : `${this.path}/`;
  }

  /** How many operations are in it: see `add`. */
  get tally() {
    this._tally ??= tallyOf(this.operations, this.rows);
    return this._tally;
  }

  /** {scopes, types}: the scopes in it, and by op type the tallies of what is in none of these. */
  get inside() {
    this._inside ??= inside(this);
    return this._inside;
  }

  /** True where there is something inside to look at. */
  get opens() {
    return this.inside.scopes.length > 0 || this.inside.types.size > 1;
  }

  /** From the root down to this one. */
  get line() {
    const found = [];
    for (let scope = this; scope; scope = scope.parent) found.push(scope);
    return found.reverse();
  }
}

function rootScope(operations) {
  return new Scope(operations, null, null, Uint32Array.from({ length: operations.length }, (_, i) => i));
}

function inside(scope) {
  const { operations, prefix, path } = scope;
  const { columns, texts } = operations;
  const groups = new Map();
  const types = new Map();
  for (const i of scope.rows) {
    const text = texts[columns.scope[i]];
    if (text === (path ?? '')) {
      const tally = types.get(columns.type[i]) || new Map();
      types.set(columns.type[i], tally);
      addRow(tally, columns, i);
      continue;
    }
    const slash = text.indexOf('/', prefix.length);
    const part = slash < 0 ? text.slice(prefix.length) : text.slice(prefix.length, slash);
    const rows = groups.get(part);
    if (rows) rows.push(i);
    else groups.set(part, [i]);
  }
  const scopes = [...groups.values()].map((rows) => new Scope(operations, common(operations, rows), scope, rows));
  return { scopes, types };
}

/** The deepest scope that all rows are in, so that no step down is an empty one. */
function common(operations, rows) {
  const { scope } = operations.columns;
  let path = operations.texts[scope[rows[0]]];
  let last = scope[rows[0]];
  for (const i of rows) {
    if (scope[i] === last) continue;
    last = scope[i];
    const text = operations.texts[last];
    while (text !== path && !text.startsWith(`${path}/`)) path = path.slice(0, path.lastIndexOf('/'));
  }
  return path;
}

// A tally counts operations by device and by flags: key = text of the device × 4 + flags.

function add(tally, key, weight) {
  tally.set(key, (tally.get(key) || 0) + weight);
}

function addRow(tally, columns, i) {
  add(tally, columns.device[i] * 4 + columns.flags[i], columns.weight[i]);
}

function tallyOf({ columns }, rows) {
  const tally = new Map();
  for (const i of rows) addRow(tally, columns, i);
  return tally;
}

/** How many operations are in a tally, of those that count or of all. */
function tallied(tally, countingOnly) {
  let sum = 0;
  for (const [key, weight] of tally) if (!countingOnly || key & COUNTS) sum += weight;
  return sum;
}

/** True where something in a tally counts and is off its device. */
function offending(tally) {
  for (const key of tally.keys()) if ((key & 3) === (COUNTS | OFF)) return true;
  return false;
}

/** The parts of a tally, [{device, offends, weight}], what is where it should be first. */
function parts(operations, tally, countingOnly) {
  const found = new Map();
  for (const [key, weight] of tally) {
    if (countingOnly && !(key & COUNTS)) continue;
    const offends = (key & 3) === (COUNTS | OFF);
    const device = operations.texts[key >> 2];
    const known = found.get(`${offends}${device}`) || { device, offends, weight: 0 };
    known.weight += weight;
    found.set(`${offends}${device}`, known);
  }
  return [...found.values()].sort((a, b) => a.offends - b.offends || b.weight - a.weight);
}
