// Why, when, and what would help?
import { html, useState } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { answer, clusterNow, news, useAnswer, useDocument, useNews, useTick } from "../data.js";
import { amounts, clock, duration, number, ordinal, plural, sentence, utc } from "../format.js";
import { Actions } from "../actions.js";
import {
  Age,
  Empty,
  Gang,
  JobLink,
  Link,
  Loading,
  LongTable,
  ShortTable,
  Needs,
  NodeLink,
  Problem,
  QueueName,
  source,
  State,
  to,
  When,
} from "../parts.js";
import { Life } from "./life.js";
import { Outcome } from "./outcome.js";

const NUMBER = (value) => (typeof value === "number" ? number(value, 3) : String(value));
/** The numbers that were compared; amounts of bytes as such. */
function Numbers({ numbers }) {
  const flat = Object.entries(numbers || {}).filter(([, value]) => typeof value !== "object");
  if (!flat.length) return null;
  const bytes = /memory|storage|hugepages/.test(String(numbers.resource || ""));
  const show = (key, value) =>
    bytes &&
    typeof value === "number" &&
    /used|request|limit|free|short|total|asked|allowed|room|idle/.test(key)
      ? `${number(value / 2 ** 30)} GiB`
      : NUMBER(value);
  return html`
    <dl class="numbers">
      ${flat.map(
        ([key, value]) => html`
          <div>
            <dt>${key}</dt>
            <dd>${show(key, value)}</dd>
          </div>
        `,
      )}
    </dl>
  `;
}

function Funnel({ rows, causes, position }) {
  if (!rows.length) return null;
  const whole = Math.max(1, rows[0].left);
  return html`
    <div class="part">
      <h3>Nodes left after each constraint${position?.turn === 1 ? "" : ", if it went first"}</h3>
      <ol class="funnel">
        ${rows.map(
          (row) => html`
            <li>
              <span class="constraint">${row.constraint}</span>
              <span class="track" aria-hidden="true">
                <i style=${{ width: `${(100 * row.left) / whole}%` }}></i>
              </span>
              <b class="figure">${number(row.left)}</b>
              <span class="soft">${causes.includes(row.text) ? "as above" : row.text}</span>
            </li>
          `,
        )}
      </ol>
    </div>
  `;
}
function Spared({ rows }) {
  if (!rows.length) return null;
  return html`
    <div class="part">
      <h3>Why no pod was evicted for it</h3>
      <ul class="findings">
        ${rows.map(
          (row) => html`
            <li>
              <code>${row.code}</code>
              <span>
                <b class="figure">${plural(row.pods, "pod")}</b>
                ${" "}${row.text.replace(/^[\d,]+ pods? /, "")}
              </span>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}
function Position({ position }) {
  if (!position) return null;
  const behind = position.behind.map(
    (one) => html`
      <li>
        after${" "}
        <${JobLink} job=${one.job} />
        ${" "}
        <span class="soft">${one.key}</span>
      </li>
    `,
  );
  const own =
    position.of > 1
      ? `The ${ordinal(position.place)} of ${number(position.of)} waiting jobs`
      : "The only waiting job";
  const queue =
    position.queues > 1
      ? `; the queue is ${ordinal(position.queuePlace)} of ${number(position.queues)}`
      : "";
  return html`
    <div class="part">
      <h3>Position</h3>
      <p>
        ${own} in${" "}
        <${QueueName} queue=${position.queue} />
        ${queue}.${
          position.turn
            ? ` The cycle took the job ${ordinal(position.turn)}.`
            : " The last scheduling cycle did not reach this job."
        }
      </p>
      ${
        behind.length > 0 &&
        html`
          <ul class="findings plainlist">
            ${behind}
          </ul>
        `
      }
    </div>
  `;
}
function Reservation({ promised }) {
  if (!promised) return null;
  return html`
    <div class="part">
      <h3>Reservation</h3>
      <p class="strong" title=${promised.start}>${sentence(promised.text)}</p>
    </div>
  `;
}
function Forecast({ forecast, busy }) {
  if (busy) return html`<${Loading} what="Simulating the cluster to estimate the start time" />`;
  if (!forecast) return null;
  const at = forecast.in_s === null ? null : clusterNow() + forecast.in_s;
  return html`
    <div class="part">
      <h3>Forecast</h3>
      <p class="strong">
        ${
          at !== null && forecast.in_s > 0
            ? html`
                At about${" "}
                <time title=${utc(at)}>${clock(at)}</time>
                :${" "}
              `
            : ""
        }${at !== null && forecast.in_s > 0 ? `${forecast.text}.` : sentence(forecast.text)}
      </p>
    </div>
  `;
}

