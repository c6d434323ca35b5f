// What did the scheduler just do?
import { html } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { news, timeShown, useDocument } from "../data.js";
import { milliseconds, number, plural, utc } from "../format.js";
import {
  Empty,
  go,
  JobLink,
  Link,
  Needs,
  Note,
  NodeLink,
  query,
  setQuery,
  ShortTable,
  source,
  Tabs,
  to,
  When,
} from "../parts.js";

const ACTION_COLOURS = new Map();
function actionColour(name) {
  if (!ACTION_COLOURS.has(name)) ACTION_COLOURS.set(name, ACTION_COLOURS.size % 10);
  return ACTION_COLOURS.get(name);
}

/** One bar a cycle, as high as its time, in the colours of its actions; marks for decisions. */
function Timeline({ cycles }) {
  const longest = Math.max(...cycles.map((cycle) => cycle.took), 1e-6);
  return html`
    <div class="timeline" role="list" aria-label="Cycles, the latest first">
      ${cycles.map((cycle) => {
        const rest = Math.max(
          0,
          cycle.took - cycle.actions.reduce((sum, [, took]) => sum + took, 0),
        );
        const words = [
          `cycle ${cycle.number}, ${milliseconds(cycle.took)}`,
          cycle.binds && `${plural(cycle.binds, "pod")} bound`,
          cycle.evictions && `${cycle.evictions} evicted`,
        ]
          .filter(Boolean)
          .join(", ");
        return html`
          <a
            role="listitem"
            href=${to(`/cycles/${cycle.number}`)}
            key=${cycle.number}
            title=${words}
            aria-label=${words}
            class=${cycle.trouble ? "trouble" : ""}>
            <span class="marks" aria-hidden="true">
              ${cycle.evictions > 0 && html`<i class="evict">✕</i>`}
              ${cycle.binds > 0 && html`<i class="bind">▲</i>`}
            </span>
            <span class="bar" style=${{ height: `${Math.max(2, (100 * cycle.took) / longest)}%` }}>
              <i class="rest" style=${{ flexGrow: 1e5 * rest }}></i>
              ${cycle.actions.map(
                ([name, took]) => html`
                  <i class=${`q${actionColour(name)}`} style=${{ flexGrow: 1e5 * took }}></i>
                `,
              )}
            </span>
          </a>
        `;
      })}
    </div>
  `;
}

/** The colours of actions, and the cycles over time. */
const Course = ({ data }) => html`
  <p class="key">
    ${data.actions.map(
      (name) => html`
        <span>
          <i class=${`q${actionColour(name)}`}></i>
          ${name}
        </span>
      `,
    )}
    <span>
      <i class="rest"></i>
      opening, plugins, closing
    </span>
    <span>
      <i class="bindmark">▲</i>
      pods bound
    </span>
    <span>
      <i class="evictmark">✕</i>
      evictions
    </span>
  </p>
  <${Timeline} cycles=${data.cycles} />
`;

const CYCLES = [
  [
    "cycle",
    (cycle) => html`
      <${Link} href=${to(`/cycles/${cycle.number}`)}>${cycle.number}<//>
    `,
    "right",
  ],
  [
    "when",
    (cycle) => html`<${When} at=${cycle.at} />`,
  ],
  ["took", (cycle) => milliseconds(cycle.took), "right figure"],
  ["bound", (cycle) => cycle.binds || "", "right figure"],
  ["evicted", (cycle) => cycle.evictions || "", "right figure"],
  ["promised", (cycle) => cycle.promised || "", "right figure"],
  [
    "time by action",
    (cycle) =>
      cycle.actions
        .filter(([, took]) => took >= 0.0001)
        .map(([name, took]) => `${name} ${milliseconds(took)}`)
        .join(", "),
    "soft oneline",
  ],
  [
    "snapshot",
    (cycle) =>
      (cycle.moment || timeShown()) &&
      html`
        <a href=${`/?at=${timeShown() ? utc(cycle.at) : cycle.number}`}>open</a>
      `,
  ],
];

export function Cycles() {
  const document = useDocument(source("/api/cycles"), "cycle");
  const all = query().get("only") === "all";
  return html`
    <h1 tabindex="-1">Cycles</h1>
    ${
      news.session &&
      !news.session.decides &&
      !timeShown() &&
      html`
        <${Note}>
          Nothing here was carried out: these cycles show what a scheduler with this configuration
          would decide.
        <//>
      `
    }
    <${Needs} of=${document} what="Looking at the last cycles">
      ${(data) => {
        data.actions.forEach(actionColour);
        const rows = all
          ? data.cycles
          : data.cycles.filter((cycle) => cycle.binds || cycle.evictions || cycle.trouble);
        if (!data.cycles.length) return html`<${Empty} title="No cycle yet" />`;
        return html`
          <section>
            <h2>
              The
              last ${data.cycles.length > 1 ? plural(data.cycles.length, "cycle") : "cycle"}${" "}
              <span class="soft">
                ${
                  timeShown()
                    ? "of the hour before; how long they took is not recorded"
                    : `height: time, at most ${milliseconds(
                        Math.max(...data.cycles.map((cycle) => cycle.took)),
                      )}`
                }
              </span>
            </h2>
            ${!timeShown() && html`<${Course} data=${data} />`}
          </section>
          <div class="tools">
            <${Tabs}
              label="Which cycles"
              value=${all ? "all" : ""}
              options=${[
                ["", "those that changed something"],
                ["all", "all"],
              ]}
              onChange=${(value) => setQuery({ only: value })} />
          </div>
          ${
            rows.length > 0 &&
            html`
              <${ShortTable}
                label="Cycles"
                rows=${rows.slice(0, 100)}
                keyOf=${(cycle) => cycle.number}
                columns=${CYCLES} />
            `
          }${
            rows.length > 100 &&
            html`<p class="soft">The last 100 of ${number(rows.length)} are listed.</p>`
          }${
            !rows.length &&
            html`
              <p class="soft">
                None of the cycles that are remembered changed anything.${" "}
                <button type="button" onClick=${() => setQuery({ only: "all" })}>
                  Show all ${plural(data.cycles.length, "cycle")}
                </button>
              </p>
            `
          }
        `;
      }}
    <//>
  `;
}

