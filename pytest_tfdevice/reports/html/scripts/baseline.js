// The difference to the baseline, old and new side by side.

const KINDS = {
  lost: 'left the device',
  'new-off': 'new, and off the device',
  gained: 'came to the device',
  moved: 'moved',
  new: 'new',
  gone: 'gone',
};

/** The section on the baseline; null where the test has none. */
function baselineSection(baseline) {
  if (!baseline) return null;
  const { changes } = baseline;
  const title = section('Difference to the baseline', 'baseline-title', baseline.summary ? el('p', {}, baseline.summary) : null);
  if (!changes.length) {
    title.append(el('p', {}, 'Nothing moved.'));
    return title;
  }
  const grid = el('div', {
    class: 'grid changes', role: 'grid', tabindex: '0', id: 'changes', 'aria-label': 'Changes',
    'aria-rowcount': changes.length + 1,
  }, el('div', { role: 'rowgroup', class: 'heads' }, el('div', { class: 'row head', role: 'row' },
    ['Operations', 'Baseline', 'This run', 'Change'].map((name) => el('div', { class: 'cell', role: 'columnheader' }, name)))));
  title.append(grid);
  const rows = new VirtualRows(grid, { draw: (index) => changeRow(changes[index], index) });
  rows.show(changes.length);
  return title;
}

function changeRow(change, index) {
  const bad = change.kind === 'lost' || change.kind === 'new-off';
  return el('div', { class: `row${bad ? ' offends' : ''}`, role: 'row', 'aria-rowindex': index + 2 },
    cell('path', el('span', { class: 'scope' }, change.scope ? `${cut(change.scope, 200)}/` : ''),
      el('span', { class: 'name' }, cut(change.type, 120)), el('span', { class: 'times' }, ` × ${number(change.count)}`)),
    cell('before', change.before ? deviceChip(change.before) : '–'),
    cell('after', change.after ? deviceChip(change.after) : '–'),
    cell('kind', KINDS[change.kind] || change.kind, change.reason ? `: ${change.reason}` : ''));
}
