// What somebody may do about a job or a queue, if the dashboard was started with --allow-actions.
import { html, useEffect, useState } from "./vendor/htm-3.1.1/htm-preact.min.js";
import { answer, news, useAnswer } from "./data.js";
import { JobLink, Problem, query } from "./parts.js";

/** The word on the button, and what is asked before it is done; nothing: it is done at once. */
const ACTIONS = {
  suspend: ["Suspend", "Stop its pods and keep the job? It can be resumed."],
  resume: ["Resume", ""],
  terminate: ["Terminate", "Stop its pods for good? The job stays and cannot be resumed."],
  delete: ["Delete", "Delete the job with its pods?"],
  close: ["Close queue", "Let no new job into the queue? Running jobs go on."],
  open: ["Open queue", ""],
};
const allowed = () => Boolean(news.session?.actions) && !query().get("at");
const place = (name) => name.split("/").map(encodeURIComponent).join("/");

/** Buttons for what the person who looks may do; ``mark`` changes when the object does. */
export function Actions({ kind, name, mark = "", showsState = false }) {
  const [n, again] = useState(0);
  const [asked, ask] = useState("");
  const [done, set] = useState({});
  const offer = useAnswer(
    allowed() ? `/api/actions/${kind}s/${place(name)}?r=${n}-${encodeURIComponent(mark)}` : null,
  );
  useEffect(() => {
    if (!done.words) return undefined;
    // the controllers need a moment
    const timers = [1000, 4000].map((ms) => setTimeout(() => again((old) => old + 1), ms));
    return () => timers.forEach(clearTimeout);
  }, [done.words]);
  const act = async (action) => {
    ask("");
    set({ busy: true });
    try {
      const { done: what } = await answer("/api/actions", { action, [kind]: name });
      set({ words: `Asked the cluster to ${what}.` });
    } catch (error) {
      set({ error });
    }
  };
  if (!allowed() || !offer.data?.state) return null; // also where there is nothing to act on
  const { state, actions } = offer.data;
  return html`
    <div class="actions">
      ${
        showsState &&
        html`
          <p>
            Its state is${" "}
            <b>${state}</b>
            .
          </p>
        `
      }
      ${
        asked
          ? html`
              <span role="alertdialog" aria-label=${ACTIONS[asked][1]}>
                ${ACTIONS[asked][1]}${" "}
                <button type="button" class="danger" onClick=${() => act(asked)}>
                  ${ACTIONS[asked][0]}
                </button>
                ${" "}
                <button type="button" onClick=${() => ask("")}>Cancel</button>
              </span>
            `
          : actions.map(
              (action) => html`
                <button
                  type="button"
                  disabled=${done.busy}
                  onClick=${() => (ACTIONS[action][1] ? ask(action) : act(action))}>
                  ${ACTIONS[action][0]}
                </button>
                ${" "}
              `,
            )
      }
      <span role="status" class="soft">
        ${done.busy ? "Asking the cluster …" : done.words || ""}
      </span>
      ${done.error && html`<${Problem} error=${done.error} />`}
    </div>
  `;
}

/** Jobs that are suspended have no pod group, so the scheduler does not know them. */
export function Suspended() {
  const found = useAnswer(allowed() ? "/api/actions/suspended" : null);
  if (!allowed() || !found.data?.jobs.length) return null;
  return html`
    <section>
      <h2>Suspended</h2>
      <ul class="findings plainlist">
        ${found.data.jobs.map(
          (job) => html`<li><${JobLink} job=${job} /></li>`,
        )}
      </ul>
    </section>
  `;
}
