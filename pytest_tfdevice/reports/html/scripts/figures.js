// The figures of a test: devices, reasons, memory, transfers.

/** How the operations are spread over devices, as a bar and in words. */
function deviceBar(devices) {
  const total = devices.reduce((sum, [, count]) => sum + count, 0);
  if (!total) return null;
  const split = devices.map(([device, weight]) => ({ device, weight, offends: false }))
    .sort((a, b) => b.weight - a.weight);
  return el('div', { class: 'spread' },
    el('div', { class: 'spread-bar', 'aria-hidden': 'true' }, fill(split)),
    el('ul', { class: 'legend' }, split.map(({ device, weight }) => el('li', {}, deviceChip(device),
      `${number(weight)} (${percent(weight, total)})`))));
}

/** Why operations that count are off their device; a reason filters the table. */
function reasonList(operations, target, onReason) {
  const totals = new Map();
  for (let i = 0; i < operations.length; i += 1) {
    if (!operations.offends(i)) continue;
    const reason = operations.text('reason', i);
    totals.set(reason, (totals.get(reason) || 0) + operations.columns.weight[i]);
  }
  if (!totals.size) return null;
  const most = Math.max(...totals.values());
  const lines = [...totals].sort((a, b) => b[1] - a[1]).map(([reason, weight]) => {
    const bar = el('span', { class: 'reason-bar', 'aria-hidden': 'true' });
    bar.style.width = `${Math.max(2, (weight / most) * 100)}%`;
    return el('li', {},
      el('button', { type: 'button', class: 'reason', onclick: () => onReason(reason) },
        el('span', { class: 'reason-name' }, cut(reason, 200) || 'no reason known'),
        el('span', { class: 'reason-count' }, number(weight)), bar));
  });
  return section(`Why operations are off ${target}`, 'reasons-title', el('ul', { class: 'reasons' }, lines));
}

/** Memory and transfers, where they were measured. */
function amounts(test, devices) {
  const memory = test.memory.map(([device, peak]) => memoryLine(device, peak, devices.find((d) => d.name === device)));
  const transfers = test.transfers
    ? el('p', {}, el('b', {}, counted(test.transfers.count, 'transfer')), ` between host and device, ${size(test.transfers.bytes)}`)
    : null;
  if (!memory.length && !transfers) return null;
  return section('Memory and transfers', 'amounts-title', memory, transfers);
}

function memoryLine(device, peak, info) {
  const total = info?.memory;
  const words = total ? `peak ${size(peak)} of ${size(total)} (${percent(peak, total)})` : `peak ${size(peak)}`;
  const line = el('div', { class: 'memory' }, el('p', {}, deviceChip(device), words));
  if (total) line.append(el('meter', { min: 0, max: total, value: peak, 'aria-label': `${device}: ${words}` }));
  return line;
}
