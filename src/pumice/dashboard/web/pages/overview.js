// Is it healthy, and who suffers?
import { html, useMemo } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { Chart, Legend } from "../charts.js";
import { news, useDocument } from "../data.js";
import { clock, milliseconds, number, percent, plural, resourceName, sentence } from "../format.js";
import {
  Age,
  JobLink,
  Link,
  Needs,
  NoJob,
  QueueName,
  ShortTable,
  source,
  to,
  Use,
  When,
} from "../parts.js";

const Figure = ({ name, value, note, href, kind }) => html`
  <${Link} class=${`card ${kind || ""}`} href=${to(href)}>
    <span>${name}</span>
    <b>${value}</b>
    <small>${note}</small>
  <//>
`;

function Figures({ data }) {
  const { jobs, pods, nodes, cycles, evictions } = data;
  const closed = Object.entries(nodes?.closed || {});
  const ended = [
    jobs.finished && `${number(jobs.finished)} finished`,
    jobs.failed && `${number(jobs.failed)} failed`,
  ]
    .filter(Boolean)
    .join(", ");
  return html`
    <div class="cards">
      <${Figure}
        name="Running jobs"
        value=${number(jobs.running || 0)}
        note=${`${plural(pods.running, "pod")}${ended ? `; ${ended}` : ""}`}
        href="/jobs?state=running"
        kind="running" />
      <${Figure}
        name="Pending jobs"
        value=${number(jobs.waiting || 0)}
        note=${`${plural(pods.waiting, "pod")} without a node`}
        href="/jobs?state=waiting"
        kind="waiting" />
      ${
        evictions &&
        html`
          <${Figure}
            name="Evicted in the last hour"
            value=${number(evictions.hour)}
            note=${
              pods.leaving
                ? `${plural(pods.leaving, "pod")} on the way out`
                : "no pods terminating"
            }
            href="/cycles"
            kind="evicted" />
        `
      }
      ${
        nodes &&
        html`
          <${Figure}
            name="Nodes"
            value=${number(nodes.total)}
            note=${
              closed.length
                ? closed.map(([why, n]) => `${number(n)} ${why}`).join(", ")
                : "all schedulable"
            }
            href="/nodes" />
        `
      }
      <${Figure}
        name="Cycles a minute"
        value=${number(cycles.perMinute)}
        note=${
          cycles.perMinute === null || cycles.mean === null
            ? `${milliseconds(cycles.mean)} for one`
            : `${milliseconds(cycles.mean)} each, at most ${milliseconds(cycles.longest)}`
        }
        href="/cycles" />
    </div>
  `;
}

function Utilisation({ data }) {
  const { resources, history } = data;
  const drawn = resources
    .map((resource, i) => ({ resource, i }))
    .filter(({ resource }) => resource.name !== "pods");
  const lines = useMemo(
    () =>
      drawn.map(({ resource, i }) => ({
        label: resourceName(resource),
        ys: history.parts[i],
        colour: `c${i}`,
      })),
    [history],
  );
  const xs = history.times;
  return html`
    <section>
      <h2>Utilisation</h2>
      <div class="uses">
        ${drawn.map(
          ({ resource }) => html`
            <${Use}
              resource=${resource}
              used=${resource.used}
              total=${resource.total}
              large=${true} />
          `,
        )}
      </div>
      ${
        xs.length > 2
          ? html`
              <${Legend} entries=${lines.map((line, i) => [line.label, line.colour, i % 4])} />
              <${Chart}
                label="Part of each resource in use over the last hour"
                xs=${xs}
                lines=${lines}
                format=${percent}
                words=${clock}
                range=${[0, 1.02]}
                height=${190} />
            `
          : html`
              <p class="soft">
                ${
                  news.session?.speed !== 0
                    ? "The history begins now; it is kept for an hour."
                    : news.session.past
                      ? "Choose a time of the record to see the hour before it."
                      : "Files hold one moment, so there is no history."
                }
              </p>
            `
      }
    </section>
  `;
}

function Longest({ data }) {
  if (!data.longest.length)
    return html`
      <section>
        <h2>Longest waits</h2>
        <p class="soft">No job waits.</p>
      </section>
    `;
  return html`
    <section>
      <h2>Longest waits</h2>
      <ul class="waits">
        ${data.longest.map(
          (job) => html`
            <li key=${job.job}>
              <div class="who">
                <${JobLink} job=${job.job} />
                <${QueueName} queue=${job.queue} />
                <span class="soft">
                  for${" "}
                  <${Age} since=${job.created} />
                </span>
                ${job.code && html`<code>${job.code}</code>`}
              </div>
              <p>
                ${
                  job.text
                    ? sentence(job.text)
                    : html`<span class="soft">The cause is being computed.</span>`
                }
              </p>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

function Causes({ data }) {
  const most = Math.max(1, ...data.causes.map((cause) => cause.jobs));
  if (!data.causes.length) return null;
  return html`
    <section>
      <h2>Waiting jobs by cause</h2>
      <ul class="bars">
        ${data.causes.map(
          (cause) => html`
            <li>
              <${Link}
                href=${to("/jobs", { state: "waiting", ...(cause.code ? { q: cause.code } : {}) })}>
                ${cause.code || "not known yet"}
              <//>
              <span class="track" aria-hidden="true">
                <i style=${{ width: `${(100 * cause.jobs) / most}%` }}></i>
              </span>
              <b>${number(cause.jobs)}</b>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

function Evictions({ data }) {
  if (!data.evictions?.latest.length) return null;
  return html`
    <section class="last">
      <h2>Latest evictions</h2>
      <${ShortTable}
        label="Latest evictions"
        kind="stacked"
        rows=${data.evictions.latest}
        columns=${[
          [
            "when",
            (one) => html`
              <${Link} href=${to(`/cycles/${one.cycle}`)}><${When} at=${one.at} /><//>
            `,
          ],
          ["pod", (one) => one.pod, "name"],
          ["by", (one) => one.action],
          [
            "for",
            (one) =>
              one.for
                ? html`<${JobLink} job=${one.for} />`
                : "nobody",
            "labelled",
          ],
        ]} />
    </section>
  `;
}

export function Overview() {
  const document = useDocument(source("/api/overview"), "revision");
  return html`
    <h1 tabindex="-1">Overview</h1>
    <${Needs} of=${document} what="Looking at the cluster">
      ${(data) => {
        const nothing = !Object.keys(data.jobs).length && !data.pods.running;
        return html`
          <${Figures} data=${data} />
          ${nothing && html`<${NoJob} />`}
          <div class="two mixed">
            <div>
              <${Utilisation} data=${data} />
              <${Evictions} data=${data} />
            </div>
            <div>
              <${Longest} data=${data} />
              <${Causes} data=${data} />
            </div>
          </div>
        `;
      }}
    <//>
  `;
}
