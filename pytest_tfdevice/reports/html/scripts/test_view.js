// All that is known of one test.

function testView(test, devices) {
  const operations = new Operations(test.operations);
  const table = new OperationTable(operations, test.target);
  const map = new ScopeMap(operations, {
    onScope: (scope) => table.set({ scope }),
    onType: (type) => table.narrow('type', type),
  });
  const [module, name] = splitId(test.id);
  const view = el('article', {},
    el('section', { class: 'card', 'aria-labelledby': 'test-title' },
      el('p', { class: 'module' }, module),
      el('h2', { id: 'test-title' }, name),
      el('div', { class: 'verdict' }, outcomeBadge(test.outcome), el('p', { class: 'summary' }, test.summary)),
      test.share
        ? el('p', {}, el('b', {}, test.share), ` of the ${counted(test.counting, 'operation')} that count ran on ${test.target}.`)
        : null,
      deviceBar(test.devices),
      remarks('What could not be seen', 'problems', test.problems),
      remarks('Notes', 'notes', test.notes)),
    reasonList(operations, test.target, (reason) => table.narrow('reason', reason)),
    baselineSection(test.baseline),
    operations.length ? map.element : null,
    operations.length ? table.element : el('section', { class: 'card' }, el('p', { class: 'empty' }, 'The report holds no operation of this test.')),
    amounts(test, devices));
  return { view, start: () => { if (operations.length) { map.draw(); table.update(); } } };
}

function remarks(title, name, texts) {
  if (!texts.length) return null;
  return el('details', { class: `remarks ${name}`, open: name === 'problems' },
    el('summary', {}, `${title} (${number(texts.length)})`),
    el('ul', {}, texts.map((text) => el('li', {}, text))));
}
