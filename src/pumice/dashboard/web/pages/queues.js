// Who has what, and who is owed?
import { html, useState } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { useAnswer, useDocument } from "../data.js";
import { amount, number, ordinal, percent, plural, resourceName, unitFor } from "../format.js";
import { Actions } from "../actions.js";
import {
  Choice,
  Empty,
  JobLink,
  Link,
  Loading,
  Needs,
  Note,
  Problem,
  query,
  QueueName,
  setQuery,
  ShortTable,
  source,
  to,
} from "../parts.js";

/** Whether a queue is the root of a tree: nothing is above it to borrow from. */
const isRoot = (queue) => queue.depth === 0 && (!queue.leaf || queue.name === "root");
/** One bar: solid what is within deserved, hatched what is borrowed, ticks for the limits. */
function QueueBar({ resource, total, queue, i }) {
  const [held, asked] = [queue.allocated[i] || 0, queue.request[i] || 0];
  // all is the root's: it is owed nothing
  const deserved = isRoot(queue) ? null : (queue.deserved?.[i] ?? null);
  const [guarantee, cap] = [queue.guarantee[i] || 0, queue.capability[i]];
  const whole = Math.max(total, held, 1e-9);
  const at = (value) => `${Math.min(100, (100 * value) / whole)}%`;
  const within = deserved === null ? held : Math.min(held, deserved);
  const borrowed = held - within;
  const unit = unitFor(resource, whole);
  const show = (value) => number(value / unit.size);
  const words = [
    `${queue.name}: holds ${show(held)} of ${show(total)} ${unit.name} ${resourceName(resource)}`,
    borrowed ? `borrows ${show(borrowed)}` : "",
    `asks for ${show(asked)}`,
    deserved !== null ? `deserves ${show(deserved)}` : "",
    guarantee ? `is guaranteed ${show(guarantee)}` : "",
    cap !== null ? `may hold ${show(cap)}` : "has no limit of its own",
  ]
    .filter(Boolean)
    .join(", ");
  return html`
    <div class="queuebar" title=${words}>
      <div class="track" role="img" aria-label=${words}>
        <i class="asks" style=${{ width: at(asked) }}></i>
        <i class="within" style=${{ width: at(within) }}></i>
        <i class="borrowed" style=${{ left: at(within), width: at(borrowed) }}></i>
        ${guarantee > 0 && html`<b class="guarantee" style=${{ left: at(guarantee) }}></b>`}${
          deserved !== null &&
          deserved > 0 &&
          deserved < whole * 1.001 &&
          html`<b class="deserved" style=${{ left: at(deserved) }}></b>`
        }${
          cap !== null &&
          cap <= whole &&
          html`<b class="cap" style=${{ left: at(cap) }}></b>`
        }
      </div>
      <span class="figure">
        ${show(held)}
        <span class="soft">
          ${" "}${
            isRoot(queue) ? ` of ${show(total)}` : deserved ? ` / ${show(deserved)}` : ""
          } ${unit.name}
        </span>
        ${
          borrowed > 0.0001 * whole &&
          html`
            ${" "}
            <span class="lent">+${show(borrowed)} borrowed</span>
          `
        }
      </span>
    </div>
  `;
}
const Key = ({ divides }) => html`
  <p class="key">
    <span>
      <i class="within"></i>
      held${divides ? ", within deserved" : ""}
    </span>
    ${
      divides &&
      html`
        <span>
          <i class="borrowed"></i>
          borrowed
        </span>
      `
    }
    <span>
      <i class="asks"></i>
      asked for
    </span>
    ${
      divides &&
      html`
        <span>
          <b class="deserved"></b>
          deserved
        </span>
      `
    }
    <span>
      <b class="guarantee"></b>
      guarantee
    </span>
    <span>
      <b class="cap"></b>
      capability
    </span>
  </p>
`;
const counts = (jobs) =>
  ["running", "waiting", "finished", "failed"]
    .filter((state) => jobs[state])
    .map((state) => `${number(jobs[state])} ${state}`)
    .join(", ") || "no jobs";

