// Pieces that several pages are made of.
import {
  html,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "./vendor/htm-3.1.1/htm-preact.min.js";
import { clusterNow, news, useTick } from "./data.js";
import {
  coarse,
  moment,
  number,
  percent,
  plural,
  resourceName,
  sentence,
  unitFor,
  utc,
} from "./format.js";

// Addresses: the state of a page is in its address, so that a link can be shared

export const query = () => new URLSearchParams(location.search);
const moved = new Set();
export const onMove = (listener) => {
  moved.add(listener);
  return () => moved.delete(listener);
};
export function go(href, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href);
  for (const each of moved) each();
  if (!replace) {
    scrollTo(0, 0);
    document.querySelector("main h1")?.focus();
  }
}
export function setQuery(changes) {
  const params = query();
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) params.delete(key);
    else params.set(key, value);
  }
  const text = params.toString();
  go(`${location.pathname}${text ? `?${text}` : ""}${location.hash}`, { replace: true });
}
/** The address of a page; who looks at an earlier moment stays there. */
export function to(path, params = {}) {
  const at = query().get("at");
  const all = new URLSearchParams({ ...params, ...(at ? { at } : {}) }).toString();
  return `${path}${all ? `?${all}` : ""}`;
}
/** The address of a document about the moment that is looked at. */
export function source(path, params = {}) {
  return to(path, params);
}
const part = encodeURIComponent;
export const jobPage = (job) => `/jobs/${job.split("/").map(part).join("/")}`;

export const Link = ({ href, children, ...rest }) => html`
  <a href=${href} ...${rest}>${children}</a>
`;
export const JobLink = ({ job }) =>
  job
    ? html`<${Link} href=${to(jobPage(job))} class="name">${job}<//>`
    : html`<span class="soft">no job</span>`;
export const NodeLink = ({ node }) =>
  node
    ? html`
        <${Link} href=${to(`/nodes/${part(node)}`)} class="name">${node}<//>
      `
    : "";

// Queues keep their colour on every page

const queueOrder = [];
export function learnQueues(names) {
  for (const name of names) if (!queueOrder.includes(name)) queueOrder.push(name);
}
export function queueColour(name) {
  if (!queueOrder.includes(name)) queueOrder.push(name);
  return queueOrder.indexOf(name) % 10;
}
export const QueueName = ({ queue, plain }) => {
  const swatch = html`
    <i class=${`swatch q${queueColour(queue)}`} aria-hidden="true"></i>
  `;
  const name = html`<span class="queuename">${queue}</span>`;
  return plain
    ? html`<span class="queue">${swatch}${name}</span>`
    : html`
        <${Link} class="queue" href=${to(`/queues/${part(queue)}`)} title=${queue}>
          ${swatch}${name}
        <//>
      `;
};

// States, always with a word

const MARKS = {
  running: "▶",
  starting: "▷",
  waiting: "…",
  promised: "◔",
  leaving: "✕",
  finished: "✓",
  failed: "!",
  unknown: "?",
};
export const State = ({ state }) => html`
  <span class=${`state ${state}`}>
    <i aria-hidden="true">${MARKS[state] || ""}</i>
    ${state}
  </span>
`;

export function Age({ since }) {
  useTick();
  return html`
    <time title=${`since ${utc(since)}`}>${coarse(clusterNow() - since)}</time>
  `;
}
export function When({ at }) {
  return html`<time title=${utc(at)}>${moment(at, clusterNow())}</time>`;
}