function Times({ title, rows }) {
  const most = Math.max(1e-9, ...rows.map(([, took]) => took));
  return html`
    <section>
      <h2>${title}</h2>
      <ul class="bars">
        ${rows.map(
          ([name, took]) => html`
            <li>
              <span>${name}</span>
              <span class="track" aria-hidden="true">
                <i style=${{ width: `${(100 * took) / most}%` }}></i>
              </span>
              <b class="figure">${milliseconds(took)}</b>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}
export function CyclePage({ name }) {
  const document = useDocument(source(`/api/cycles/${name}`), "none");
  const number_ = Number(name);
  return html`
    <h1 tabindex="-1">Cycle ${name}</h1>
    <${Needs} of=${document} what="Looking at the cycle">
      ${(data) => html`
        <p class="lead">
          <${When} at=${data.at} />
          ${" "}
          <span>took ${milliseconds(data.took)}</span>
          ${" "}
          <span>${plural(data.binds, "pod")} bound</span>
          ${" "}
          <span>${number(data.evictions)} evicted</span>
          ${" "}
          <span>${number(data.promised)} promised</span>
          <button type="button" onClick=${() => go(to(`/cycles/${number_ - 1}`))}>← before</button>
          ${" "}
          <button type="button" onClick=${() => go(to(`/cycles/${number_ + 1}`))}>after →</button>
          ${" "}${
            data.moment &&
            html`
              <a class="button" href=${`/?at=${name}`}>Open the cluster as it was</a>
              ${" "}
              <a class="button" download href=${`/api/snapshot?at=${name}`}>Save it</a>
            `
          }
        </p>
        ${
          data.dropped &&
          html`
            <p class="banner warn">
              Nothing of it was written: another scheduler was leader by then.
            </p>
          `
        }${[...data.failed, ...data.failures].map(
          (line) => html`<p class="banner warn">${line}</p>`,
        )}
        <div class="two">
          <div>
            <${Times} title="Time by action" rows=${data.actions} />
            <${Times} title="Time by plugin, opening and closing" rows=${data.plugins} />
          </div>
          <div>
            <section>
              <h2>Evicted</h2>
              ${
                data.evicted.length
                  ? html`
                      <${ShortTable}
                        kind="stacked"
                        rows=${data.evicted}
                        columns=${[
                          ["pod", (one) => one.pod, "name"],
                          [
                            "of job",
                            (one) =>
                              one.job &&
                              html`<${JobLink} job=${one.job} />`,
                          ],
                          ["by", (one) => one.action],
                          [
                            "for",
                            (one) =>
                              one.for
                                ? html`<${JobLink} job=${one.for} />`
                                : html`<span class="soft">no job</span>`,
                            "labelled",
                          ],
                        ]} />
                    `
                  : html`<p class="soft">No pod.</p>`
              }
            </section>
            <section>
              <h2>Started</h2>
              ${
                data.started.length
                  ? html`
                      <ul class="findings plainlist">
                        ${data.started.map(
                          (one) => html`
                            <li>
                              <${JobLink} job=${one.job} />
                              ${" "}
                              <span class="soft">${plural(one.pods, "pod")}</span>
                            </li>
                          `,
                        )}
                      </ul>
                      <details>
                        <summary>${plural(data.binds, "pod")}, with their nodes</summary>
                        <${ShortTable}
                          rows=${data.bound}
                          columns=${[
                            ["", (one) => one.pod, "name"],
                            [
                              "",
                              (one) => html`<${NodeLink} node=${one.node} />`,
                            ],
                          ]} />
                        ${
                          data.moreBound > 0 &&
                          html`<p class="soft">… and ${number(data.moreBound)} more.</p>`
                        }
                      </details>
                    `
                  : html`<p class="soft">No job.</p>`
              }
            </section>
            <section>
              <h2>Waiting for another reason than before</h2>
              ${
                data.left.length
                  ? html`
                      <${ShortTable}
                        rows=${data.left.slice(0, 100)}
                        columns=${[
                          [
                            "",
                            (one) => html`<${JobLink} job=${one.job} />`,
                          ],
                          ["", (one) => one.text],
                        ]} />
                    `
                  : html`<p class="soft">No job.</p>`
              }
            </section>
          </div>
        </div>
      `}
    <//>
  `;
}