function Remedies({ job, helps, again }) {
  const [tried, set] = useState({});
  if (helps.error)
    return html`
      <div class="part">
        <h3>What would help</h3>
        <${Problem} error=${helps.error} again=${again} />
      </div>
    `;
  if (!helps.data)
    return html`
      <div class="part">
        <h3>What would help</h3>
        <${Loading} what="Trying changes on a copy of the cluster" />
      </div>
    `;
  const { remedies, tried: n, state } = helps.data;
  if (state !== "waits") return null;
  const tryIt = async (remedy) => {
    set((old) => ({ ...old, [remedy.text]: { busy: true } }));
    try {
      const data = await answer(source("/api/whatif"), { job, remedy: remedy.text });
      set((old) => ({ ...old, [remedy.text]: { data } }));
    } catch (error) {
      set((old) => ({ ...old, [remedy.text]: { error } }));
    }
  };
  return html`
    <div class="part remedies">
      <h3>What would help</h3>
      ${
        remedies.length
          ? html`
              <ul>
                ${remedies.map((remedy) => {
                  const trial = tried[remedy.text];
                  return html`
                    <li key=${remedy.text}>
                      <div class="remedy">
                        <span>
                          <b>${sentence(remedy.text)}</b>
                          ${" "}
                          <span class="soft">${sentence(remedy.result)}</span>
                        </span>
                        <button
                          type="button"
                          disabled=${trial?.busy}
                          onClick=${() => tryIt(remedy)}>
                          ${trial?.busy ? "Trying …" : trial?.data ? "Try again" : "Try it"}
                        </button>
                      </div>
                      ${trial?.error && html`<${Problem} error=${trial.error} />`}${
                        trial?.data &&
                        html`
                          <div class="trial" role="status"><${Outcome} answer=${trial.data} /></div>
                        `
                      }
                    </li>
                  `;
                })}
              </ul>
              <p class="soft">
                Each was tried on a copy of the cluster${n ? `, out of ${number(n)} changes` : ""}.
                Nothing was changed.
              </p>
            `
          : html`
              <p>
                No change that was tried would start it${n ? ` (${number(n)} were)` : ""}. Try your
                own on the${" "}
                <${Link} href=${to("/whatif", { job })}>what-if page<//>
                .
              </p>
            `
      }
    </div>
  `;
}

function Why({ name, asked, changed, again }) {
  useTick();
  const revision = `${asked.revision}-${asked.n}`;
  const path = `/api/jobs/${name.split("/").map(encodeURIComponent).join("/")}/why`;
  const first = useAnswer(source(path, { r: revision }));
  const waits = first.data?.state === "waits"; // each answer is shown as it comes
  const when = useAnswer(waits ? source(path, { when: 1, r: revision }) : null);
  const helps = useAnswer(waits ? source(path, { helps: 1, r: revision }) : null);
  if (first.error)
    return html`<section class="why"><${Problem} error=${first.error} again=${again} /></section>`;
  if (!first.data)
    return html`<section class="why"><${Loading} what="Finding out why it waits" /></section>`;
  // whether a promise is kept shows when the cluster is played
  const explanation = when.data || first.data;
  const notes = [...new Set([...explanation.notes, ...(helps.data?.notes || [])])];
  const [cause, ...others] = explanation.causes;
  return html`
    <section class="why" aria-label="Why it waits">
      ${
        changed &&
        html`
          <p class="asked">
            as of ${duration(clusterNow() - asked.at)} ago${" "}
            <button type="button" onClick=${again}>Ask again</button>
          </p>
        `
      }
      <p class="cause">${sentence(explanation.text)}</p>
      ${
        cause &&
        html`
          <p><code class="code">${cause.code}</code></p>
          <${Numbers} numbers=${cause.numbers} />
        `
      }
      ${
        others.length > 0 &&
        html`
          <div class="part">
            <h3>Further causes</h3>
            <ul class="findings">
              ${others.map(
                (one) => html`
                  <li>
                    <code>${one.code}</code>
                    <span>${sentence(one.text)}</span>
                  </li>
                `,
              )}
            </ul>
          </div>
        `
      }
      ${
        explanation.victims.length > 0 &&
        html`
          <div class="part">
            <h3>Pods that leave for it</h3>
            <ul class="findings plainlist">
              ${explanation.victims.map(
                (one) => html`
                  <li class="name">
                    ${one.pod}${" "}
                    <span class="soft">
                      on ${one.node}, queue ${one.queue},
                      priority ${number(one.priority)}
                    </span>
                  </li>
                `,
              )}
            </ul>
          </div>
        `
      }
      <div class="columns">
        <div>
          <${Funnel}
            rows=${explanation.funnel}
            causes=${explanation.causes.map((one) => one.text)}
            position=${explanation.position} />
          <${Spared} rows=${explanation.notEvicted} />
        </div>
        <div>
          <${Position} position=${explanation.position} />
          ${
            explanation.state === "waits" &&
            html`
              <${Reservation} promised=${explanation.reservation} />
              <${Forecast} forecast=${when.data?.forecast} busy=${!when.data && !when.error} />
              ${when.error && html`<${Problem} error=${when.error} again=${again} />`}
            `
          }
        </div>
      </div>
      ${
        explanation.state === "waits" &&
        html`<${Remedies} job=${name} helps=${helps} again=${again} />`
      }
      ${
        notes.length > 0 &&
        html`
          <ul class="soft notes">
            ${notes.map(
              (note) => html`<li>${note}</li>`,
            )}
          </ul>
        `
      }
    </section>
  `;
}

