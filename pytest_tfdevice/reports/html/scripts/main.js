// Puts the page together.

function facts(run) {
  const lines = [];
  if (run.tensorflow) lines.push(['TensorFlow', run.tensorflow]);
  if (run.python) lines.push(['Python', run.python]);
  if (run.plugin) lines.push(['pytest-tfdevice', run.plugin]);
  if (run.ran !== null) lines.push(['tests run', number(run.ran)]);
  const items = lines.map(([name, value]) => el('li', {}, `${name} `, el('b', {}, value)));
  for (const device of run.devices) {
    const about = [device.description, device.memory ? size(device.memory) : ''].filter(Boolean).join(', ');
    items.push(el('li', {}, deviceChip(device.name), about || null,
      device.simulated ? el('span', { class: 'badge simulated' }, 'simulated') : null));
  }
  return items;
}

/** What there is to know of the run beside its watched tests. */
function about(run) {
  const list = (title, items) => (items.length
    ? [el('details', {}, el('summary', {}, title), el('ul', {}, items.map((item) => el('li', {}, item))))] : []);
  const skipped = run.skipped.map(([id, reason]) => [el('code', {}, id), reason && ` ${reason}`]);
  return [
    ...run.remarks.map((remark) => el('p', { class: 'remark' }, remark)),
    ...list(`${counted(run.skipped.length, 'marked test')} skipped`, skipped),
    ...list(`${number(run.staleAllow.length)} ${run.staleAllow.length === 1 ? 'entry' : 'entries'} of allow that excused nothing`, run.staleAllow),
  ];
}

/** Follows the system's light or dark until somebody chooses; the choice is remembered. */
function theme(button) {
  const root = document.documentElement;
  const dark = () => root.dataset.theme
    ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const name = () => { button.textContent = dark() ? 'Light theme' : 'Dark theme'; };
  try {
    root.dataset.theme = localStorage.getItem('tfdevice-theme') || '';
  } catch { /* storage may be forbidden: then nothing is remembered */ }
  button.addEventListener('click', () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    try {
      localStorage.setItem('tfdevice-theme', root.dataset.theme);
    } catch { /* the same */ }
    name();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', name);
  name();
}

const ADDRESS = 'test=';

function start() {
  const run = readJson('run');
  document.body.dataset.outcome = run.outcome;
  document.getElementById('facts').replaceChildren(...facts(run));
  theme(document.getElementById('theme'));
  document.getElementById('about').replaceChildren(...about(run));
  const main = document.getElementById('test');
  if (!run.tests.length) {
    document.getElementById('body').classList.add('single');
    main.replaceChildren(el('p', { class: 'empty' },
      'No test of this run was watched. Mark tests with @pytest.mark.on_gpu, or run with --tfdevice-watch.'));
    return;
  }
  const open = (n) => {
    const { view, start: begin } = testView(readJson(`test-${n}`), run.devices);
    main.replaceChildren(view);
    begin();
    history.replaceState(null, '', `#${ADDRESS}${encodeURIComponent(run.tests[n].id)}`);
  };
  const list = new TestList(run.tests, open);
  document.getElementById('tests').replaceChildren(...list.elements);
  document.getElementById('body').classList.toggle('single', run.tests.length === 1);
  list.update();
  const addressed = () => run.tests.findIndex((test) => test.id === wantedTest());
  list.rows.select(Math.max(0, addressed()));
  addEventListener('hashchange', () => { if (addressed() >= 0) list.show(addressed()); });
}

/** The test that the page's address names, "page.html#test=tests/test_x.py::test_y". */
function wantedTest() {
  const hash = location.hash.slice(1);
  if (!hash.startsWith(ADDRESS)) return null;
  try {
    return decodeURIComponent(hash.slice(ADDRESS.length));
  } catch {
    return null;
  }
}

start();
performance.mark('tfdevice-ready');