/** A gang as blocks: with a node, promised one, waiting; very large ones as a bar. */
export function Gang({ bound, promised = 0, done = 0, pods, min, inWords }) {
  const size = Math.max(pods, min); // pods that are not made yet wait, too
  const waits = Math.max(0, size - bound - promised - done);
  const placed = `${number(bound + done)} of ${plural(pods, "pod")} with a node`;
  const later = promised ? `, ${number(promised)} promised one` : "";
  const words = `${pods ? placed : "no pods created"}${later}; minAvailable ${number(min)}`;
  const text = inWords
    ? words
    : html`
        <span class="figure">
          ${number(bound + done)}
          <span class="soft"> / ${number(min)} / ${number(pods)}</span>
        </span>
      `;
  const parts = [
    ["done", done],
    ["bound", bound],
    ["promised", promised],
    ["waits", waits],
  ];
  const blocks =
    size <= 8
      ? parts.flatMap(([name, n]) =>
          Array.from(
            { length: n },
            () => html`<i class=${name}></i>`,
          ),
        )
      : parts
          .filter(([, n]) => n)
          .map(
            ([name, n]) => html`
              <i class=${name} style=${{ flexGrow: n }}></i>
            `,
          );
  return html`
    <span class="gang" title=${words}>
      <span class=${size <= 8 ? "blocks" : "blocks bar"} role="img" aria-label=${words}>
        ${blocks}
      </span>
      ${text}
    </span>
  `;
}

/** How much of a resource is in use. */
export function Use({ resource, used, total, large }) {
  const ratio = total ? used / total : 0;
  const unit = unitFor(resource, total);
  return html`
    <div class=${large ? "use large" : "use"}>
      <div class="line">
        <span>${resourceName(resource)}</span>
        <b>${percent(ratio)}</b>
      </div>
      <div class="track"><i style=${{ width: `${Math.min(100, 100 * ratio)}%` }}></i></div>
      <div class="soft figure">
        ${number(used / unit.size)} of ${number(total / unit.size)} ${unit.name}
      </div>
    </div>
  `;
}

// States of a page, designed

export const Loading = ({ what }) => html`
  <p class="loading" role="status">
    <i></i>
    ${what || "Loading"} …
  </p>
`;
export const Empty = ({ title, children }) => html`
  <div class="empty">
    <h2>${title}</h2>
    ${children}
  </div>
`;
/** Where to go from a page that has nothing to show. */
export const Elsewhere = () => html`
  <p>
    Go to
    the ${[
      ["/", "overview"],
      ["/jobs", "jobs"],
      ["/queues", "queues"],
      ["/nodes", "nodes"],
      ["/cycles", "cycles"],
    ].map(
      ([href, name], i, all) => html`
        ${i ? (i === all.length - 1 ? " or " : ", ") : ""}
        <${Link} href=${to(href)}>${name}<//>
      `,
    )},
    or press${" "}
    <kbd>/</kbd>
    ${" "}to find a job, node or queue by a part of its name.
  </p>
`;
export function Problem({ error, again }) {
  const missing = error.status === 404;
  return html`
    <div class="problem" role="alert">
      <h2>
        ${
          missing
            ? "Not there"
            : error.status === 503
              ? "Not ready yet"
              : error.status === 504
                ? "This takes too long"
                : "This did not work"
        }
      </h2>
      <p>${sentence(error.message)}</p>
      ${missing && html`<${Elsewhere} />`}
      ${again && html`<button type="button" onClick=${again}>Try again</button>`}
    </div>
  `;
}
/** A page that needs a document: what it shows before, and when there is trouble. */
export function Needs({ of, what, children }) {
  if (of.data)
    return html`
      ${of.error && html`<${Problem} error=${of.error} />`}${children(of.data)}
    `;
  return of.error
    ? html`<${Problem} error=${of.error} />`
    : html`<${Loading} what=${what} />`;
}
export const Note = ({ children }) => html`<p class="note">${children}</p>`;