function Pods({ data }) {
  if (!data.pods.length)
    return html`
      <section>
        <h2>Pods</h2>
        <p class="soft">It has no pods yet.</p>
      </section>
    `;
  const rows = data.pods.map((_, i) => i);
  const columns = [
    {
      key: "pod",
      title: "pod",
      width: "minmax(140px, 1.4fr)",
      card: "lead-cell",
      cell: (i) => html`<span class="name">${data.pods[i].pod}</span>`,
    },
    {
      key: "state",
      title: "state",
      width: "100px",
      cell: (i) => html`<${State} state=${data.pods[i].state} />`,
    },
    {
      key: "node",
      title: "node",
      width: "minmax(100px, 1fr)",
      cell: (i) =>
        data.pods[i].node
          ? html`<${NodeLink} node=${data.pods[i].node} />`
          : data.pods[i].promised
            ? html`<span class="soft">promised ${data.pods[i].promised}</span>`
            : html`<span class="soft">–</span>`,
    },
    {
      key: "asks",
      title: "asks for",
      width: "minmax(120px, 1fr)",
      cell: (i) => amounts(data.resources, data.pods[i].asks),
    },
    {
      key: "age",
      title: "age",
      width: "84px",
      align: "right",
      cell: (i) =>
        data.pods[i].created
          ? html`<${Age} since=${data.pods[i].created} />`
          : "–",
    },
  ];
  return html`
    <section>
      <h2>
        Pods${" "}
        <span class="soft">${number(data.total)}</span>
      </h2>
      ${
        data.total > data.pods.length &&
        html`<p class="note">The first ${number(data.pods.length)} are listed.</p>`
      }
      <div class=${rows.length > 12 ? "tall" : "short"}>
        <${LongTable} label="Pods" columns=${columns} rows=${rows} rowHeight=${32} />
      </div>
    </section>
  `;
}
const decided = (one) =>
  [
    one.bound && `${plural(one.bound, "pod")} got a node`,
    one.evicted && `${plural(one.evicted, "pod")} evicted`,
  ]
    .filter(Boolean)
    .join(", ");
const warned = (one) => (one.type === "Warning" ? "warning" : "");
const times = (count) => html`
  ${" "}
  <span class="soft">×${number(count)}</span>
`;
const about = (one) =>
  one.names > 1
    ? `${plural(one.names, one.kind)}, the latest ${one.name}`
    : `${one.kind} ${one.name}`;
