// A long list of rows of one height, of which only those in sight are elements.  Fixed heights make
// it a few lines; a library would be many times the size of this file.

class VirtualRows {
  /**
   * scroller: the element that scrolls; it takes the keyboard.
   * draw(index): the element of a row.
   * onSelect(index): a row became the selected one;  onOpen(index): Enter or a click on it.
   */
  constructor(scroller, { draw, onSelect = () => {}, onOpen = () => {} }) {
    this.scroller = scroller;
    this.draw = draw;
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.count = 0;
    this.selected = -1;
    this.elements = new Map();
    this.space = el('div', { class: 'rows', role: 'rowgroup' });
    this.prefix = `row-${(VirtualRows.made = (VirtualRows.made || 0) + 1)}`;
    scroller.append(this.space);
    scroller.addEventListener('scroll', () => this._later(), { passive: true });
    scroller.addEventListener('keydown', (event) => this._key(event));
    this.space.addEventListener('click', (event) => this._click(event));
    new ResizeObserver(() => this._resized()).observe(scroller);
  }

  /** Shows `count` rows, drawn anew, from the top. */
  show(count) {
    this.count = count;
    this.selected = -1;
    this.scroller.scrollTop = 0;
    this.scroller.removeAttribute('aria-activedescendant');
    this.redraw();
  }

  /** Draws what is in sight anew. */
  redraw() {
    this.height = parseFloat(getComputedStyle(this.scroller).getPropertyValue('--row')) || 32;
    this.space.style.height = `${this.count * this.height}px`;
    this.space.replaceChildren();
    this.elements.clear();
    this._update();
  }

  /** Selects a row and brings it into sight. */
  select(index) {
    if (!this.count) return;
    this.elements.get(this.selected)?.setAttribute('aria-selected', 'false');
    this.selected = Math.max(0, Math.min(index, this.count - 1));
    this._reveal();
    this._update();
    const row = this.elements.get(this.selected);
    row.setAttribute('aria-selected', 'true');
    this.scroller.setAttribute('aria-activedescendant', row.id);
    this.onSelect(this.selected);
  }

  _later() {
    if (this._waiting) return;
    this._waiting = true;
    requestAnimationFrame(() => { this._waiting = false; this._update(); });
  }

  _resized() {
    const height = parseFloat(getComputedStyle(this.scroller).getPropertyValue('--row')) || 32;
    if (height !== this.height) this.redraw();
    else this._update();
  }

  _update() {
    const { scroller, space, height } = this;
    const from = Math.max(0, Math.floor((scroller.scrollTop - space.offsetTop) / height) - 8);
    const to = Math.min(this.count, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + 8);
    for (const [index, row] of this.elements) {
      if (index < from || index >= to) {
        row.remove();
        this.elements.delete(index);
      }
    }
    for (let index = from; index < to; index += 1) if (!this.elements.has(index)) this._place(index);
  }

  _place(index) {
    const row = this.draw(index);
    row.id = `${this.prefix}-${index}`;
    row.dataset.index = index;
    row.style.transform = `translateY(${index * this.height}px)`;
    row.setAttribute('aria-selected', String(index === this.selected));
    this.elements.set(index, row);
    this.space.append(row);
  }

  _reveal() {
    const { scroller, height } = this;
    const head = this.space.offsetTop;
    const top = this.selected * height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    const bottom = top + height + head - scroller.clientHeight;
    if (bottom > scroller.scrollTop) scroller.scrollTop = bottom;
  }

  _key(event) {
    if (event.target !== this.scroller || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 2);
    const steps = {
      ArrowDown: this.selected + 1,
      ArrowUp: this.selected - 1,
      PageDown: this.selected + page,
      PageUp: this.selected - page,
      Home: 0,
      End: this.count - 1,
    };
    if (event.key in steps) this.select(steps[event.key]);
    else if (event.key === 'Enter' && this.selected >= 0) this.onOpen(this.selected);
    else return;
    event.preventDefault();
  }

  _click(event) {
    const row = event.target.closest('[data-index]');
    if (!row) return;
    this.select(Number(row.dataset.index));
    this.onOpen(this.selected);
  }
}