export function Queues() {
  const document = useDocument(source("/api/queues"));
  const chosen = query().get("resource") || "";
  return html`
    <h1 tabindex="-1">Queues</h1>
    <${Needs} of=${document} what="Looking at the queues">
      ${(data) => {
        const all = data.resources
          .map((resource, i) => ({ resource, i }))
          .filter(({ resource }) => resource.name !== "pods");
        const shown = chosen
          ? all.filter(({ resource }) => resource.name === chosen)
          : all.slice(0, 4);
        if (!data.queues.length)
          return html`
            <${Empty} title="No queue">
              <p>
                Create one:${" "}
                <code>pumice queue create --name research</code>
              </p>
            <//>
          `;
        return html`
          <div class="tools">
            <${Choice}
              label="Resource"
              value=${chosen}
              options=${[
                ["", all.length > 4 ? "the first four" : "all"],
                ...all.map(({ resource }) => [resource.name, resource.name]),
              ]}
              onChange=${(value) => setQuery({ resource: value })} />
            <${Key} divides=${data.divides} />
          </div>
          ${
            !data.divides &&
            html`
              <${Note}>
                No plugin of the configuration divides the cluster among queues (capacity or
                proportion), so nothing is deserved or borrowed.
              <//>
            `
          }
          <div class="scroll" tabindex="0" role="region" aria-label="Queues">
            <table class="queues">
              <thead>
                <tr>
                  <th scope="col">queue</th>
                  ${shown.map(
                    ({ resource, i }) => html`
                      <th scope="col">
                        ${resource.name}${" "}
                        <span class="soft">of ${amount(resource, data.total[i])}</span>
                      </th>
                    `,
                  )}
                  <th scope="col" class="right">share</th>
                  ${
                    data.remembers &&
                    html`
                      <th scope="col" class="right">used lately</th>
                      <th scope="col" class="right">factor</th>
                    `
                  }
                  <th scope="col" class="right">weight</th>
                  <th scope="col">jobs</th>
                </tr>
              </thead>
              <tbody>
                ${data.queues.map(
                  (queue) => html`
                    <tr key=${queue.name}>
                      <th scope="row" class=${`depth${Math.min(queue.depth, 6)}`}>
                        <${QueueName} queue=${queue.name} />
                        ${
                          queue.state !== "Open" &&
                          html`
                            ${" "}
                            <span class="state failed">${queue.state}</span>
                          `
                        }
                      </th>
                      ${shown.map(
                        ({ resource, i }) => html`
                          <td data-title=${resource.name}>
                            <${QueueBar}
                              resource=${resource}
                              total=${data.total[i]}
                              queue=${queue}
                              i=${i} />
                          </td>
                        `,
                      )}
                      <td class="right figure" data-title="share">
                        ${queue.share === null ? "–" : percent(queue.share)}
                      </td>
                      ${
                        data.remembers &&
                        html`
                          <td class="right figure" data-title="used lately">
                            ${queue.used === null ? "–" : percent(queue.used)}
                          </td>
                          <td class="right figure" data-title="factor">
                            ${queue.factor === null ? "–" : queue.factor.toFixed(3)}
                          </td>
                        `
                      }
                      <td class="right figure" data-title="weight">${queue.weight}</td>
                      <td data-title="jobs">
                        ${
                          queue.leaf
                            ? html`
                                <${Link} href=${to("/jobs", { queue: queue.name })}>
                                  ${counts(queue.jobs)}
                                <//>
                              `
                            : counts(queue.jobs)
                        }
                      </td>
                    </tr>
                  `,
                )}
              </tbody>
            </table>
          </div>
        `;
      }}
    <//>
  `;
}

