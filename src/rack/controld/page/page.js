// SPDX-License-Identifier: Apache-2.0
// The controller's page. It asks once a second what there is and shows it; it
// changes nothing. Whatever comes from the controller becomes text, never HTML.
'use strict';

const $ = (id) => document.getElementById(id);
const REFRESH_MS = 1000;
const ANSWER_MS = 5000;
const LOGIN_MS = 60000; // a code cannot be tried again

// ---- words --------------------------------------------------------------

function bytes(n) {
  if (n === undefined || n === null) return '';
  const units = ['', 'K', 'M', 'G', 'T', 'P'];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return (u && n < 10 ? n.toFixed(1).replace(/\.0$/, '') : String(Math.round(n))) + units[u];
}

const time = (s) => new Date(s * 1000).toLocaleTimeString([], {hour12: false});
const count = (n) => (n === undefined ? '' : String(n));
const share = (part, whole) => (whole ? Math.round(100 * part / whole) + ' %' : '');

function span(s) {
  if (s === undefined) return '';
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [unit, name] of parts)
    if (s >= unit) return Math.floor(s / unit) + ' ' + name;
  return s + ' s';
}

// ---- elements -----------------------------------------------------------

const SVG = 'http://www.w3.org/2000/svg';

// Children that are strings become text: a name made of HTML stays a name.
function make(space, tag, attributes, children) {
  const e = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children);
  return e;
}
const el = (tag, attributes, ...children) => make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, children);

function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// ---- kinds of cells -----------------------------------------------------

// Each has what is shown (text, or an element), and the class of the cell.
const STATES = {
  up: ['good', '\u25cf'], leads: ['good', '\u25cf'], suspect: ['warn', '\u25b2'],
  draining: ['warn', '\u25d0'], drained: ['warn', '\u25cb'], waits: ['warn', '\u25cb'],
  down: ['bad', '\u2716'], ready: ['good', '\u25cf'], lost: ['bad', '\u2716'],
  runs: ['good', '\u25cf'], fails: ['bad', '\u2716'],
  live: ['good', '\u25cf'], kept: ['good', '\u25cf'], grace: ['warn', '\u25b2'], expired: ['bad', '\u2716'],
};
const KINDS = {
  text: {show: (v) => v === undefined ? '' : String(v)},
  long: {css: 'long', show: (v) => v === undefined ? '' : String(v)}, // may be broken anywhere
  count: {css: 'number', show: count},
  bytes: {css: 'number', show: bytes},
  time: {show: (v) => time(v)},
  span: {css: 'number', show: span},
  left: {css: 'number', show: (ms) => ms < 60000 ? (ms / 1000).toFixed(1) + ' s' : span(Math.floor(ms / 1000))},
  // What lies below it has an address of its own.
  path: {
    css: 'long',
    draw(cell, v) { cell.replaceChildren(el('a', {href: '#/ns' + encodeURI(v)}, v)); },
    show: (v) => v,
  },
  state: {
    draw(cell, v) {
      const [css, sign] = STATES[v] || ['', ''];
      cell.replaceChildren(el('span', {'class': css}, el('span', {'aria-hidden': 'true'}, sign + ' '), v));
    },
    show: (v) => v,
  },
  // [part, whole]: the bar says nothing that the words do not say.
  share: {
    draw(cell, [part, whole]) {
      if (!whole) { say(cell, part === undefined ? '' : bytes(part)); return; }
      cell.replaceChildren(
        el('meter', {'aria-hidden': 'true', min: 0, max: whole, value: part, high: whole * 0.9}),
        ' ' + KINDS.share.show([part, whole]));
    },
    show: ([part, whole]) => whole ? `${bytes(part)} of ${bytes(whole)}, ${share(part, whole)}` : bytes(part),
  },
};

// ---- views --------------------------------------------------------------

