// A table of any length without filters.

/** columns: [name, title];  row(index): the contents of the cells, or {cells, offends}. */
function plainGrid({ id, label, columns, count, row }) {
  const heads = columns.map(([name, title]) => el('div', { class: `cell c-${name}`, role: 'columnheader' }, title));
  const grid = el('div', {
    class: `grid plain ${id}`, role: 'grid', tabindex: '0', id, 'aria-label': label,
    'aria-rowcount': count + 1, 'aria-colcount': columns.length,
  }, el('div', { role: 'rowgroup', class: 'heads' }, el('div', { class: 'row head', role: 'row' }, heads)));
  const draw = (index) => {
    const { cells, offends = false } = row(index);
    return el('div', { class: `row${offends ? ' offends' : ''}`, role: 'row', 'aria-rowindex': index + 2 },
      cells.map((content, n) => cell(columns[n][0], content)));
  };
  const rows = new VirtualRows(grid, { draw });
  grid.begin = () => rows.show(count); // once it is on the page: rows have no height before
  return grid;
}

function cell(name, ...content) {
  return el('div', { class: `cell c-${name}`, role: 'gridcell' }, ...content);
}

/** A scope, a name in it, and how many of it there are where there is more than one. */
function pathCell(scope, name, times = 1) {
  return [el('span', { class: 'scope' }, scope ? `${cut(scope, 200)}/` : ''),
    el('span', { class: 'name' }, cut(name, 120)),
    times > 1 ? el('span', { class: 'times' }, ` × ${number(times)}`) : null];
}
