// The scopes of a model as a tree: "model/block1/conv" is conv in block1 in model.

class Scope {
  constructor(name, path, parent) {
    this.name = name;
    this.path = path;
    this.parent = parent;
    this.scopes = new Map();
    this.types = new Map(); // op type → tally, of the operations that are in no scope below
    this.tally = new Map();
  }

  /** True where there is something inside to look at. */
  get opens() {
    return this.scopes.size > 0 || this.types.size > 1;
  }

  /** From the root down to this one. */
  get line() {
    const found = [];
    for (let scope = this; scope; scope = scope.parent) found.push(scope);
    return found.reverse();
  }
}

// A tally counts operations by device and by flags: key = text of the device × 4 + flags.

function add(tally, key, weight) {
  tally.set(key, (tally.get(key) || 0) + weight);
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

/** The root of the tree of a test's operations. */
function scopeTree(operations) {
  const root = new Scope('', '', null);
  const { columns } = operations;
  const known = new Map();
  for (let i = 0; i < operations.length; i += 1) {
    let scope = known.get(columns.scope[i]);
    if (!scope) {
      scope = scopeAt(root, operations.texts[columns.scope[i]]);
      known.set(columns.scope[i], scope);
    }
    const type = columns.type[i];
    let tally = scope.types.get(type);
    if (!tally) scope.types.set(type, (tally = new Map()));
    add(tally, columns.device[i] * 4 + columns.flags[i], columns.weight[i]);
  }
  sumUp(root);
  return shorten(root);
}

function scopeAt(root, path) {
  let scope = root;
  if (!path) return root;
  let at = 0;
  while (at <= path.length) {
    const slash = path.indexOf('/', at);
    const end = slash < 0 ? path.length : slash;
    const name = path.slice(at, end);
    let next = scope.scopes.get(name);
    if (!next) {
      next = new Scope(name, path.slice(0, end), scope);
      scope.scopes.set(name, next);
    }
    scope = next;
    at = end + 1;
  }
  return scope;
}

// Trees are walked without recursion: a hostile name can have ten thousand parts.
function everyScope(root) {
  const found = [root];
  for (let n = 0; n < found.length; n += 1) for (const below of found[n].scopes.values()) found.push(below);
  return found;
}

function sumUp(root) {
  for (const scope of everyScope(root).reverse()) {
    for (const tally of scope.types.values()) for (const [key, n] of tally) add(scope.tally, key, n);
    for (const below of scope.scopes.values()) for (const [key, n] of below.tally) add(scope.tally, key, n);
  }
}

/** Makes one of a scope and the only thing in it, "model/resnet50", so that no step is empty. */
function shorten(root) {
  for (const scope of everyScope(root).reverse()) {
    if (scope.parent === null) continue;
    while (scope.scopes.size === 1 && scope.types.size === 0) {
      const [only] = scope.scopes.values();
      scope.name = `${scope.name}/${only.name}`;
      scope.path = only.path;
      scope.scopes = only.scopes;
      scope.types = only.types;
      for (const below of scope.scopes.values()) below.parent = scope;
    }
  }
  return root;
}