export function Choice({ label, value, options, onChange }) {
  return html`
    <label class="choice">
      <span>${label}</span>
      <select value=${value} onChange=${(e) => onChange(e.target.value)}>
        ${options.map(
          ([key, words]) => html`<option value=${key} selected=${key === value}>${words}</option>`,
        )}
      </select>
    </label>
  `;
}
export function Tabs({ label, value, options, onChange }) {
  return html`
    <div class="tabs" role="group" aria-label=${label}>
      ${options.map(
        ([key, words, off]) => html`
          <button
            type="button"
            aria-pressed=${key === value ? "true" : "false"}
            disabled=${Boolean(off)}
            title=${off || ""}
            onClick=${() => onChange(key)}>
            ${words}
          </button>
        `,
      )}
    </div>
  `;
}

// A table of any length: only the rows in view exist

const narrow = matchMedia("(max-width: 760px)");
export function useNarrow() {
  const [is, set] = useState(narrow.matches);
  useEffect(() => {
    const heed = () => set(narrow.matches);
    narrow.addEventListener("change", heed);
    return () => narrow.removeEventListener("change", heed);
  }, []);
  return is;
}
/** Where rows begin, and the end: as high as each was when it was seen, else as expected. */
function offsets(rows, heights, each) {
  const found = new Float64Array(rows.length + 1);
  rows.forEach((row, i) => {
    found[i + 1] = found[i] + (heights.get(row) ?? each);
  });
  return found;
}
/** The row at a height: the last one that begins at or above it. */
function rowAt(tops, y) {
  let [low, high] = [0, tops.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (tops[middle] <= y) low = middle;
    else high = middle;
  }
  return low;
}
/** A table that is shown whole: ``columns`` are [title, cell(row, i), kind, short]. The kind is the
 *  class of a cell, or of(row); "head" is the heading of its row. Without titles: no head. */