// A view is a row here: an address (#/id), a title, and either tables or a
// function that draws it. A table has rows of the overview and columns.
const COLUMNS = {
  controllers: [
    {id: 'name', title: 'Controller', kind: 'long'},
    {id: 'state', title: 'State', kind: 'state'},
    {id: 'term', title: 'Term', kind: 'count'},
    {id: 'uptime_s', title: 'Runs for', kind: 'span'},
    {id: 'version', title: 'Version'},
    {id: 'why', title: 'Why', kind: 'long'},
  ],
  nodes: [
    {id: 'name', title: 'Node'},
    {id: 'kind', title: 'Kind'},
    {id: 'state', title: 'State', kind: 'state'},
    {id: 'used', title: 'Used', kind: 'share', get: (n) => [n.used, n.size], order: (n) => n.used || 0},
    {id: 'ops_per_s', title: 'Operations/s', kind: 'count'},
    {id: 'regions', title: 'Regions', kind: 'count'},
    {id: 'connections', title: 'Connections', kind: 'count'},
    {id: 'silent', title: 'Last heard', kind: 'span', get: (n) => Math.floor(n.silent_ms / 1000)},
    {id: 'zone', title: 'Zone'},
    {id: 'address', title: 'Address', kind: 'long'},
  ],
  tenants: [
    {id: 'name', title: 'Tenant', kind: 'long'},
    {id: 'used', title: 'Used', kind: 'share', get: (t) => [t.used, t.quota], order: (t) => t.used},
    {id: 'quota', title: 'Quota', kind: 'bytes'},
    {id: 'allocated', title: 'Allocated', kind: 'bytes'},
    {id: 'regions', title: 'Regions', kind: 'count'},
    {id: 'connections', title: 'Connections', kind: 'count'},
  ],
  names: [
    {id: 'name', title: 'Name', kind: 'long'},
    {id: 'tenant', title: 'Tenant'},
    {id: 'node', title: 'Node'},
    {id: 'size', title: 'Size', kind: 'bytes'},
  ],
  ns: [
    {id: 'path', title: 'Name', kind: 'path'},
    {id: 'kind', title: 'Type'},
    {id: 'tenant', title: 'Tenant'},
    {id: 'state', title: 'State', kind: 'state'},
    {id: 'used', title: 'Used', kind: 'share', get: (r) => r.bytes === undefined ? undefined : [r.used, r.bytes], order: (r) => r.used || 0},
    {id: 'blocks', title: 'Blocks', kind: 'count'},
    {id: 'chain', title: 'Chain', kind: 'long'},
    {id: 'lease', title: 'Lease', kind: 'state'},
    {id: 'left_ms', title: 'Time left', kind: 'left'},
  ],
  moves: [
    {id: 'kind', title: 'What'},
    {id: 'name', title: 'Name', kind: 'long'},
    {id: 'tenant', title: 'Tenant'},
    {id: 'state', title: 'State', kind: 'state'},
    {id: 'done', title: 'Blocks', get: (m) => m.blocks === undefined ? undefined : `${m.done} of ${m.blocks}`, order: (m) => m.done || 0},
    {id: 'bytes', title: 'Left', kind: 'bytes'},
    {id: 'why', title: 'Why', kind: 'long'},
  ],
  events: [
    {id: 'at', title: 'Time', kind: 'time', order: (e) => e.id},
    {id: 'kind', title: 'About'},
    {id: 'name', title: 'Name', kind: 'long'},
    {id: 'text', title: 'What', kind: 'long'},
  ],
};

const VIEWS = [
  {id: 'overview', title: 'Overview', draw: drawOverview},
  {id: 'nodes', title: 'Nodes', sort: 'name', note: (o) => o.sees ? ''
    : 'Operations are those that come to a node as packets; programs of its own machine work on its memory by themselves.'},
  {id: 'tenants', title: 'Tenants', sort: 'name'},
  {id: 'names', title: 'Names', sort: 'name', note: (o) => o.names_left_off
    ? `${o.names_left_off} more are not shown; a node tells at most 400.` : 'As the nodes said last.'},
  {id: 'ns', title: 'Jobs', sort: 'path', below: (r) => r.path, note: (o) => o.ns_left_off
    ? `${o.ns_left_off} more names are not shown.` : 'Folders, tasks, files and queues; a lease that ran out takes its data along.'},
  {id: 'moves', title: 'Moves', sort: 'kind', note: (o) => 'Files and queues on their way to the vault and back, and nodes that are emptied.' +
    (o.vault ? ` Since this controller leads: ${o.vault.flushed} flushed, ${o.vault.loaded} loaded, ${o.vault.errors} errors.` : '')},
  {id: 'events', title: 'Events', sort: '-at', note: () => 'Since this controller leads.'},
  {id: 'controllers', title: 'Controllers', sort: 'name'},
];

