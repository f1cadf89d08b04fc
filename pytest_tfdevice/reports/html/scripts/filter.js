// What is typed → which rows are meant.
//
//   type:MatMul device:cpu reason:dtype scope:block1 name:dense source:model.py function:step
//   words without a field are looked for in all of them; -type:Const leaves out; * stands for
//   anything, and then the whole text has to match; "two words" belong together.

const FIELDS = {
  type: 'type', device: 'device', reason: 'reason', scope: 'scope', source: 'file', function: 'function',
};
const ANYWHERE = ['type', 'device', 'reason', 'file', 'function'];
const TERM = /(-?)(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/gi;

/** The terms of a query: {field, value, not}; field is null for a word that may stand anywhere. */
function parseQuery(query) {
  const terms = [];
  for (const [whole, minus, name, quoted, plain] of query.matchAll(TERM)) {
    const field = (name || '').toLowerCase();
    const known = Object.hasOwn(FIELDS, field) || field === 'name';
    const value = known || !name ? (quoted ?? plain) : whole.slice(minus.length);
    if (value) terms.push({ field: known ? field : null, value: value.toLowerCase(), not: minus === '-' });
  }
  return terms;
}

/** A function that tells whether a text in lower case is meant. */
function textTest(value) {
  if (!value.includes('*')) return (text) => text.includes(value);
  const parts = value.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`^${parts.join('.*')}$`, 's');
  return (text) => pattern.test(text);
}

/** The same for the number of a text, which is looked at once. */
function memoised(operations, test) {
  const known = new Int8Array(operations.texts.length);
  return (text) => {
    if (known[text] === 0) known[text] = test(operations.lower[text]) ? 1 : -1;
    return known[text] === 1;
  };
}

function rowTest(operations, { field, value, not }) {
  const test = textTest(value);
  const { columns, paths } = operations;
  let found;
  if (field === 'name') {
    found = (i) => test(paths[i]);
  } else if (field) {
    const column = columns[FIELDS[field]];
    const meant = memoised(operations, test);
    found = (i) => meant(column[i]);
  } else {
    const meant = memoised(operations, test);
    const anywhere = ANYWHERE.map((name) => columns[name]);
    found = (i) => test(paths[i]) || anywhere.some((column) => meant(column[i]));
  }
  return not ? (i) => !found(i) : found;
}

/** True for rows in a scope or one below it; every row is in null, the root. */
function scopeTest(operations, path) {
  if (path === null) return () => true;
  const below = `${path}/`;
  const known = new Map();
  const column = operations.columns.scope;
  return (i) => {
    const text = column[i];
    if (!known.has(text)) {
      const scope = operations.texts[text];
      known.set(text, (path && scope === path) || scope.startsWith(below));
    }
    return known.get(text);
  };
}

const SHOWN = {
  all: () => () => true,
  counting: (operations) => (i) => operations.counts(i),
  off: (operations) => (i) => operations.offends(i),
};

/** The numbers of the rows that are meant, in order. */
function filtered(operations, { query, scope, shown }) {
  const tests = [
    SHOWN[shown](operations),
    scopeTest(operations, scope),
    ...parseQuery(query).map((term) => rowTest(operations, term)),
  ];
  const found = new Uint32Array(operations.length);
  let length = 0;
  for (let i = 0; i < operations.length; i += 1) {
    if (tests.every((test) => test(i))) found[length++] = i;
  }
  return found.subarray(0, length);
}

/** The order of two rows by a column, or null for the order of the report, what offends first. */
function rowOrder(operations, column) {
  const { columns } = operations;
  if (column === null) return (a, b) => operations.offends(b) - operations.offends(a) || a - b;
  if (column === 'runs') return (a, b) => columns.runs[a] - columns.runs[b] || a - b;
  if (column === 'path') {
    const { paths } = operations;
    return (a, b) => (paths[a] < paths[b] ? -1 : paths[a] > paths[b] ? 1 : a - b);
  }
  const { ranks } = operations;
  const texts = columns[column];
  const line = column === 'file' ? columns.line : null;
  return (a, b) => ranks[texts[a]] - ranks[texts[b]] || (line ? line[a] - line[b] : 0) || a - b;
}
