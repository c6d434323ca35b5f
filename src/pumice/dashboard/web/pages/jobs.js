// What runs, what waits, and why?
import { html, useMemo } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { clusterNow, useDocument } from "../data.js";
import { hour, moment, number, plural } from "../format.js";
import { Suspended } from "../actions.js";
import {
  Age,
  Choice,
  Empty,
  Gang,
  jobPage,
  JobLink,
  LongTable,
  Needs,
  NoJob,
  query,
  queueColour,
  QueueName,
  setQuery,
  source,
  State,
  to,
  useNarrow,
  useSort,
  useSorted,
  When,
} from "../parts.js";

const STATES = [
  ["", "any"],
  ["waiting", "waiting"],
  ["running", "running"],
  ["finished", "finished"],
  ["failed", "failed"],
];

/** Rows that match all filters; texts are lowered once for each document. */
export function matching(data, texts, { q, queue, state }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [];
  for (let i = 0; i < data.job.length; i += 1) {
    if (state && data.state[i] !== state) continue;
    if (queue && data.queue[i] !== queue) continue;
    if (words.length && !words.every((word) => texts[i].includes(word))) continue;
    rows.push(i);
  }
  return rows;
}

const RANKS = { waiting: 0, running: 1, failed: 2, finished: 3 };
const LATER = 1e11; // seconds: beyond any time
/** The place in the list: what waits first, by its expected start; then what is newest. */
function turn(data, i) {
  const rank = 4 * LATER * (RANKS[data.state[i]] ?? 4);
  if (data.state[i] !== "waiting") return rank + 2 * LATER - data.created[i];
  return data.start[i] ?? (data.startText[i] ? 2 : 1) * LATER + data.created[i];
}
/** When a waiting job is expected to start. */
function Start({ data, i }) {
  const [at, text] = [data.start[i], data.startText[i]];
  if (data.state[i] !== "waiting") return null;
  if (at !== null)
    return html`
      <span title=${text}>
        ${
          at <= clusterNow()
            ? "now"
            : html`
                ${data.reserved[i] ? "" : "≈ "}
                <${When} at=${at} />
              `
        }
      </span>
    `;
  return html`
    <span class="soft" title=${text || "The start is being computed."}>
      ${text ? "not foreseen" : "…"}
    </span>
  `;
}

/** Round steps of an axis, at most so many of them. */
const STEPS = [60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800];
function ticks(span, most) {
  const step = STEPS.find((each) => span / each <= most) ?? span / most;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step);
}
/** What runs until when, and who is promised a start: rows of jobs, time from now on. */
function Ahead({ lines }) {
  const narrow = useNarrow();
  const now = clusterNow();
  const last = Math.max(...lines.map((line) => line.until ?? line.from ?? now));
  const span = Math.max(60, (last - now) * 1.05);
  const at = (t) => `${(100 * Math.min(1, Math.max(0, (t - now) / span))).toFixed(2)}%`;
  const words = ({ from, until, nodes }) => {
    const end = until === null ? "with no known end" : `until ${moment(until, now)}`;
    if (from === null) return `runs ${end}`;
    const where = nodes.length ? ` on ${plural(nodes.length, "node")}` : "";
    return `reserved from ${moment(from, now)}${where}, ${end}`;
  };
  return html`
    <section class="ahead">
      <h2>
        Ahead
        <span class="soft">promised starts, and the ends before them</span>
      </h2>
      <ul aria-label="Jobs from now on">
        ${lines.map(
          (line) => html`
            <li key=${line.job}>
              <${JobLink} job=${line.job} />
              <span class="lane" title=${words(line)}>
                <i
                  class=${line.from === null ? "bar" : "bar promised"}
                  style=${{
                    "--hue": `var(--c${queueColour(line.queue)})`,
                    left: at(line.from ?? now),
                    right: `calc(100% - ${at(line.until ?? now + span)})`,
                  }}></i>
                <span class="skipword">${words(line)}</span>
              </span>
            </li>
          `,
        )}
        <li class="axis" aria-hidden="true">
          <span></span>
          <span class="lane">
            ${ticks(span, narrow ? 3 : 8).map(
              (t) => html`<time style=${{ left: at(now + t) }}>${t ? hour(now + t) : "now"}</time>`,
            )}
          </span>
        </li>
      </ul>
    </section>
  `;
}

