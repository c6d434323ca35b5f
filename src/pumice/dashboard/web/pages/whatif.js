// What if?
import { html, useEffect, useRef, useState } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { answer, get, news, useDocument } from "../data.js";
import { Choice, Loading, Needs, Problem, query, setQuery, source } from "../parts.js";
import { readShared, share } from "../shared.js";
import { Outcome } from "./outcome.js";

const FIELDS = [
  ["capability", "capability"],
  ["deserved", "deserved"],
  ["guarantee", "guarantee"],
  ["weight", "weight"],
];
const lines = (key) => query().getAll(key);
function setLines(key, values) {
  const params = query();
  params.delete(key);
  for (const value of values) params.append(key, value);
  history.replaceState(null, "", `${location.pathname}?${params}${location.hash}`);
  setQuery({});
}
function Change({ words, onGone }) {
  return html`
    <li>
      <span>${words}</span>
      ${" "}
      <button type="button" onClick=${onGone} aria-label=${`take back: ${words}`}>✕</button>
    </li>
  `;
}

/** A row in which a change is chosen and added. */
function Adder({ label, children, onAdd, verb = "Add" }) {
  return html`
    <fieldset class="adder">
      <legend>${label}</legend>
      ${children}
      <button type="button" onClick=${onAdd}>${verb}</button>
    </fieldset>
  `;
}

function Form({ queues, nodes, jobs, run, busy }) {
  const params = query();
  const [queue, setQueue] = useState(queues[0]?.name || "");
  const [field, setField] = useState("capability");
  const [resource, setResource] = useState("cpu");
  const [value, setValue] = useState("");
  const [count, setCount] = useState("1");
  const [like, setLike] = useState("");
  const [node, setNode] = useState(nodes[0] || "");
  const [text, setText] = useState("");
  const [conf, setConf] = useState(null);
  const [fits, setFits] = useState(true);
  const known = useRef(false); // whether the address was read
  useEffect(() => {
    readShared().then((texts) => {
      setText(texts.manifest || "");
      setConf(texts.conf || null);
      known.current = true;
    });
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (known.current) share({ manifest: text, conf }).then(setFits);
    }, 250);
    return () => clearTimeout(timer);
  }, [text, conf]);
  const [runtime, setRuntime] = useState(params.get("runtime") || "");
  const [sets, adds, drains, removes] = ["set", "add", "drain", "remove"].map(lines);
  const add = (key, item) => {
    if (item) setLines(key, [...lines(key), item]);
  };
  const without = (key, i) =>
    setLines(
      key,
      lines(key).filter((_, k) => k !== i),
    );
  const openConf = async () => setConf((await get(source("/api/configuration"))).text);
  const submit = (event) => {
    event.preventDefault();
    run({
      job: text.trim() ? "" : params.get("job") || "",
      manifest: text,
      conf: conf || "",
      settings: sets,
      add_nodes: adds,
      drain: drains,
      remove: removes,
      default_runtime: runtime,
    });
  };
  const path =
    field === "weight"
      ? `queue/${queue}.weight=${value}`
      : `queue/${queue}.${field}.${resource}=${value}`;
  return html`
    <form class="change" onSubmit=${submit}>
      <label class="field">
        <span>An existing job</span>
        <input
          list="jobs"
          value=${params.get("job") || ""}
          onChange=${(e) => setQuery({ job: e.target.value.trim() })}
          placeholder="namespace/name" />
        <datalist id="jobs">
          ${jobs.slice(0, 2000).map(
            (job) => html`<option value=${job}></option>`,
          )}
        </datalist>
      </label>
      <label class="field">
        <span>or a new job, as YAML</span>
        <textarea
          rows="5"
          spellcheck=${false}
          value=${text}
          onInput=${(e) => setText(e.target.value)}
          placeholder=${"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n…"}></textarea>
      </label>
      <${Adder}
        label="Change a queue"
        onAdd=${() => {
          if (value) {
            add("set", path);
            setValue("");
          }
        }}>
        <${Choice}
          label="queue"
          value=${queue}
          options=${queues.map((one) => [one.name, one.name])}
          onChange=${setQueue} />
        <${Choice} label="field" value=${field} options=${FIELDS} onChange=${setField} />
        ${
          field !== "weight" &&
          html`
            <label class="choice">
              <span>resource</span>
              <input
                size="10"
                value=${resource}
                onInput=${(e) => setResource(e.target.value.trim())} />
            </label>
          `
        }
        <label class="choice">
          <span>value</span>
          <input size="7" value=${value} onInput=${(e) => setValue(e.target.value.trim())} />
        </label>
      <//>
      <${Adder} label="Add nodes" onAdd=${() => add("add", like ? `${count}=${like}` : count)}>
        <label class="choice">
          <span>how many</span>
          <input
            size="4"
            inputmode="numeric"
            value=${count}
            onInput=${(e) => setCount(e.target.value.trim())} />
        </label>
        <label class="choice">
          <span>like</span>
          <input
            list="nodes"
            size="14"
            value=${like}
            placeholder="the largest"
            onInput=${(e) => setLike(e.target.value.trim())} />
        </label>
      <//>
      <${Adder}
        label="Remove a node"
        verb="Remove it with its pods"
        onAdd=${() => add("remove", node)}>
        <label class="choice">
          <span>node</span>
          <input
            list="nodes"
            size="14"
            value=${node}
            onInput=${(e) => setNode(e.target.value.trim())} />
        </label>
        <button type="button" onClick=${() => add("drain", node)}>Drain it</button>
      <//>
      <datalist id="nodes">
        ${nodes.slice(0, 2000).map(
          (name) => html`<option value=${name}></option>`,
        )}
      </datalist>
      ${
        conf === null
          ? html`<p><button type="button" onClick=${openConf}>Edit the configuration</button></p>`
          : html`
              <label class="field">
                <span>Configuration</span>
                <textarea
                  rows="14"
                  spellcheck=${false}
                  value=${conf}
                  onInput=${(e) => setConf(e.target.value)}></textarea>
              </label>
            `
      }
      <label class="choice">
        <span>pods without a stated run time run for</span>
        <input
          size="7"
          value=${runtime}
          placeholder="unlimited"
          onInput=${(e) => {
            setRuntime(e.target.value.trim());
            setQuery({ runtime: e.target.value.trim() });
          }} />
      </label>
      ${
        sets.length + adds.length + drains.length + removes.length > 0 &&
        html`
          <ul class="changes" aria-label="Changes">
            ${sets.map(
              (one, i) => html`
                <${Change} words=${`set ${one}`} onGone=${() => without("set", i)} />
              `,
            )}${adds.map(
              (one, i) => html`
                <${Change}
                  words=${`add nodes ${one.replace("=", " like ")}`}
                  onGone=${() => without("add", i)} />
              `,
            )}${drains.map(
              (one, i) => html`
                <${Change} words=${`drain ${one}`} onGone=${() => without("drain", i)} />
              `,
            )}${removes.map(
              (one, i) => html`
                <${Change} words=${`lose ${one}`} onGone=${() => without("remove", i)} />
              `,
            )}
          </ul>
        `
      }
      ${
        !fits &&
        html`
          <p class="note">
            The job and the configuration are too long for a link: whoever gets the address of this
            page does not see them.
          </p>
        `
      }
      <p>
        <button type="submit" class="main" disabled=${busy}>
          ${busy ? "Trying …" : "What would happen?"}
        </button>
      </p>
    </form>
  `;
}