/** One queue: its amounts, and its jobs in the order in which the next cycle considers them. */
export function QueuePage({ name }) {
  const document = useDocument(source("/api/queues"));
  const [n, again] = useState(0);
  const order = useAnswer(
    document.data && source("/api/order", { r: `${document.data.queues.length}-${n}` }),
  );
  const [all, setAll] = useState(false);
  return html`
    <h1 tabindex="-1"><${QueueName} queue=${name} plain=${true} /></h1>
    <${Needs} of=${document} what="Looking at the queue">
      ${(data) => {
        const queue = data.queues.find((one) => one.name === name);
        if (!queue)
          return html`
            <${Problem} error=${{ status: 404, message: `there is no queue ${name}` }} />
          `;
        const children = data.queues.filter((one) => one.parent === name);
        const rows = data.resources
          .map((resource, i) => ({ resource, i }))
          .filter(({ resource }) => resource.name !== "pods");
        const show = (resource, value) =>
          value === null || value === undefined ? "–" : amount(resource, value);
        const held =
          (key) =>
          ({ resource, i }) =>
            show(resource, queue[key][i]);
        return html`
          <p class="lead">
            ${
              queue.parent &&
              html`
                <span>
                  under${" "}
                  <${QueueName} queue=${queue.parent} />
                </span>
              `
            }
            <span>${queue.state}</span>
            <span>weight ${queue.weight}</span>
            ${
              !isRoot(queue) &&
              html`
                <span>
                  ${queue.reclaimable ? "reclaimable" : "not reclaimable"}
                </span>
              `
            }
            <${Link} href=${to("/jobs", { queue: name })}>${counts(queue.jobs)}<//>
            ${
              children.length > 0 &&
              html`
                <span>
                  above ${children.map(
                    (one, i) => html`
                      ${i ? ", " : ""}
                      <${QueueName} queue=${one.name} />
                    `,
                  )}
                </span>
              `
            }
          </p>
          <${Actions} kind="queue" name=${name} mark=${queue.state} />
          <section>
            <h2>Amounts</h2>
            <${Key} divides=${data.divides} />
            <${ShortTable}
              label="Amounts"
              rows=${rows}
              columns=${[
                ["resource", ({ resource }) => resource.name, "head"],
                [
                  "of the cluster",
                  ({ resource, i }) => html`
                    <${QueueBar}
                      resource=${resource}
                      total=${data.total[i]}
                      queue=${queue}
                      i=${i} />
                  `,
                  "wide",
                ],
                ["allocated", held("allocated"), "right figure"],
                ["asked for", held("request"), "right figure"],
                [
                  "deserved",
                  (row) => (queue.deserved && !isRoot(queue) ? held("deserved")(row) : "–"),
                  "right figure",
                ],
                ["guarantee", held("guarantee"), "right figure"],
                [
                  "capability",
                  (row) =>
                    queue.capability[row.i] === null ? "no limit" : held("capability")(row),
                  "right figure",
                ],
              ]} />
          </section>
          <section>
            <h2>Who goes first</h2>
            ${
              order.error
                ? html`<${Problem} error=${order.error} again=${() => again(n + 1)} />`
                : !order.data
                  ? html`<${Loading} what="Computing the order" />`
                  : html`
                      <${OrderTable}
                        order=${order.data}
                        name=${name}
                        all=${all}
                        more=${() => setAll(true)} />
                    `
            }
          </section>
        `;
      }}
    <//>
  `;
}
function OrderTable({ order, name, all, more }) {
  const lines = order.jobs[name] || [];
  const place = order.queues.findIndex((queue) => queue.name === name);
  if (!lines.length) return html`<p class="soft">No job of this queue itself waits.</p>`;
  const shown = all ? lines : lines.slice(0, 100);
  const after = order.queues[place]?.after ? ` (${order.queues[place].after})` : "";
  return html`
    <p>
      ${
        order.queues.length > 1 &&
        `The queue is ${ordinal(place + 1)} of ${order.queues.length}${after}. `
      }Its
      waiting jobs, first to last:
    </p>
    <${ShortTable}
      label="Order"
      kind="compare"
      rows=${shown}
      keyOf=${(line) => line.name}
      columns=${[
        ["place", (_, i) => i + 1, "right figure"],
        [
          "job",
          (line) => html`<${JobLink} job=${line.title} />`,
        ],
        [
          "ranked below the previous job because",
          (line) =>
            line.after ||
            html`<span class="soft">first</span>`,
        ],
        [
          "ordered by",
          (line) =>
            Object.entries(line.keys)
              .map(([plugin, words]) => `${plugin}: ${words}`)
              .join("; "),
          "soft",
        ],
        ["outcome of the next cycle", (line) => line.outcome, "", "outcome"],
      ]} />
    ${
      lines.length > shown.length &&
      html`<button type="button" onClick=${more}>Show all ${plural(lines.length, "job")}</button>`
    }
  `;
}
