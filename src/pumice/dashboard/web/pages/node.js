// One node: what it has, who is on it.
import { html } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { useDocument } from "../data.js";
import { amount, amounts, number, percent, plural } from "../format.js";
import { JobLink, Needs, QueueName, ShortTable, source, State, Use } from "../parts.js";

export function NodePage({ name }) {
  const document = useDocument(source(`/api/nodes/${encodeURIComponent(name)}`));
  return html`
    <h1 tabindex="-1">${name}</h1>
    <${Needs} of=${document} what="Looking at the node">
      ${(data) => html`
        <p class="lead">
          ${
            data.closed.length
              ? html`<span class="state failed">unschedulable: ${data.closed.join(", ")}</span>`
              : html`<span class="state running">takes pods</span>`
          } ${data.taints.map(
            (taint) => html`
              <code>${taint}</code>
              ${" "}
            `,
          )}
        </p>
        <section>
          <h2>Allocated</h2>
          <div class="uses">
            ${data.resources.map(
              (resource, i) =>
                data.allocatable[i] > 0 &&
                html`
                  <div>
                    <${Use}
                      resource=${resource}
                      used=${data.allocated[i]}
                      total=${data.allocatable[i]}
                      large=${true} />
                    ${
                      data.leaving[i] > 0 &&
                      html`
                        <p class="soft small">
                          ${amount(resource, data.leaving[i])} on the way out
                        </p>
                      `
                    }${
                      data.measured?.[resource.name] !== undefined &&
                      html`
                        <p class="soft small">
                          ${percent(data.measured[resource.name] / 100)} measured
                        </p>
                      `
                    }
                  </div>
                `,
            )}
          </div>
        </section>
        <section>
          <h2>
            Pods${" "}
            <span class="soft">${number(data.pods.length)}</span>
          </h2>
          ${
            data.hidden > 0 &&
            html`
              <p class="note">
                ${plural(data.hidden, "pod")} of namespaces that you may not see.
              </p>
            `
          }
          ${
            data.pods.length
              ? html`
                  <${ShortTable}
                    label="Pods"
                    kind="stacked"
                    rows=${data.pods}
                    keyOf=${(pod) => pod.pod}
                    columns=${[
                      ["pod", (pod) => pod.pod, "name"],
                      [
                        "job",
                        (pod) => html`<${JobLink} job=${pod.job} />`,
                      ],
                      [
                        "queue",
                        (pod) =>
                          pod.queue &&
                          html`<${QueueName} queue=${pod.queue} />`,
                      ],
                      [
                        "state",
                        (pod) => html`<${State} state=${pod.state} />`,
                      ],
                      ["asks for", (pod) => amounts(data.resources, pod.asks)],
                    ]} />
                `
              : html`<p class="soft">No pod is on it.</p>`
          }
        </section>
        <section>
          <h2>Labels</h2>
          <p class="labels">
            ${Object.entries(data.labels).map(
              ([key, value]) => html`
                <code>${key}=${value}</code>
                ${" "}
              `,
            )}
          </p>
        </section>
      `}
    <//>
  `;
}
