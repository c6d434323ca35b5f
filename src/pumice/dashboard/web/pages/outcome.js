// What a change would do: before and after, who gains, who loses, when it settles.
import { html } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { duration, number, plural, sentence } from "../format.js";
import { JobLink, ShortTable } from "../parts.js";

const MOST = 60;
function Rows({ head, rows }) {
  const shown = rows.slice(0, MOST);
  return html`
    <${ShortTable}
      label=${head[0] || "figure"}
      kind="compare"
      rows=${shown}
      columns=${head.map((title, i) => [title, (row) => row[i]])} />
    ${
      rows.length > shown.length &&
      html`<p class="soft">… and ${number(rows.length - shown.length)} more.</p>`
    }
  `;
}
/** The sign-off: totals before and after first, then whom they concern; the rest on request. */
function SignOff({ tables }) {
  const [totals, ...others] = tables;
  return html`
    <h4>${totals.title}</h4>
    <${Rows} head=${totals.columns} rows=${totals.rows} />
    ${others.map((table) =>
      table.columns.length > 1
        ? html`
            <details>
              <summary>${table.title}</summary>
              <${Rows} head=${table.columns} rows=${table.rows} />
            </details>
          `
        : html`
            <p class="soft">${table.title}: ${table.rows.map(([line]) => line).join("; ")}.</p>
          `,
    )}
  `;
}
const evictedFor = (words) => words.startsWith("evicted");

export function Outcome({ answer }) {
  const { job, jobs, pods, queues, waiting, settled, storm, notes } = answer;
  const evicted = Object.entries(pods).filter(
    ([, [before, after]]) => evictedFor(after) && !evictedFor(before),
  );
  const moved = Object.entries(pods).filter(
    ([, [before, after]]) => !evictedFor(after) || evictedFor(before),
  );
  const amounts = Object.entries(queues).flatMap(([queue, found]) =>
    Object.entries(found).map(([resource, [before, after]]) => [
      `${queue} ${resource}`,
      before,
      after,
    ]),
  );
  const others = Object.entries(waiting).filter(([name]) => name !== job?.job);
  return html`
    <div class="outcome">
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
      ${
        answer.changes.length > 0 &&
        html`
          <p class="soft">
            If
            you ${answer.changes
              .map((text) => text.charAt(0).toLowerCase() + text.slice(1))
              .join(", ")}:
          </p>
        `
      }
      ${job && html`<p class="cause small">${sentence(job.sentence)}</p>`}
      ${
        storm
          ? html`
              <p class="problem" role="alert">
                <b>Does not settle:</b>
                ${" "}${storm.text}. What follows is one moment of it.
              </p>
            `
          : html`
              <p>
                ${
                  answer.settled_in_s
                    ? `Settles after ${duration(answer.settled_in_s)}`
                    : "No further changes"
                }${settled ? "" : ", or never"}; ${
                  evicted.length
                    ? html`<b>${plural(evicted.length, "pod")} evicted</b>`
                    : "no pod is evicted"
                }.
              </p>
            `
      }
      ${answer.tables?.length > 0 && html`<${SignOff} tables=${answer.tables} />`}
      ${
        evicted.length > 0 &&
        html`
          <h4>Evicted</h4>
          <${Rows}
            head=${["pod", "before", "after"]}
            rows=${evicted.map(([pod, [before, after]]) => [pod, before, after])} />
        `
      }
      ${
        jobs.length > 0 &&
        html`
          <h4>Jobs that change</h4>
          <${Rows}
            head=${["job", "before", "after"]}
            rows=${jobs.map((one) => [
              html`<${JobLink} job=${one.job} />`,
              one.before,
              one.after,
            ])} />
        `
      }
      ${
        moved.length > 0 &&
        html`
          <details>
            <summary>${plural(moved.length, "pod")} elsewhere than before</summary>
            <${Rows}
              head=${["pod", "before", "after"]}
              rows=${moved.map(([pod, [before, after]]) => [pod, before, after])} />
          </details>
        `
      }
      ${
        amounts.length > 0 &&
        html`
          <details>
            <summary>What queues hold</summary>
            <${Rows} head=${["queue", "before", "after"]} rows=${amounts} />
          </details>
        `
      }
      ${
        others.length > 0 &&
        html`
          <details>
            <summary>${plural(others.length, "job")} would still wait</summary>
            <${Rows}
              head=${["job", "why"]}
              rows=${others.map(([name, why]) => [
                html`<${JobLink} job=${name} />`,
                why,
              ])} />
          </details>
        `
      }
      ${
        answer.changes.length > 0 &&
        !jobs.length &&
        !Object.keys(pods).length &&
        html`<p class="soft">Nothing else changes.</p>`
      }
    </div>
  `;
}
