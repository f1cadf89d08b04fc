// All that is known of one test.

function testView(test, devices) {
  const operations = new Operations(test.operations);
  const table = new OperationTable(operations, cut(test.target, 60));
  const map = new ScopeMap(operations, {
    onScope: (scope) => table.set({ scope }),
    onType: (type) => table.narrow('type', type),
  });
  const view = el('article', {},
    head(test),
    reasonList(operations, test.target, (reason) => table.narrow('reason', reason)),
    baselineSections(test.baselines),
    operations.length ? [map.element, table.element] : nothing(),
    amounts(test, devices));
  const start = () => {
    if (operations.length) {
      map.draw();
      table.update();
    }
    for (const grid of view.querySelectorAll('.plain')) grid.begin();
  };
  return { view, start };
}

function head(test) {
  const [module, name] = splitId(test.id);
  return el('section', { class: 'card', 'aria-labelledby': 'test-title' },
    el('p', { class: 'module' }, module),
    el('h2', { id: 'test-title' }, name),
    el('div', { class: 'verdict' }, outcomeBadge(test.outcome), el('p', { class: 'summary' }, test.summary)),
    test.share
      ? el('p', {}, el('b', {}, test.share), ` of the ${counted(test.counting, 'operation')} that count ran on ${cut(test.target, 60)}.`)
      : null,
    deviceBar(test.devices),
    test.source || test.pytestOutcome ? el('p', { class: 'hint' },
      [test.source, test.pytestOutcome && `pytest: ${test.pytestOutcome}`].filter(Boolean).join(' · ')) : null,
    checks(test.checks),
    test.text ? el('details', { class: 'remarks' }, el('summary', {}, 'The failure, as on the terminal'),
      el('pre', { tabindex: '0' }, test.text)) : null,
    remarks('What could not be seen', 'problems', test.problems),
    remarks('Notes', 'notes', test.notes));
}

/** What each marker said, where there is more than one: of one the summary has told. */
function checks(found) {
  if (found.length < 2) return null;
  return el('ul', { class: 'checks' }, found.map(([outcome, marker, summary]) => el('li', {},
    outcomeBadge(outcome), el('code', {}, cut(marker, 200)), el('span', {}, summary))));
}

function remarks(title, name, texts) {
  if (!texts.length) return null;
  return el('details', { class: `remarks ${name}`, open: name === 'problems' },
    el('summary', {}, `${title} (${number(texts.length)})`),
    el('ul', {}, texts.map((text) => el('li', {}, text))));
}

function nothing() {
  return el('section', { class: 'card' }, el('p', { class: 'empty' }, 'The report holds no operation of this test.'));
}