// ---- tables -------------------------------------------------------------

const valueOf = (column, row) => column.get ? column.get(row) : row[column.id];
const kindOf = (column) => KINDS[column.kind || 'text'];
const keyOf = (row) => String(row.id || [row.path, row.name, row.tenant, row.node, row.kind].join('\n'));

function orderOf(column, row) {
  const v = column.order ? column.order(row) : valueOf(column, row);
  return v === undefined ? '' : v;
}

function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), undefined, {numeric: true});
}

function matches(columns, row, words) {
  const text = columns.map((c) => [c, valueOf(c, row)]).map(([c, v]) => v === undefined ? '' : kindOf(c).show(v)).join('\n').toLowerCase();
  return words.every((w) => text.includes(w));
}

function arrange(columns, rows, sort, filter) {
  const down = sort.startsWith('-');
  const by = columns.find((c) => c.id === sort.replace(/^-/, '')) || columns[0];
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const out = rows.filter((r) => matches(columns, r, words));
  out.sort((a, b) => compare(orderOf(by, a), orderOf(by, b)) || compare(keyOf(a), keyOf(b)));
  return down ? out.reverse() : out;
}

// A table whose rows stay the same elements from one second to the next, so
// that nothing loses the focus or a selection.
class Table {
  constructor(columns, caption, onSort) {
    this.columns = columns;
    this.rows = new Map();
    this.heads = columns.map((c) => el('th', {scope: 'col', role: 'columnheader', 'class': kindOf(c).css},
      onSort ? el('button', {type: 'button', onclick: () => onSort(c.id)}, c.title) : c.title));
    this.body = el('tbody', {role: 'rowgroup'});
    this.root = el('div', {'class': 'scroll'}, el('table', {'class': 'rows', role: 'table'},
      el('caption', {}, caption),
      el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, ...this.heads)), this.body));
  }

  row(data) {
    const key = keyOf(data);
    let tr = this.rows.get(key);
    if (!tr) {
      tr = el('tr', {role: 'row'}, ...this.columns.map((c) =>
        el('td', {role: 'cell', 'class': kindOf(c).css, 'data-label': c.title})));
      this.rows.set(key, tr);
    }
    this.columns.forEach((c, i) => {
      const v = valueOf(c, data), kind = kindOf(c), mark = JSON.stringify(v === undefined ? null : v);
      const cell = tr.children[i];
      if (cell.mark === mark) return;
      cell.mark = mark;
      if (kind.draw && v !== undefined) kind.draw(cell, v);
      else say(cell, v === undefined ? '' : kind.show(v));
    });
    return [key, tr];
  }

  show(rows, sort) {
    const shown = new Set();
    let at = this.body.firstChild;
    for (const data of rows) {
      const [key, tr] = this.row(data);
      shown.add(key);
      if (tr === at) at = at.nextSibling;
      else this.body.insertBefore(tr, at);
    }
    for (const [key, tr] of this.rows)
      if (!shown.has(key)) { tr.remove(); this.rows.delete(key); }
    this.heads.forEach((th, i) => {
      const is = this.columns[i].id === (sort || '').replace(/^-/, '');
      if (is) th.setAttribute('aria-sort', sort.startsWith('-') ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
      const button = th.querySelector('button');
      if (button) say(button, this.columns[i].title + (is ? (sort.startsWith('-') ? ' \u25bc' : ' \u25b2') : ''));
    });
  }
}

// ---- charts -------------------------------------------------------------

const SERIES = ['capacity', 'allocated', 'used']; // the last is drawn on top
const RANGES = [[300, '5 minutes'], [3600, '1 hour'], [86400, '1 day']];

function niceTop(n) {
  let top = 1024;
  while (top < n) top *= 2;
  return top;
}

function pathOf(values, x, y) {
  let d = '', pen = false;
  values.forEach((v, i) => {
    if (v === null) { pen = false; return; }
    d += (pen ? 'L' : 'M') + x(i).toFixed(1) + ' ' + y(v).toFixed(1);
    if (!pen) d += 'h0.1';
    pen = true;
  });
  return d;
}