export function ShortTable({ label, columns, rows, kind = "", keyOf, rowKind }) {
  const kindOf = (of, row) => (typeof of === "function" ? of(row) : of);
  const head = ([title, , of = ""]) => html`
    <th class=${kindOf(of).startsWith("right") ? "right" : ""}>${title}</th>
  `;
  const cells =
    (row, i) =>
    ([title, cell, of = "", short = title]) =>
      of === "head"
        ? html`<th scope="row">${cell(row, i)}</th>`
        : html`<td class=${kindOf(of, row)} data-title=${short}>${cell(row, i)}</td>`;
  const table = html`
    <table class=${`plain ${kind}`}>
      ${columns.some(([title]) => title) && html`<thead><tr>${columns.map(head)}</tr></thead>`}
      <tbody>
        ${rows.map(
          (row, i) => html`
            <tr key=${keyOf ? keyOf(row) : i} class=${rowKind ? rowKind(row) : ""}>
              ${columns.map(cells(row, i))}
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
  if (!label) return table;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>${table}</div>`;
}
/** What a page shows as long as there is no job. */
export const NoJob = () => html`
  <${Empty} title="No job yet">
    <p>
      ${
        news.session?.hint
          ? html`
              Submit one:${" "}
              <code>${news.session.hint}</code>
            `
          : "The input has no job."
      }
    </p>
  <//>
`;
/** ``columns`` are {key, title, sort, cell(row), align, width, card, whole}; rows are numbers.
 *  A row is as high as its cells need: ``whole`` ones are never cut. */
export function LongTable({
  label,
  columns,
  rows,
  sort,
  onSort,
  href,
  rowHeight = 36,
  cardHeight = 104,
}) {
  const isNarrow = useNarrow();
  const host = useRef(null);
  const [view, setView] = useState({ top: 0, height: 700, width: 0 });
  const heights = useRef({ of: new Map(), width: 0 });
  const [measured, again] = useReducer((n) => n + 1, 0);
  useLayoutEffect(() => {
    const look = () =>
      host.current &&
      setView({
        top: host.current.scrollTop,
        height: host.current.clientHeight,
        width: host.current.clientWidth,
      });
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(host.current);
    return () => watcher.disconnect();
  }, []);
  if (heights.current.width !== view.width) heights.current = { of: new Map(), width: view.width };
  const tops = useMemo(
    () => offsets(rows, heights.current.of, isNarrow ? cardHeight : rowHeight),
    [rows, isNarrow, measured, view.width],
  );
  useLayoutEffect(() => {
    // rows that turned out higher or lower than expected move the others
    let differs = false;
    for (const row of host.current.querySelectorAll(".whole > .row")) {
      const [key, high] = [Number(row.dataset.row), row.offsetHeight];
      if (high && heights.current.of.get(key) !== high) {
        heights.current.of.set(key, high);
        differs = true;
      }
    }
    if (differs) again();
  });
  const first = Math.max(0, rowAt(tops, view.top) - 6);
  const last = Math.min(rows.length, rowAt(tops, view.top + view.height) + 7);
  const grid = { gridTemplateColumns: columns.map((column) => column.width || "1fr").join(" ") };
  const shown = [];
  for (let i = first; i < last; i += 1) shown.push(i);
  const head = columns.map(
    (column) => html`
      <div
        role="columnheader"
        class=${column.align || ""}
        aria-sort=${
          !sort || sort.key !== column.key ? undefined : sort.down ? "descending" : "ascending"
        }>
        ${
          column.sort
            ? html`
                <button type="button" onClick=${() => onSort(column.key)}>
                  ${column.title}${sort && sort.key === column.key ? (sort.down ? " ↓" : " ↑") : ""}
                </button>
              `
            : column.title
        }
      </div>
    `,
  );
  return html`
    <div class="long" role="table" aria-label=${label} aria-rowcount=${rows.length + 1}>
      <div role="rowgroup" class="head">
        <div role="row" class="row" style=${grid}>${head}</div>
      </div>
      <div
        role="rowgroup"
        class="body"
        tabindex="0"
        aria-label=${`${label}: ${number(rows.length)} rows`}
        ref=${host}
        onScroll=${(e) =>
          setView({
            ...view,
            top: e.currentTarget.scrollTop,
            height: e.currentTarget.clientHeight,
          })}>
        <div class="whole" role="presentation" style=${{ height: `${tops[rows.length]}px` }}>
          ${shown.map(
            (i) => html`
              <div
                role="row"
                class="row"
                key=${rows[i]}
                data-row=${rows[i]}
                aria-rowindex=${i + 2}
                style=${{
                  ...(isNarrow ? {} : grid),
                  top: `${tops[i]}px`,
                  minHeight: `${isNarrow ? 0 : rowHeight}px`,
                }}
                onClick=${(e) => {
                  if (href && !e.target.closest("a,button")) go(href(rows[i]));
                }}>
                ${columns.map(
                  ({ align = "", card = "", whole, title, cell }) => html`
                    <div
                      role="cell"
                      class=${`${align} ${card} ${whole ? "uncut" : ""}`}
                      data-title=${title}>
                      ${cell(rows[i])}
                    </div>
                  `,
                )}
              </div>
            `,
          )}
        </div>
      </div>
    </div>
  `;
}
/** Rows of a plain table in an order that clicks choose; kept in the address. */
export function useSort(key, down = false) {
  const params = query();
  const text = params.get("sort") || (down ? `-${key}` : key);
  const sort = { key: text.replace(/^-/, ""), down: text.startsWith("-") };
  const onSort = (name) => setQuery({ sort: sort.key === name && !sort.down ? `-${name}` : name });
  return [sort, onSort];
}
export function useSorted(rows, value, down) {
  return useMemo(() => {
    const keys = new Map(rows.map((row) => [row, value(row)]));
    const way = down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      return x < y ? -way : x > y ? way : a - b;
    });
  }, [rows, value, down]);
}

// The tip under the pointer

export function showTip(words, x, y) {
  const tip = document.getElementById("tip");
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const mine = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - mine.width - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - mine.height - 8))}px`;
}
/** The colour behind a custom property: a canvas needs it. */
const probe = document.body.appendChild(
  Object.assign(document.createElement("i"), { hidden: true }),
);
export function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