function Table({ data }) {
  const params = query();
  const filter = {
    q: params.get("q") || "",
    queue: params.get("queue") || "",
    state: params.get("state") || "",
  };
  const [sort, onSort] = useSort("start");
  const texts = useMemo(
    () =>
      data.job.map((job, i) =>
        `${job} ${data.queue[i]} ${data.code[i]} ${data.why[i]}`.toLowerCase(),
      ),
    [data],
  );
  const queues = useMemo(() => [...new Set(data.queue)].sort(), [data]);
  const rows = useMemo(
    () => matching(data, texts, filter),
    [data, texts, filter.q, filter.queue, filter.state],
  );
  const turns = useMemo(() => data.job.map((_, i) => turn(data, i)), [data]);
  const keys = {
    job: data.job,
    queue: data.queue,
    state: data.state,
    priority: data.priority,
    created: data.created,
    gang: data.bound,
    start: turns,
  };
  const value = useMemo(() => (row) => (keys[sort.key] || turns)[row], [data, sort.key]);
  const sorted = useSorted(rows, value, sort.down);
  const columns = [
    {
      key: "job",
      title: "job",
      sort: true,
      width: "minmax(140px, 1.6fr)",
      card: "lead-cell",
      whole: true,
      cell: (i) => html`<${JobLink} job=${data.job[i]} />`,
    },
    {
      key: "state",
      title: "state",
      sort: true,
      width: "96px",
      cell: (i) => html`<${State} state=${data.state[i]} />`,
    },
    {
      key: "gang",
      title: "gang: ready / min / all",
      sort: true,
      width: "220px",
      cell: (i) => html`
        <${Gang}
          bound=${data.bound[i]}
          promised=${data.promised[i]}
          done=${data.done[i]}
          pods=${data.pods[i]}
          min=${data.min[i]} />
      `,
    },
    {
      key: "queue",
      title: "queue",
      sort: true,
      width: "minmax(90px, .8fr)",
      whole: true,
      cell: (i) => html`<${QueueName} queue=${data.queue[i]} />`,
    },
    {
      key: "priority",
      title: "priority",
      sort: true,
      width: "60px",
      align: "right",
      cell: (i) => number(data.priority[i]),
    },
    {
      key: "created",
      title: "age",
      sort: true,
      width: "60px",
      align: "right",
      cell: (i) => html`<${Age} since=${data.created[i]} />`,
    },
    {
      key: "start",
      title: "start",
      sort: true,
      width: "96px",
      card: "wide labelled",
      cell: (i) => html`<${Start} data=${data} i=${i} />`,
    },
    {
      key: "why",
      title: "why it waits",
      width: "minmax(240px, 3fr)",
      card: "wide",
      whole: true,
      cell: (i) =>
        data.code[i] || data.why[i]
          ? html`
              <span>
                ${
                  data.code[i] &&
                  html`
                    <code>${data.code[i]}</code>
                    ${" "}
                  `
                }${data.why[i]}
              </span>
            `
          : "",
    },
  ];
  return html`
    <form class="tools" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label class="choice grow">
        <span>Filter</span>
        <input
          type="search"
          name="q"
          value=${filter.q}
          placeholder="name, cause or words of the reason"
          onInput=${(e) => setQuery({ q: e.target.value })} />
      </label>
      <${Choice}
        label="State"
        value=${filter.state}
        options=${STATES}
        onChange=${(state) => setQuery({ state })} />
      <${Choice}
        label="Queue"
        value=${filter.queue}
        options=${[["", "any"], ...queues.map((name) => [name, name])]}
        onChange=${(queue) => setQuery({ queue })} />
      <span class="soft" role="status">
        ${
          rows.length === data.job.length
            ? plural(rows.length, "job")
            : `${number(rows.length)} of ${plural(data.job.length, "job")}`
        }
      </span>
    </form>
    ${
      rows.length
        ? html`
            <${LongTable}
              label="Jobs"
              columns=${columns}
              rows=${sorted}
              sort=${sort}
              onSort=${onSort}
              href=${(i) => to(jobPage(data.job[i]))} />
          `
        : html`
            <${Empty} title="No job matches">
              <p>
                <button type="button" onClick=${() => setQuery({ q: "", queue: "", state: "" })}>
                  Show all ${plural(data.job.length, "job")}
                </button>
              </p>
            <//>
          `
    }
  `;
}

export function Jobs() {
  const document = useDocument(source("/api/jobs"));
  return html`
    <h1 tabindex="-1">Jobs</h1>
    <${Needs} of=${document} what="Looking at the jobs">
      ${(data) =>
        data.job.length
          ? html`
              ${data.ahead.length > 0 && html`<${Ahead} lines=${data.ahead} />`}
              <${Table} data=${data} />
            `
          : html`<${NoJob} />`}
    <//>
    <${Suspended} />
  `;
}
