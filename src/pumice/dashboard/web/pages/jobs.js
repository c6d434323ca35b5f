// What runs, what waits, and why?
import { html, useMemo } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { news, useDocument } from "../data.js";
import { number, plural } from "../format.js";
import { Suspended } from "../actions.js";
import { Age, Choice, Empty, Gang, jobPage, JobLink, LongTable, Needs, query, QueueName, setQuery, source, State, to, useSort, useSorted } from "../parts.js";

const STATES = [["", "any"], ["waiting", "waiting"], ["running", "running"], ["finished", "finished"], ["failed", "failed"]];

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

function Table({ data }) {
  const params = query();
  const filter = { q: params.get("q") || "", queue: params.get("queue") || "", state: params.get("state") || "" };
  const [sort, onSort] = useSort("created", true);
  const texts = useMemo(() => data.job.map((job, i) => `${job} ${data.queue[i]} ${data.code[i]} ${data.why[i]}`.toLowerCase()), [data]);
  const queues = useMemo(() => [...new Set(data.queue)].sort(), [data]);
  const rows = useMemo(() => matching(data, texts, filter), [data, texts, filter.q, filter.queue, filter.state]);
  const keys = { job: data.job, queue: data.queue, state: data.state, priority: data.priority, created: data.created, gang: data.bound };
  const value = useMemo(() => (row) => (keys[sort.key] || data.created)[row], [data, sort.key]);
  const sorted = useSorted(rows, value, sort.down);
  const columns = [
    { key: "job", title: "job", sort: true, width: "minmax(150px, 1.3fr)", card: "lead-cell", cell: (i) => html`<${JobLink} job=${data.job[i]} />` },
    { key: "state", title: "state", sort: true, width: "96px", cell: (i) => html`<${State} state=${data.state[i]} />` },
    { key: "gang", title: "gang: ready / min / all", sort: true, width: "230px", cell: (i) => html`<${Gang} bound=${data.bound[i]} promised=${data.promised[i]} done=${data.done[i]} pods=${data.pods[i]} min=${data.min[i]} />` },
    { key: "queue", title: "queue", sort: true, width: "minmax(90px, .6fr)", cell: (i) => html`<${QueueName} queue=${data.queue[i]} />` },
    { key: "priority", title: "priority", sort: true, width: "76px", align: "right", cell: (i) => number(data.priority[i]) },
    { key: "created", title: "age", sort: true, width: "84px", align: "right", cell: (i) => html`<${Age} since=${data.created[i]} />` },
    { key: "why", title: "why it waits", width: "minmax(160px, 2fr)", card: "wide", cell: (i) => data.code[i] || data.why[i] ? html`<span title=${data.why[i]}>${data.code[i] && html`<code>${data.code[i]}</code> `}${data.why[i]}</span>` : "" },
  ];
  return html`<form class="tools" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label class="choice grow"><span>Filter</span><input type="search" name="q" value=${filter.q} placeholder="name, cause or words of the reason" onInput=${(e) => setQuery({ q: e.target.value })} /></label>
      <${Choice} label="State" value=${filter.state} options=${STATES} onChange=${(state) => setQuery({ state })} />
      <${Choice} label="Queue" value=${filter.queue} options=${[["", "any"], ...queues.map((name) => [name, name])]} onChange=${(queue) => setQuery({ queue })} />
      <span class="soft" role="status">${rows.length === data.job.length ? plural(rows.length, "job") : `${number(rows.length)} of ${plural(data.job.length, "job")}`}</span></form>
    ${rows.length ? html`<${LongTable} label="Jobs" columns=${columns} rows=${sorted} sort=${sort} onSort=${onSort} href=${(i) => to(jobPage(data.job[i]))} />`
    : html`<${Empty} title="No job matches"><p><button type="button" onClick=${() => setQuery({ q: "", queue: "", state: "" })}>Show all ${plural(data.job.length, "job")}</button></p><//>`}`;
}

export function Jobs() {
  const document = useDocument(source("/api/jobs"));
  return html`<h1 tabindex="-1">Jobs</h1><${Needs} of=${document} what="Looking at the jobs">${(data) => (data.job.length ? html`<${Table} data=${data} />`
    : html`<${Empty} title="No job yet"><p>${news.session?.hint ? html`Submit one: <code>${news.session.hint}</code>` : "The input has no job."}</p><//>`)}<//><${Suspended} />`;
}
