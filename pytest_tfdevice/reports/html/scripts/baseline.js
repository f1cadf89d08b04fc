// The difference to the baseline, old and new side by side.

const KINDS = {
  lost: 'left its device',
  'new-off': 'new, and off its device',
  gained: 'came to its device',
  moved: 'moved',
  new: 'new',
  gone: 'gone',
};
const ACTIONS = {
  checked: 'compared with the baseline',
  created: 'the baseline was created in this run',
  updated: 'the baseline was updated in this run',
  missing: 'there is no baseline yet, and one is wanted',
};

/** A section for each comparison of a test with a baseline. */
function baselineSections(baselines) {
  return baselines.map((baseline, n) => {
    const { changes } = baseline;
    const found = section('Difference to the baseline', `baseline-${n}`,
      el('p', {}, outcomeBadge(baseline.passed ? 'passed' : 'failed'),
        ` ${ACTIONS[baseline.action] || baseline.action}: `,
        el('code', {}, cut(baseline.file, 200)), `, ${cut(baseline.environment, 100)}`));
    if (changes.length) found.append(changeGrid(changes, n));
    else if (baseline.action === 'checked') found.append(el('p', {}, 'Nothing moved.'));
    return found;
  });
}

function changeGrid(changes, n) {
  return plainGrid({
    id: n ? `changes-${n}` : 'changes',
    label: 'Changes since the baseline',
    columns: [['path', 'Operations'], ['before', 'Baseline'], ['after', 'This run'], ['kind', 'Change']],
    count: changes.length,
    row: (index) => {
      const change = changes[index];
      return {
        offends: change.bad,
        cells: [
          pathCell(change.scope, change.type, change.count),
          change.before ? deviceChip(change.before) : 'not there',
          change.after ? deviceChip(change.after) : 'not there',
          `${KINDS[change.kind] || change.kind}${change.reason ? ` (${cut(change.reason, 80)})` : ''}`,
        ],
      };
    },
  });
}
