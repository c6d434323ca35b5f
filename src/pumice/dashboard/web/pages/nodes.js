// Where is room?
import { html, useMemo } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { useDocument } from "../data.js";
import { amount, number, partOf, percent, plural, resourceName } from "../format.js";
import { HeatMap } from "../heatmap.js";
import {
  Choice,
  Empty,
  go,
  LongTable,
  Needs,
  NodeLink,
  query,
  queueColour,
  setQuery,
  source,
  Tabs,
  to,
  useSort,
  useSorted,
} from "../parts.js";

const MEASURES = [
  ["allocated", "allocated"],
  ["requested", "requested"],
  ["measured", "measured"],
];

/** Nodes in groups by what was chosen; the largest number of values comes last. */
function grouped(data, by) {
  const all = data.names.map((_, i) => i);
  const found = by === "queue" ? { of: data.queues } : data.groups.find((group) => group.by === by);
  if (!found) return [{ title: `${plural(all.length, "node")}`, rows: all }];
  const groups = new Map();
  for (const i of all) {
    const key = found.of[i];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  const names = [...groups.keys()].sort(
    (a, b) => (a === "") - (b === "") || a.localeCompare(b, "en", { numeric: true }),
  );
  return names.map((name) => ({
    title: `${name || "none"} · ${number(groups.get(name).length)}`,
    rows: groups.get(name),
  }));
}

function Fragmentation({ data, shape }) {
  const wanted = Object.fromEntries(
    data.resources
      .filter((r) => r.name !== "pods" && shape[r.name])
      .map((r) => [r.name, shape[r.name]]),
  );
  const found = useDocument(Object.keys(wanted).length ? source("/api/fit", wanted) : null);
  const set = (name, value) => setQuery({ [`pod.${name}`]: value });
  return html`
    <section>
      <h2>Largest gang that fits now</h2>
      <form class="tools" onSubmit=${(e) => e.preventDefault()}>
        ${data.resources
          .filter((r) => r.name !== "pods")
          .map(
            (r) => html`
              <label class="choice">
                <span>${resourceName(r)} of a pod</span>
                <input
                  size="7"
                  value=${shape[r.name] || ""}
                  placeholder=${r.unit === "bytes" ? "8Gi" : r.name === "cpu" ? "2" : "1"}
                  onChange=${(e) => set(r.name, e.target.value.trim())} />
              </label>
            `,
          )}
      </form>
      ${
        found.error
          ? html`<p class="problem" role="alert">${found.error.message}.</p>`
          : found.data
            ? html`
                <p class="cause small" role="status">
                  ${
                    found.data.pods
                      ? `${plural(found.data.pods, "pod")} on ${plural(found.data.nodes, "node")}`
                      : "No pod fits"
                  }.
                </p>
                <p class="soft">
                  ${
                    found.data.unbroken > found.data.pods
                      ? `What is free adds up to ${plural(found.data.unbroken, "pod")}; ` +
                        `${number(found.data.unbroken - found.data.pods)} of them are lost ` +
                        "to fragments."
                      : "Nothing is lost to fragments."
                  } ${plural(found.data.of, "node")} of ${number(data.names.length)} take
                  pods. Queues and the rules of a pod are not asked here; the what-if page asks
                  them.
                </p>
              `
            : html`<p class="soft">Enter the request of one pod.</p>`
      }
    </section>
  `;
}

function Map_({ data }) {
  const params = query();
  const index = Math.max(
    0,
    data.resources.findIndex((r) => r.name === params.get("resource")),
  );
  const resource = data.resources[index];
  const measure = params.get("show") || "allocated";
  const by = params.get("by") || data.groups[0]?.by || "";
  const view = params.get("view") || "map";
  const shape = Object.fromEntries(
    [...params]
      .filter(([key]) => key.startsWith("pod."))
      .map(([key, value]) => [key.slice(4), value]),
  );
  const groups = useMemo(() => grouped(data, by), [data, by]);
  const whole = data.allocatable[index];
  const part = useMemo(() => {
    const used = measure === "measured" ? data.measured?.[index] : data[measure][index];
    return (i) =>
      measure === "measured"
        ? used?.[i] === null || used?.[i] === undefined
          ? null
          : used[i] / 100
        : whole[i]
          ? used[i] / whole[i]
          : null;
  }, [data, index, measure]);
  const shade = useMemo(
    () =>
      params.get("colour") === "queue"
        ? (i) => (data.queues[i] ? `c${queueColour(data.queues[i])}` : null)
        : null,
    [data, params.get("colour")],
  );
  const mark = useMemo(() => (i) => Boolean(data.closed[i]), [data]);
  const name = resourceName(resource);
  const nodes = plural(data.names.length, "node");
  const words = (i) =>
    [
      data.names[i],
      whole[i]
        ? `${partOf(resource, data.allocated[index][i], whole[i])} ${name} allocated`
        : `has no ${name}`,
      data.requested[index][i] > data.allocated[index][i]
        ? `${amount(resource, data.requested[index][i] - data.allocated[index][i])} more promised`
        : "",
      measure === "measured" ? `${percent(part(i))} measured` : "",
      data.queues[i] ? `mostly queue ${data.queues[i]}` : "",
      data.closed[i] ? `unschedulable: ${data.closed[i].join(", ")}` : "",
    ]
      .filter(Boolean)
      .join("\n");
  const closed = Object.keys(data.closed).length;
  const [sort, onSort] = useSort("name");
  const rows = useMemo(() => data.names.map((_, i) => i), [data]);
  const value = useMemo(
    () => (i) =>
      ({ name: data.names[i], part: part(i) ?? -1, closed: data.closed[i] ? 0 : 1 })[sort.key] ??
      data.names[i],
    [data, part, sort.key],
  );
  const sorted = useSorted(rows, value, sort.down);
  const columns = [
    {
      key: "name",
      title: "node",
      sort: true,
      width: "minmax(120px, 1fr)",
      card: "lead-cell",
      cell: (i) => html`<${NodeLink} node=${data.names[i]} />`,
    },
    {
      key: "part",
      title: `${resourceName(resource)}, ${measure}`,
      sort: true,
      width: "minmax(160px, 1fr)",
      cell: (i) => html`
        <span class="figure">${percent(part(i))}</span>
        ${" "}
        <span class="soft">
          ${whole[i] ? partOf(resource, data.allocated[index][i], whole[i]) : ""}
        </span>
      `,
    },
    {
      key: "group",
      title: by || "group",
      width: "minmax(100px, .7fr)",
      cell: (i) =>
        (by === "queue" ? data.queues : data.groups.find((group) => group.by === by)?.of)?.[i] ||
        "",
    },
    {
      key: "closed",
      title: "takes pods",
      sort: true,
      width: "minmax(120px, 1fr)",
      cell: (i) =>
        data.closed[i]
          ? html`<span class="state failed">${data.closed[i].join(", ")}</span>`
          : "yes",
    },
  ];
  const ways = [
    ["", "nothing"],
    ...data.groups.map((group) => [group.by, group.by]),
    ["queue", "queue"],
  ];
  return html`
    <div class="tools">
      <${Tabs}
        label="Resource"
        value=${resource.name}
        options=${data.resources.map((r) => [r.name, resourceName(r)])}
        onChange=${(name) => setQuery({ resource: name })} />
      <${Tabs}
        label="Amount"
        value=${measure}
        options=${MEASURES.map(([key, text]) => [
          key,
          text,
          key === "measured" && !data.measured && "No source of measurements is configured",
        ])}
        onChange=${(show) => setQuery({ show })} />
      <${Choice}
        label="Group by"
        value=${by}
        options=${ways}
        onChange=${(value_) => setQuery({ by: value_ || "nothing" })} />
      <${Choice}
        label="Colour"
        value=${params.get("colour") || ""}
        options=${[
          ["", "use"],
          ["queue", "queue that holds most"],
        ]}
        onChange=${(colour) => setQuery({ colour })} />
      <${Tabs}
        label="View"
        value=${view}
        options=${[
          ["map", "map"],
          ["list", "list"],
        ]}
        onChange=${(v) => setQuery({ view: v })} />
    </div>
    ${
      view === "list"
        ? html`
            <${LongTable}
              label="Nodes"
              columns=${columns}
              rows=${sorted}
              sort=${sort}
              onSort=${onSort}
              href=${(i) => to(`/nodes/${encodeURIComponent(data.names[i])}`)}
              rowHeight=${32}
              cardHeight=${92} />
          `
        : html`
            <section>
              <p class="key">
                <span>
                  idle
                  <i class="ramp"></i>
                  full
                </span>
                <span>
                  <i class="none"></i>
                  has none
                </span>
                <span>
                  <i class="closed"></i>
                  unschedulable
                </span>
                <span class="soft">
                  ${
                    closed
                      ? `${number(closed)} of ${nodes} unschedulable`
                      : `${nodes}, all schedulable`
                  }
                </span>
              </p>
              <${HeatMap}
                groups=${groups}
                part=${part}
                shade=${shade}
                mark=${mark}
                words=${words}
                label=${`${name} ${measure} on ${nodes}`}
                onOpen=${(i) => go(to(`/nodes/${encodeURIComponent(data.names[i])}`))} />
            </section>
          `
    }
    <${Fragmentation} data=${data} shape=${shape} />
  `;
}

export function Nodes() {
  const document = useDocument(source("/api/nodes"));
  return html`
    <h1 tabindex="-1">Nodes</h1>
    <${Needs} of=${document} what="Looking at the nodes">
      ${(data) =>
        data.names.length
          ? html`<${Map_} data=${data} />`
          : html`
              <${Empty} title="No node">
                <p>
                  A cluster without nodes runs nothing.${" "}
                  <code>kubectl apply -f node.yaml</code>
                  ${" "}adds one to an embedded cluster.
                </p>
              <//>
            `}
    <//>
  `;
}