// Lines over time; what is missing is a gap. `lines`: [{name, values}], oldest
// first, all with the same step, the last at the time `until`.
function chart(title, lines, step, until) {
  const W = 720, H = 220, L = 56, R = 12, T = 12, B = 24;
  const points = Math.max(...lines.map((l) => l.values.length), 2);
  const top = niceTop(Math.max(...lines.flatMap((l) => l.values.map((v) => v || 0)), 1));
  const x = (i) => L + (W - L - R) * i / (points - 1);
  const y = (v) => T + (H - T - B) * (1 - v / top);
  const root = svg('svg', {'class': 'chart', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': title});
  for (let i = 0; i <= 4; i++) {
    const v = top * i / 4;
    root.append(svg('line', {'class': 'grid', x1: L, x2: W - R, y1: y(v), y2: y(v)}),
      svg('text', {x: L - 6, y: y(v) + 4, 'text-anchor': 'end'}, bytes(v)));
  }
  [[0, 'start'], [Math.floor((points - 1) / 2), 'middle'], [points - 1, 'end']].forEach(([i, anchor]) =>
    root.append(svg('text', {x: x(i), y: H - 6, 'text-anchor': anchor}, time(until - (points - 1 - i) * step))));
  for (const line of lines)
    root.append(svg('path', {'class': line.name, d: pathOf(line.values, (i) => x(i + points - line.values.length), y)}));
  return root;
}

const past = {seconds: 300, at: 0, lines: null, step: 1, until: 0};

async function askHistory(now) {
  if (now - past.at < 1000 * past.step - 100 && past.lines) return;
  const seconds = past.seconds;
  const answers = await Promise.all(SERIES.map((s) => ask(`/v1/history/${s}/${seconds}`)));
  if (seconds !== past.seconds) return; // another range was chosen meanwhile
  past.at = now;
  past.step = answers[0].step_s;
  past.until = answers[0].until;
  past.lines = SERIES.map((name, i) => ({name, values: answers[i].values}));
}

const lastOf = (values) => values.length ? values[values.length - 1] : null;

function historyRows() {
  const n = past.lines[0].values.length, rows = [];
  for (let i = n - 1; i >= 0; i--)
    rows.push(el('tr', {}, el('th', {scope: 'row'}, time(past.until - (n - 1 - i) * past.step)),
      ...past.lines.map((l) => el('td', {'class': 'number'}, l.values[i] === null ? '\u2013' : bytes(l.values[i])))));
  return rows;
}

// ---- the overview -------------------------------------------------------

let panel = null; // what drawOverview made

function makeOverview(main) {
  const select = el('select', {id: 'range', onchange: (e) => {
    past.seconds = Number(e.target.value);
    past.lines = null;
    go({range: past.seconds === 300 ? '' : e.target.value});
  }}, ...RANGES.map(([s, title]) => el('option', {value: s, selected: s === past.seconds}, title)));
  panel = {
    tiles: el('ul', {'class': 'tiles', id: 'tiles'}), legend: el('ul', {'class': 'legend'}), chart: el('div', {id: 'chart'}),
    table: el('tbody'), drawn: 0,
    controllers: new Table(COLUMNS.controllers, 'Controllers'), events: new Table(COLUMNS.events, 'The last events'),
  };
  panel.details = el('details', {ontoggle: () => { panel.drawn = 0; render(); }}, el('summary', {}, 'The numbers of this chart'),
    el('div', {'class': 'history', tabindex: 0, role: 'region', 'aria-label': 'Numbers of the chart'},
      el('table', {id: 'history'}, el('caption', {}, 'Memory over time'),
        el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Time'), ...SERIES.map((s) => el('th', {scope: 'col', 'class': 'number'}, s)))), panel.table)));
  main.replaceChildren(el('h2', {}, 'Overview'), panel.tiles, el('h2', {}, 'Memory'),
    el('p', {'class': 'tools'}, el('label', {for: 'range'}, 'The last'), select),
    panel.chart, panel.legend, panel.details, el('h2', {}, 'Controllers'), panel.controllers.root, el('h2', {}, 'Lately'), panel.events.root);
}

function drawChart() {
  if (!past.lines || panel.drawn === past.at) return;
  panel.drawn = past.at;
  if (!past.until) {
    say(panel.chart, 'This controller does not lead, and has no numbers.');
    return;
  }
  const words = past.lines.map((l) => [l.name, lastOf(l.values)]).filter(([, v]) => v !== null);
  const range = RANGES.find(([s]) => s === past.seconds)[1];
  panel.chart.replaceChildren(chart(`Memory over the last ${range}; now ${words.map(([n, v]) => n + ' ' + bytes(v)).join(', ')}`,
    past.lines, past.step, past.until));
  panel.legend.replaceChildren(...words.map(([n, v]) => el('li', {'class': n}, `${n} ${bytes(v)}`)));
  if (panel.details.open) panel.table.replaceChildren(...historyRows());
}

function drawOverview(main, o, query, isNew) {
  if (isNew) {
    const wanted = RANGES.find(([s]) => s === Number(query.range));
    if (wanted) past.seconds = wanted[0];
    makeOverview(main);
  }
  const memory = o.nodes.filter((n) => n.kind === 'memory');
  const sum = (rows, key) => rows.reduce((n, r) => n + (r[key] || 0), 0);
  const up = o.nodes.filter((n) => n.state === 'up').length;
  const whole = o.sees ? sum(o.tenants, 'quota') : sum(memory.filter((n) => n.state !== 'down'), 'size');
  const used = o.sees ? sum(o.tenants, 'used') : sum(memory.filter((n) => n.state !== 'down'), 'used');
  const tiles = [['Nodes up', `${up} of ${o.nodes.length}`], ['Memory used', KINDS.share.show([used, whole])],
    ['Regions', count(sum(o.tenants, 'regions'))], ['Connections', count(sum(o.tenants, 'connections'))]];
  tiles.push(['Moves', count(o.moves.length) + (o.moves.some((m) => m.state === 'fails') ? ', some fail' : '')]);
  if (!o.sees) tiles.push(['Operations/s', count(sum(memory, 'ops_per_s'))], ['Tenants', count(o.tenants.length)]);
  tiles.forEach(([title, text], i) => {
    if (!panel.tiles.children[i]) panel.tiles.append(el('li', {}, title, el('b', {})));
    say(panel.tiles.children[i].lastChild, text);
  });
  panel.controllers.show(o.controllers);
  panel.events.show(o.events.slice(0, 5));
  drawChart();
}

// ---- views of one table -------------------------------------------------

let list = null; // what drawList made

const isBelow = (path, below) => !below || path === below || path.startsWith(below + '/');

function drawList(main, o, view, query, below, isNew) {
  if (isNew) {
    const filter = el('input', {id: 'filter', type: 'search', value: query.filter || '', autocomplete: 'off',
      oninput: (e) => go({filter: e.target.value})});
    list = {
      table: new Table(COLUMNS[view.id], view.title, (id) => {
        const now = route().query.sort || view.sort;
        go({sort: now === id ? '-' + id : id});
      }),
      count: el('span', {id: 'count', 'class': 'note'}), note: el('p', {'class': 'note'}), filter,
    };
    main.replaceChildren(el('h2', {}, view.title), el('div', {'class': 'tools', role: 'search'},
      el('label', {for: 'filter'}, 'Filter'), filter, list.count), list.table.root, list.note);
  }
  if (document.activeElement !== list.filter && list.filter.value !== (query.filter || ''))
    list.filter.value = query.filter || '';
  const rows = o[view.id].filter((r) => !view.below || isBelow(view.below(r), below)), sort = query.sort || view.sort;
  const shown = arrange(COLUMNS[view.id], rows, sort, query.filter || '');
  list.table.show(shown, sort);
  say(list.count, shown.length === rows.length ? `${rows.length}` : `${shown.length} of ${rows.length}`);
  say(list.note, view.note ? view.note(o) : '');
}

// ---- addresses ----------------------------------------------------------

// #/nodes?sort=-used&filter=m1, #/ns/job1
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [id, ...steps] = path.split('/').filter(Boolean);
  return {view: VIEWS.find((v) => v.id === id) || VIEWS[0], below: steps.map((s) => '/' + s).join(''),
    query: Object.fromEntries(new URLSearchParams(query || ''))};
}

// The same view with other words behind it; going back does not go through
// each letter of a filter.
function go(change) {
  const {view, query, below} = route();
  const next = new URLSearchParams();
  for (const [key, value] of Object.entries(Object.assign(query, change)))
    if (value) next.set(key, value);
  history.replaceState(null, '', `#/${view.id}${below}${next.toString() ? '?' + next : ''}`);
  render();
}

// ---- what is known ------------------------------------------------------

const known = {overview: null, seen: 0, lost: 0, why: '', token: sessionStorage.getItem('token'), drawn: null};

class Refused extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

async function ask(path, options) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), (options && options.ms) || ANSWER_MS);
  try {
    const token = (options && options.token) || known.token;
    const answer = await fetch(path, {method: (options && options.method) || 'GET', cache: 'no-store', credentials: 'omit',
      headers: {Authorization: 'Bearer ' + token}, signal: stop.signal});
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, (body.error && body.error.message) || `status ${answer.status}`);
    return body;
  } finally {
    clearTimeout(timer);
  }
}

