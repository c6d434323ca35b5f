// Which job, node or queue has these letters in its name?
import { html } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { useDocument } from "../data.js";
import { number, plural } from "../format.js";
import { Elsewhere, Empty, jobPage, Link, Loading, query, source, to } from "../parts.js";

const MOST = 200;
const place = (kind) => (name) => `/${kind}/${encodeURIComponent(name)}`;

/** What has a text in its name, as {kind, name, href}; ``busy`` while something is being read. */
export function useFound(words, open = true) {
  const text = words.trim().toLowerCase();
  const wanted = open && text;
  const queues = useDocument(wanted && source("/api/queues"));
  const jobs = useDocument(wanted && source("/api/jobs"));
  const nodes = useDocument(wanted && source("/api/nodes"));
  const found = [];
  const look = (names, kind, page) => {
    for (const name of names || [])
      if (name.toLowerCase().includes(text)) found.push({ kind, name, href: to(page(name)) });
  };
  if (wanted) {
    look(
      queues.data?.queues.map((queue) => queue.name),
      "queue",
      place("queues"),
    );
    look(jobs.data?.job, "job", jobPage);
    look(nodes.data?.names, "node", place("nodes"));
  }
  return {
    found,
    busy: Boolean(wanted) && [queues, jobs, nodes].some((one) => !one.data && !one.error),
  };
}
export const Nothing = ({ words }) => html`No job, node or queue has “${words}” in its name.`;

export function SearchPage() {
  const words = (query().get("q") || "").trim();
  const { found, busy } = useFound(words);
  const kinds = ["queue", "job", "node"]
    .map((kind) => [kind, found.filter((one) => one.kind === kind)])
    .filter(([, hits]) => hits.length);
  if (!words)
    return html`
      <h1 tabindex="-1">Search</h1>
      <${Empty} title="Nothing to look for"><${Elsewhere} /><//>
    `;
  return html`
    <h1 tabindex="-1">Names with “${words}”</h1>
    ${busy && html`<${Loading} what="Looking at all names" />`}
    ${kinds.map(
      ([kind, hits]) => html`
        <section key=${kind}>
          <h2>${plural(hits.length, kind)}</h2>
          <ul class="findings plainlist">
            ${hits.slice(0, MOST).map(
              (hit) => html`<li><${Link} class="name" href=${hit.href}>${hit.name}<//></li>`,
            )}
          </ul>
          ${
            hits.length > MOST &&
            html`<p class="soft">… and ${number(hits.length - MOST)} more.</p>`
          }
        </section>
      `,
    )}
    ${
      !busy &&
      !found.length &&
      html`
        <${Empty} title="Nothing found">
          <p>
            <${Nothing} words=${words} />
            ${" "}Causes and reasons are searched by the${" "}
            <${Link} href=${to("/jobs", { q: words })}>filter of the jobs<//>
            .
          </p>
          <${Elsewhere} />
        <//>
      `
    }
  `;
}
