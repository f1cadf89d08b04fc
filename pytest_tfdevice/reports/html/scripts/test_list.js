// The list of tests, what failed first.

class TestList {
  /** onOpen(number): a test was chosen. */
  constructor(tests, onOpen) {
    this.tests = tests;
    this.found = tests.map((_, number) => number);
    this.open = -1;
    this.filter = el('input', {
      type: 'search', id: 'test-filter', placeholder: 'Filter tests', 'aria-label': 'Filter the tests',
      autocomplete: 'off', spellcheck: 'false', oninput: () => this.update(),
      onkeydown: (event) => { if (event.key === 'ArrowDown') { this.list.focus(); event.preventDefault(); } },
    });
    this.only = el('input', { type: 'checkbox', id: 'only-failed', onchange: () => this.update() });
    this.counted = el('p', { class: 'counted', role: 'status' });
    this.list = el('div', { class: 'test-list', role: 'listbox', tabindex: '0', 'aria-label': 'Tests' });
    this.rows = new VirtualRows(this.list, {
      draw: (index) => this._row(index),
      onSelect: (index) => this._select(index, onOpen),
    });
    this.rows.space.setAttribute('role', 'presentation');
  }

  get elements() {
    const failed = this.tests.filter((test) => test.outcome === 'failed' || test.outcome === 'error').length;
    return [
      el('div', { class: 'bar' }, this.filter,
        failed && failed < this.tests.length
          ? el('label', { class: 'pick' }, this.only, ` Only the ${number(failed)} that failed`) : null),
      this.counted, this.list,
    ];
  }

  update() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = this.tests.map((_, n) => n).filter((n) => {
      const test = this.tests[n];
      if (this.only.checked && test.outcome !== 'failed' && test.outcome !== 'error') return false;
      const id = test.id.toLowerCase();
      return words.every((word) => id.includes(word) || test.outcome === word);
    });
    this.counted.textContent = `${number(this.found.length)} of ${counted(this.tests.length, 'test')}`;
    this.rows.show(this.found.length);
    const at = this.found.indexOf(this.open);
    if (at >= 0) this.rows.select(at);
  }

  /** Opens a test, whatever the filter leaves out. */
  show(test) {
    if (!this.found.includes(test)) {
      this.filter.value = '';
      this.only.checked = false;
      this.update();
    }
    this.rows.select(this.found.indexOf(test));
  }

  _select(index, onOpen) {
    const test = this.found[index];
    if (test === this.open) return;
    this.open = test;
    onOpen(test);
  }

  _row(index) {
    const test = this.tests[this.found[index]];
    const [module, name] = splitId(test.id);
    const figures = test.off > 0 ? `${number(test.off)} off` : counted(test.total, 'op');
    return el('div', { class: 'test', role: 'option', title: cut(test.id, 400) },
      outcomeBadge(test.outcome),
      el('span', { class: 'test-name' }, cut(name, 160)),
      el('span', { class: 'test-figures' }, figures),
      el('span', { class: 'test-module' }, cut(module, 160)));
  }
}

/** ["tests/test_x.py::TestX", "test_y[1]"]. */
function splitId(id) {
  const bracket = id.indexOf('[');
  const end = id.lastIndexOf('::', bracket < 0 ? id.length : bracket);
  return end < 0 ? ['', id] : [id.slice(0, end), id.slice(end + 2)];
}