const EVENTS = [
  [
    "when",
    (one) =>
      one.at
        ? html`<${When} at=${one.at} />`
        : "–",
  ],
  [
    "what",
    (one) =>
      one.cycle
        ? html`
            <${Link} href=${to(`/cycles/${one.cycle}`)}>cycle ${one.cycle}<//>
          `
        : html`${one.reason}${one.count > 1 ? times(one.count) : ""}`,
  ],
  ["about", (one) => (one.cycle ? "" : about(one)), "soft"],
  ["message", (one) => (one.cycle ? decided(one) : one.message)],
];
/** Events and what cycles decided, the latest first. */
function History({ data }) {
  const [all, showAll] = useState(false);
  const both = [...data.decisions, ...data.events].sort((a, b) => b.at - a.at);
  const rows = all ? both : both.slice(0, 15);
  return html`
    <section>
      <h2>What happened</h2>
      ${
        rows.length
          ? html`
              <${ShortTable}
                label="Events"
                kind="events"
                rows=${rows}
                rowKind=${warned}
                columns=${EVENTS} />
              ${
                both.length > rows.length &&
                html`
                  <button type="button" onClick=${() => showAll(true)}>
                    Show all ${number(both.length)}
                  </button>
                `
              }
            `
          : html`
              <p class="soft">
                ${
                  news.session?.speed === 0
                    ? "The files contain no events."
                    : "Nothing is remembered."
                }
              </p>
            `
      }
    </section>
  `;
}

export function JobPage({ name }) {
  const document = useDocument(
    source(`/api/jobs/${name.split("/").map(encodeURIComponent).join("/")}`),
  );
  const revision = useNews().revision.split(".")[0];
  const [kept, keep] = useState({ revision: "", at: 0, n: 0 }); // n: how often it was asked again
  if (!kept.revision && revision) Object.assign(kept, { revision, at: clusterNow() });
  const again = () => keep((old) => ({ revision, at: clusterNow(), n: old.n + 1 }));
  if (document.error?.status === 404)
    return html`
      <h1 tabindex="-1" class="jobname">${name}</h1>
      <${Problem} error=${document.error} />
      <${Life} name=${name} />
      <${Actions} kind="job" name=${name} mark=${revision} showsState=${true} />
    `;
  return html`
    <${Needs} of=${document} what="Looking at the job">
      ${(data) => {
        const bound = data.pods.filter(
          (pod) =>
            pod.node &&
            pod.state !== "leaving" &&
            pod.state !== "finished" &&
            pod.state !== "failed",
        ).length;
        const promised = data.pods.filter((pod) => pod.state === "promised").length;
        const done = data.pods.filter((pod) => pod.state === "finished").length;
        return html`
          <h1 tabindex="-1" class="jobname">${data.job}</h1>
          <p class="lead">
            <${State} state=${data.state} />
            ${" "}
            <${QueueName} queue=${data.queue} />
            ${" "}
            <span>
              priority ${number(data.priority)}${
                data.priorityClass ? ` (${data.priorityClass})` : ""
              }
            </span>
            ${" "}
            <span>phase ${data.phase || "none"}</span>
            ${" "}
            <span>
              ${data.state === "waiting" ? "waiting" : "created"}${" "}
              <${Age} since=${data.created} />
              ${data.state === "waiting" ? "" : " ago"}
            </span>
          </p>
          <p class="lead">
            <${Gang}
              bound=${bound}
              promised=${promised}
              done=${done}
              pods=${data.total}
              min=${data.min}
              inWords=${true} />
            ${" "}
            <span>holds ${amounts(data.resources, data.allocated)}</span>
            ${
              data.pending.some(Boolean) &&
              html`
                ${" "}
                <span>waits for ${amounts(data.resources, data.pending)}</span>
              `
            }
          </p>
          <${Actions} kind="job" name=${data.job} mark=${`${data.state} ${data.phase}`} />
          ${
            data.state === "waiting" || data.pods.some((pod) => pod.state === "waiting")
              ? html`
                  <${Why}
                    name=${data.job}
                    asked=${kept}
                    changed=${kept.revision !== revision}
                    again=${again} />
                `
              : html`<${Settled} data=${data} />`
          }
          <${Life} name=${data.job} mark=${`${data.state}-${kept.n}`} />
          <${Pods} data=${data} />
          <${History} data=${data} />
        `;
      }}
    <//>
  `;
}
function Settled({ data }) {
  const running = data.pods.filter((pod) => pod.node && pod.state !== "finished").length;
  const words =
    {
      running: `It runs: ${plural(running, "pod")} of at least ${number(data.min)}`,
      finished: "It has finished",
      failed: "It has ended, and some of its pods failed",
    }[data.state] || "";
  return html`
    <section class="why">
      <p class="cause">${words}.</p>
      ${!data.total && html`<${Empty} title="No pods" />`}
    </section>
  `;
}
