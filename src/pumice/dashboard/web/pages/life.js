// What became of a job, from a record: its states over time, each with its cause.
import { html, useState } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { clusterNow, news, timeShown, useAnswer } from "../data.js";
import { duration, moment, number, utc } from "../format.js";
import { Link, Loading, Problem, ShortTable, State } from "../parts.js";

const WORDS = { Waiting: "waiting", Running: "running", Completed: "finished" };
const word = (span) => WORDS[span.state] || "unknown";
const held = (span) => `${duration(span.until - span.since)}${span.open ? " so far" : ""}`;
const words = (span) => `${span.cause || span.state} ${held(span)}`;
const open = (t) => `${location.pathname}?at=${utc(t)}`;

/** Where the time went, the longest first. */
function sums(spans) {
  const found = new Map();
  for (const span of spans) {
    if (span.state === "Completed") continue;
    const name = span.cause || span.state;
    found.set(name, (found.get(name) || 0) + span.until - span.since);
  }
  return [...found]
    .filter(([, seconds]) => seconds >= 0.5)
    .sort((a, b) => b[1] - a[1])
    .map(([name, seconds]) => `${duration(seconds)} ${name}`)
    .join(", ");
}

function Lane({ spans }) {
  const first = spans[0].since;
  const busy = spans.findLast((span) => span.state !== "Completed")?.until ?? spans.at(-1).until;
  const last = Math.min(spans.at(-1).until, busy + 0.15 * (busy - first)); // an end needs no room
  const whole = Math.max(1, last - first);
  const left = (t) => `${((100 * (t - first)) / whole).toFixed(3)}%`;
  const then = timeShown();
  return html`
    <div class="lifelane" role="list" aria-label="Its states over time">
      ${spans.map(
        (span) => html`
          <a
            role="listitem"
            class=${word(span)}
            href=${open(span.since)}
            title=${words(span)}
            aria-label=${words(span)}
            style=${{
              left: left(span.since),
              width: `${(100 * (Math.min(span.until, last) - span.since)) / whole}%`,
            }}>
            <span aria-hidden="true">${span.cause || span.state}</span>
          </a>
        `,
      )}
      ${
        then >= first &&
        then <= last &&
        html`<b style=${{ left: left(then) }} title="the time that is shown"></b>`
      }
    </div>
    <p class="lifeends soft" aria-hidden="true">
      <time title=${utc(first)}>${moment(first, clusterNow())}</time>
      <time title=${utc(last)}>${moment(last, clusterNow())}</time>
    </p>
  `;
}

const COLUMNS = [
  [
    "since",
    (span) => html`
      <${Link} href=${open(span.since)} title=${utc(span.since)}>
        ${moment(span.since, clusterNow())}
      <//>
    `,
  ],
  ["state", (span) => html`<${State} state=${word(span)} />`],
  ["cause", (span) => span.cause && html`<code>${span.cause}</code>`],
  ["held", held, "right figure"],
  ["why", (span) => span.why],
];
/** Nothing where the cluster is not recorded. */
export function Life({ name, mark = "" }) {
  const [all, showAll] = useState(false);
  const path = `/api/jobs/${name.split("/").map(encodeURIComponent).join("/")}/life?r=${mark}`;
  const found = useAnswer(news.session?.past ? path : null);
  if (!news.session?.past) return null;
  const spans = found.data?.spans || [];
  return html`
    <section class="life">
      <h2>
        Its life${" "}
        <span class="soft">as far as the record reaches</span>
      </h2>
      ${found.error && html`<${Problem} error=${found.error} />`}
      ${!found.data && !found.error && html`<${Loading} what="Reading the record" />`}
      ${found.data && !spans.length && html`<p class="soft">The record does not have it.</p>`}
      ${
        spans.length > 0 &&
        html`
          <p class="strong">${sums(spans) || "It took no time"}.</p>
          <${Lane} spans=${spans} />
          <${ShortTable}
            label="States"
            kind="events"
            rows=${all ? spans : spans.slice(-12)}
            columns=${COLUMNS} />
          ${
            spans.length > 12 &&
            !all &&
            html`
              <button type="button" onClick=${() => showAll(true)}>
                Show all ${number(spans.length)}
              </button>
            `
          }
        `
      }
      ${(found.data?.problems || []).map(
        (line) => html`<p class="note">${line}</p>`,
      )}
    </section>
  `;
}
