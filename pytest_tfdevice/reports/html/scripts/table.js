// The table of operations: filter, sort, select.

const COLUMNS = [
  ['path', 'Operation'],
  ['type', 'Type'],
  ['device', 'Device'],
  ['reason', 'Reason'],
  ['file', 'Source'],
  ['runs', 'Runs'],
];

class OperationTable {
  constructor(operations, target) {
    this.operations = operations;
    this.target = target;
    this.state = { query: '', scope: null, shown: 'all', column: null, down: false };
    this.filter = el('input', {
      id: 'filter', type: 'search', autocomplete: 'off', spellcheck: 'false',
      placeholder: 'MatMul, type:Conv2D device:CPU reason:dtype scope:block1 -type:Const',
      'aria-label': 'Filter the operations', 'aria-describedby': 'filter-help',
      oninput: () => this.set({ query: this.filter.value }),
      onkeydown: (event) => this._fromFilter(event),
    });
    this.counted = el('p', { class: 'counted', role: 'status' });
    this.details = el('div', { class: 'details', id: 'details', 'aria-live': 'polite' });
    this.heads = el('div', { class: 'row head', role: 'row' }, COLUMNS.map(([name, title]) => this._head(name, title)));
    this.grid = el('div', {
      class: 'grid', role: 'grid', tabindex: '0', id: 'operations', 'aria-label': 'Operations',
      'aria-colcount': COLUMNS.length,
    }, el('div', { role: 'rowgroup', class: 'heads' }, this.heads));
    this.rows = new VirtualRows(this.grid, {
      draw: (index) => this._row(index),
      onOpen: (index) => this._details(this.found[index]),
    });
  }

  get element() {
    return section('Operations', 'operations-title',
      el('div', { class: 'bar' }, this.filter, this._choices()),
      el('p', { class: 'hint', id: 'filter-help' },
        'Fields: type: device: reason: scope: name: source: function: — a minus leaves out, * stands for anything.'),
      this.counted, this.grid, this.details);
  }

  /** Changes what is shown, and shows it. */
  set(change) {
    Object.assign(this.state, change);
    this.update();
  }

  /** Adds a term to what is typed. */
  narrow(field, value) {
    const term = `${field}:${/\s/.test(value) ? `"${value}"` : value}`;
    const query = this.filter.value.trim();
    if (!parseQuery(query).some((t) => t.field === field && t.value === value.toLowerCase())) {
      this.filter.value = query ? `${query} ${term}` : term;
    }
    this.set({ query: this.filter.value });
  }

  update() {
    const { state, operations } = this;
    this.found = filtered(operations, state).sort(rowOrder(operations, state.column));
    if (state.down) this.found.reverse();
    this._count();
    this._sorted();
    this.grid.setAttribute('aria-rowcount', this.found.length + 1);
    this.details.replaceChildren();
    this.rows.show(this.found.length);
  }

  _count() {
    const weights = this.operations.columns.weight;
    const shown = this.found.reduce((sum, i) => sum + weights[i], 0);
    const all = this.operations.total(() => true);
    const where = this.state.scope !== null
      ? [' in ', el('code', {}, cut(this.state.scope, 120))]
      : [];
    this.counted.replaceChildren(`${number(shown)} of ${counted(all, 'operation')}`, ...where);
  }

  _choices() {
    const { operations } = this;
    const choices = [
      ['all', 'All', operations.total(() => true)],
      ['counting', 'That count', operations.total((i) => operations.counts(i))],
      ['off', `Off ${this.target}`, operations.total((i) => operations.offends(i))],
    ];
    return el('fieldset', { class: 'choices' }, el('legend', { class: 'unseen' }, 'Which operations'),
      choices.map(([value, title, total]) => el('label', {},
        el('input', {
          type: 'radio', name: 'shown', value, checked: value === this.state.shown,
          onchange: () => this.set({ shown: value }),
        }),
        el('span', {}, `${title} `, el('b', {}, number(total))))));
  }

  _head(name, title) {
    return el('div', { class: `cell c-${name}`, role: 'columnheader', 'data-column': name },
      el('button', { type: 'button', class: 'sort', onclick: () => this._sort(name) }, title,
        el('span', { class: 'arrow', 'aria-hidden': 'true' })));
  }

  /** Up, then down, then as in the report again. */
  _sort(name) {
    const { column, down } = this.state;
    if (column !== name) this.set({ column: name, down: false });
    else this.set(down ? { column: null, down: false } : { column: name, down: true });
  }

  _sorted() {
    const { column, down } = this.state;
    for (const head of this.heads.children) {
      const mine = head.dataset.column === column;
      head.setAttribute('aria-sort', mine ? (down ? 'descending' : 'ascending') : 'none');
    }
  }

  _row(index) {
    const { operations } = this;
    const i = this.found[index];
    const weight = operations.columns.weight[i];
    const offends = operations.offends(i);
    const device = operations.text('device', i);
    return el('div', {
      class: `row${offends ? ' offends' : ''}${operations.counts(i) ? '' : ' quiet-row'}`,
      role: 'row', 'aria-rowindex': index + 2,
    },
    cell('path', ...pathCell(operations.text('scope', i), operations.label(i), weight)),
    cell('type', cut(operations.text('type', i), 80)),
    cell('device', deviceChip(device)),
    cell('reason', this._reason(i)),
    cell('file', cut(shortSource(operations.source(i)), 80)),
    cell('runs', number(operations.columns.runs[i])));
  }

  _reason(i) {
    const { operations } = this;
    if (operations.counts(i)) return operations.text('reason', i);
    return operations.text('reason', i) ? `allowed: ${operations.text('reason', i)}` : 'does not count';
  }

  /** From the filter the arrow goes into the table; Escape clears. */
  _fromFilter(event) {
    if (event.key === 'ArrowDown') {
      this.grid.focus();
      this.rows.select(0);
    } else if (event.key === 'Escape' && this.filter.value) {
      this.filter.value = '';
      this.set({ query: '' });
    } else return;
    event.preventDefault();
  }

  _details(i) {
    const { operations } = this;
    const facts = [
      ['Operation', operations.path(i)],
      ['Type', operations.text('type', i)],
      ['Device', operations.text('device', i) + (operations.offends(i) ? ` — not on ${this.target}` : '')],
      ['Verdict', operations.text('standing', i)],
      ['Reason', operations.text('reason', i)],
      ['How it is known', operations.text('evidence', i)],
      ['To mend it', operations.text('mend', i)],
      ['tf.device', operations.text('request', i)],
      ['Tensors', operations.text('tensors', i)],
      ['Source', operations.source(i)],
      ['Function', operations.text('function', i)],
      ['Runs seen', number(operations.columns.runs[i])],
    ];
    this.details.replaceChildren(el('dl', {}, facts.filter(([, value]) => value)
      .map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])));
  }
}

/** "model.py:12" for "/home/me/model.py:12": the folder is among the details. */
function shortSource(source) {
  return source.slice(source.lastIndexOf('/') + 1);
}