export function WhatIf() {
  const queues = useDocument(source("/api/queues"));
  const nodes = useDocument(source("/api/nodes"));
  const jobs = useDocument(source("/api/jobs"));
  const [state, set] = useState({});
  const run = async (asked) => {
    set({ busy: true });
    try {
      set({ data: await answer(source("/api/whatif"), asked) });
    } catch (error) {
      set({ error });
    }
  };
  if (news.session && news.session.namespaces !== null)
    return html`
      <h1 tabindex="-1">What-if</h1>
      <${Problem}
        error=${{
          status: 403,
          message:
            "a what-if question plays the whole cluster, and you may see only some namespaces",
        }} />
    `;
  return html`
    <h1 tabindex="-1">What-if</h1>
    <p class="lead">
      A change is tried on a copy of the cluster, which is then played until nothing changes any
      more. Nothing is written.
    </p>
    <${Needs} of=${queues} what="Looking at the cluster">
      ${() =>
        nodes.data && jobs.data
          ? html`
              <div class="two whatif">
                <section>
                  <h2>The change</h2>
                  <${Form}
                    queues=${queues.data.queues}
                    nodes=${nodes.data.names}
                    jobs=${jobs.data.job}
                    run=${run}
                    busy=${state.busy} />
                </section>
                <section aria-live="polite">
                  <h2>Before and after</h2>
                  ${
                    state.busy
                      ? html`<${Loading} what="Playing both sides" />`
                      : state.error
                        ? html`<${Problem} error=${state.error} />`
                        : state.data
                          ? html`<${Outcome} answer=${state.data} />`
                          : html`<p class="soft">Pick a job or add a change, then ask.</p>`
                  }
                </section>
              </div>
            `
          : html`<${Loading} what="Looking at the cluster" />`}
    <//>
  `;
}
