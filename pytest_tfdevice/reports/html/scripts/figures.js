// The figures of a test: devices, reasons, memory, transfers.

/** How the operations are spread over devices, as a bar and in words. */
function deviceBar(devices) {
  const total = devices.reduce((sum, [, weight]) => sum + weight, 0);
  if (!total) return null;
  const split = devices.map(([device, weight]) => ({ device, weight, offends: false }))
    .sort((a, b) => b.weight - a.weight);
  return el('div', { class: 'spread' },
    el('div', { class: 'spread-bar', 'aria-hidden': 'true' }, fill(split)),
    el('ul', { class: 'legend' }, split.map(({ device, weight }) => el('li', {}, deviceChip(device),
      `${number(weight)} (${percent(weight, total)})`))));
}

/** Why operations that count are off their device, and how to mend it; a reason filters the table. */
function reasonList(operations, target, onReason) {
  const found = new Map();
  for (let i = 0; i < operations.length; i += 1) {
    if (!operations.offends(i)) continue;
    const reason = operations.text('reason', i);
    const known = found.get(reason) || { weight: 0, mends: new Set() };
    known.weight += operations.columns.weight[i];
    if (operations.text('mend', i)) known.mends.add(operations.text('mend', i));
    found.set(reason, known);
  }
  if (!found.size) return null;
  const most = Math.max(...[...found.values()].map(({ weight }) => weight));
  const lines = [...found].sort((a, b) => b[1].weight - a[1].weight)
    .map(([reason, { weight, mends }]) => reasonLine(reason, weight, weight / most, [...mends], onReason));
  return section(`Why operations are off ${cut(target, 60)}`, 'reasons-title', el('ul', { class: 'reasons' }, lines));
}

function reasonLine(reason, weight, share, mends, onReason) {
  const bar = el('span', { class: 'reason-bar', 'aria-hidden': 'true' });
  bar.style.width = `${Math.max(2, share * 100)}%`;
  const more = mends.length > 1 ? ` (and ${counted(mends.length - 1, 'other way')}: see the operations)` : '';
  return el('li', {},
    el('button', { type: 'button', class: 'reason', onclick: () => onReason(reason) },
      el('span', { class: 'reason-name' }, cut(reason, 200) || 'no reason known'),
      el('span', { class: 'reason-count' }, counted(weight, 'operation')), bar),
    mends.length ? el('p', { class: 'mend' }, `To mend it: ${cut(mends[0], 400)}${more}`) : null);
}

/** Memory and transfers, where they were measured. */
function amounts({ memory, transfers }, devices) {
  if (!memory.length && !transfers) return null;
  const total = (gpu) => gpu.total ?? devices.find((device) => device.name === gpu.device)?.memory;
  return section('Memory and transfers', 'amounts-title',
    memory.map((gpu) => memoryOf(gpu, total(gpu))), transfers ? transfersOf(transfers) : null);
}

function memoryOf(gpu, total) {
  const peak = `peak ${size(gpu.peak)}${total ? ` of ${size(total)} (${percent(gpu.peak, total)})` : ''}`;
  const line = el('div', { class: 'memory' }, el('p', {}, deviceChip(gpu.device), peak));
  if (total) line.append(el('meter', { min: 0, max: total, value: gpu.peak, 'aria-label': `${cut(gpu.device, 60)}: ${peak}` }));
  const more = [
    ['held before', gpu.before], ['taken by this test', gpu.taken], ['held after', gpu.after],
    ['left after a garbage collection', gpu.left], ['limit of the allocator', gpu.limit],
    ['reserved by the process', gpu.reserved],
  ].filter(([, bytes]) => bytes !== null && bytes !== undefined).map(([name, bytes]) => `${name} ${size(bytes)}`);
  if (typeof gpu.utilisation === 'number') more.push(`GPU busy ${percent(gpu.utilisation, 1)} of the time`);
  if (more.length) line.append(el('p', { class: 'hint' }, more.join(' · ')));
  return line;
}

function transfersOf({ count, bytes, crossings }) {
  const sums = count === null ? null
    : el('p', { class: 'sums' }, el('b', {}, counted(count, 'transfer')), ` between host and device in a step, ${size(bytes)}`);
  return [sums, crossings.length ? plainGrid({
    id: 'transfers',
    label: 'Tensors that crossed',
    columns: [['path', 'Tensor'], ['from', 'From'], ['to', 'To'], ['is', 'Type'], ['bytes', 'Size'], ['times', 'Per step'], ['file', 'Source']],
    count: crossings.length,
    row: (index) => crossingRow(crossings[index]),
  }) : null];
}

function crossingRow(crossing) {
  return {
    cells: [
      cut(crossing.tensor, 200), deviceChip(crossing.from), deviceChip(crossing.to), cut(crossing.is, 80),
      size(crossing.bytes), `${number(crossing.times)}${crossing.loop ? ', in a loop' : ''}`, cut(shortSource(crossing.source), 80),
    ],
  };
}