function render() {
  const {view, query, below} = route(), o = known.overview, isIn = Boolean(known.token);
  $('login').hidden = isIn;
  $('view').hidden = !isIn || !o;
  $('views').parentNode.hidden = !isIn;
  document.body.classList.toggle('lost', Boolean(known.lost));
  for (const a of $('views').querySelectorAll('a')) {
    if (a.dataset.view === view.id) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  say($('scope'), o && isIn && o.sees ? '\u2013 tenant ' + o.sees : '');
  say($('state'), !isIn ? '' : known.lost
    ? `The controller has not answered since ${time(known.lost / 1000)}${known.why}. This is the last picture.`
    : o ? 'Live.' : 'Asking \u2026');
  say($('clock'), o && isIn ? `As of ${time(o.at)}.` : '');
  if (!o || !isIn) return;
  const isNew = known.drawn !== view.id;
  if (!known.drawn) performance.mark('picture');
  known.drawn = view.id;
  if (isNew) document.title = `${view.title} \u2013 Aquifer`;
  if (view.draw) view.draw($('view'), o, query, isNew);
  else drawList($('view'), o, view, query, below, isNew);
}

function logOut(words) {
  known.token = null;
  known.lost = known.seen = 0;
  known.overview = known.drawn = past.lines = null;
  sessionStorage.removeItem('token');
  say($('login-why'), words);
  render();
}

async function refresh() {
  const token = known.token;
  if (!token) return;
  try {
    const o = await ask('/v1/overview');
    if (route().view.id === 'overview') await askHistory(Date.now());
    if (token !== known.token) return;
    known.overview = o;
    known.seen = Date.now();
    known.lost = 0;
  } catch (e) {
    if (token !== known.token) return;
    if (e instanceof Refused && (e.status === 401 || e.status === 403)) {
      logOut('The right to look has ended: ' + e.message + '.');
      return;
    }
    known.lost = known.lost || known.seen || Date.now();
    known.why = e instanceof Refused ? ` (${e.message})` : '';
  }
  render();
}

async function loop() {
  await refresh();
  setTimeout(loop, REFRESH_MS);
}

async function logIn(code) {
  try {
    const answer = await ask('/v1/look/token', {method: 'POST', token: code, ms: LOGIN_MS});
    known.token = answer.token;
    sessionStorage.setItem('token', answer.token);
    say($('login-why'), '');
    $('code').value = '';
    await refresh();
    // Unless somebody went on meanwhile.
    if (document.activeElement === document.body) $('view').focus({preventScroll: true});
  } catch (e) {
    logOut(e instanceof Refused ? e.message + '.' : 'The controller does not answer.');
  }
}

// The code leaves the address at once: it is not for the list of visited pages.
function takeCode() {
  const code = route().query.code;
  if (!code) return false;
  go({code: ''});
  logIn(code);
  return true;
}

// ---- the beginning ------------------------------------------------------

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  sessionStorage.setItem('theme', name);
  $('theme').value = name;
}

$('views').append(...VIEWS.map((v) => el('li', {}, el('a', {href: '#/' + v.id, 'data-view': v.id}, v.title))));
$('skip').addEventListener('click', (e) => { e.preventDefault(); $(known.token ? 'view' : 'code').focus(); });
$('theme').addEventListener('change', (e) => setTheme(e.target.value));
$('login-form').addEventListener('submit', (e) => {
  e.preventDefault();
  // People paste the whole address as well.
  const text = $('code').value.trim();
  if (text) logIn(text.replace(/^.*code=/, ''));
});
window.addEventListener('hashchange', () => { if (!takeCode()) { render(); refresh(); } });
setTheme(sessionStorage.getItem('theme') || '');
if (!takeCode()) render();
loop();
