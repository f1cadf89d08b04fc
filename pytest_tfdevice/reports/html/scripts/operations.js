// The operations of a test: columns of numbers that point into one list of texts.  What is written
// here is read from columns.py.

const COUNTS = 1;
const OFF = 2;

class Operations {
  constructor(data) {
    this.texts = data.texts;
    this.columns = data;
    this.length = data.type.length;
    this._lower = null;
    this._paths = null;
    this._ranks = null;
  }

  /** The text of a column, "type" or "device" for instance, in row i. */
  text(column, i) {
    return this.texts[this.columns[column][i]];
  }

  counts(i) {
    return (this.columns.flags[i] & COUNTS) !== 0;
  }

  /** True for what counts and isn't on the device that is meant. */
  offends(i) {
    return this.columns.flags[i] === (COUNTS | OFF);
  }

  /** The name without its scope; the type where it has none. */
  label(i) {
    return this.text('name', i) || this.text('type', i);
  }

  path(i) {
    const scope = this.text('scope', i);
    return scope ? `${scope}/${this.label(i)}` : this.label(i);
  }

  source(i) {
    const file = this.text('file', i);
    return file ? `${file}:${this.columns.line[i]}` : '';
  }

  /** All texts in lower case, for filters. */
  get lower() {
    this._lower ??= this.texts.map((text) => text.toLowerCase());
    return this._lower;
  }

  /** The path of each row in lower case, for filters. */
  get paths() {
    this._paths ??= Array.from({ length: this.length }, (_, i) => this.path(i).toLowerCase());
    return this._paths;
  }

  /** The place of each text in the order of the alphabet, so that rows are compared as numbers. */
  get ranks() {
    if (this._ranks) return this._ranks;
    const order = Uint32Array.from(this.texts.keys());
    const { lower } = this;
    order.sort((a, b) => (lower[a] < lower[b] ? -1 : lower[a] > lower[b] ? 1 : 0));
    this._ranks = new Uint32Array(order.length);
    order.forEach((text, rank) => { this._ranks[text] = rank; });
    return this._ranks;
  }

  /** How many operations the rows stand for, of those that `include(i)` takes. */
  total(include) {
    let sum = 0;
    for (let i = 0; i < this.length; i += 1) if (include(i)) sum += this.columns.weight[i];
    return sum;
  }
}
