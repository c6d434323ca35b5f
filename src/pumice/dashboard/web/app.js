// The frame of all pages: which page an address shows, the bar above, and what goes wrong with all.
import {
  html,
  render,
  useEffect,
  useErrorBoundary,
  useReducer,
  useRef,
  useState,
} from "./vendor/htm-3.1.1/htm-preact.min.js";
import {
  answer,
  clusterNow,
  connect,
  get,
  news,
  timeShown,
  useDocument,
  useNews,
  useTick,
} from "./data.js";
import { clock, duration, number, utc } from "./format.js";
import { go, learnQueues, Link, onMove, Problem, query, setQuery, source, to } from "./parts.js";
import { CyclePage, Cycles } from "./pages/cycles.js";
import { JobPage } from "./pages/job.js";
import { Jobs } from "./pages/jobs.js";
import { NodePage } from "./pages/node.js";
import { Nodes } from "./pages/nodes.js";
import { Overview } from "./pages/overview.js";
import { QueuePage, Queues } from "./pages/queues.js";
import { Nothing, SearchPage, useFound } from "./pages/search.js";
import { Simulations } from "./pages/simulations.js";
import { WhatIf } from "./pages/whatif.js";

const PAGES = [
  ["/", "Overview"],
  ["/queues", "Queues"],
  ["/jobs", "Jobs"],
  ["/nodes", "Nodes"],
  ["/cycles", "Cycles"],
  ["/simulations", "Simulations"],
  ["/whatif", "What-if"],
];
const ROUTES = [
  [/^\/$/, Overview],
  [/^\/queues$/, Queues],
  [/^\/queues\/([^/]+)$/, QueuePage],
  [/^\/jobs$/, Jobs],
  [/^\/jobs\/([^/]+\/[^/]+)$/, JobPage],
  [/^\/nodes$/, Nodes],
  [/^\/nodes\/([^/]+)$/, NodePage],
  [/^\/cycles$/, Cycles],
  [/^\/cycles\/(\d+)$/, CyclePage],
  [/^\/simulations$/, Simulations],
  [/^\/whatif$/, WhatIf],
  [/^\/search$/, SearchPage],
];
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function found(path) {
  for (const [pattern, page] of ROUTES) {
    const match = path.match(pattern);
    if (match) return [page, match[1] === undefined ? "" : decoded(match[1])];
  }
  return [null, ""];
}

function Live() {
  const current = useNews();
  useTick();
  if (!current.session) return html`<span class="live" role="status">connecting …</span>`;
  if (query().get("at")) return html`<span class="live still">viewing history</span>`;
  if (current.broken)
    return html`
      <span
        class="live stale"
        role="status"
        title="The event stream was interrupted; reconnecting.">
        stale for ${duration((Date.now() - current.broken) / 1000)}, retrying
      </span>
    `;
  const now = clusterNow();
  const still = current.session.speed === 0;
  return html`
    <span class=${still ? "live still" : "live"}>
      <time title=${utc(now)}>${clock(now)}</time>
      ${" "}${still ? (current.session.past ? "as recorded" : "as in the files") : "live"}
      <i aria-hidden="true"></i>
    </span>
  `;
}

const SHOWN = 8;
/** Jumps to a job, a node or a queue by a part of its name. */
function Search() {
  const [words, set] = useState("");
  const [chosen, choose] = useState(0);
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  const { found: all, busy } = useFound(words, open);
  useEffect(() => {
    const heed = (event) => {
      const typing = event.target.closest?.("input,textarea,select");
      if (
        (event.key === "k" && (event.metaKey || event.ctrlKey)) ||
        (event.key === "/" && !typing)
      ) {
        event.preventDefault();
        box.current?.focus();
      }
    };
    addEventListener("keydown", heed);
    return () => removeEventListener("keydown", heed);
  }, []);
  const text = words.trim();
  const hits = all.slice(0, SHOWN).map((hit) => [hit.kind, hit.name, hit.href]);
  if (text && !busy && all.length > SHOWN)
    hits.push(["all", `${number(all.length)} with “${text}”`, to("/search", { q: text })]);
  if (text && !busy && !all.length)
    hits.push([
      "",
      html`<${Nothing} words=${text} />`,
      to("/search", { q: text }),
    ]);
  const take = (hit) => {
    if (hit) {
      go(hit[2]);
      set("");
      setOpen(false);
      box.current?.blur();
    }
  };
  const keys = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose((n) =>
        Math.min(
          Math.max(n + (event.key === "ArrowDown" ? 1 : -1), 0),
          Math.max(hits.length - 1, 0),
        ),
      );
    }
    if (event.key === "Enter") take(hits[chosen] || (text && ["", "", to("/search", { q: text })]));
    if (event.key === "Escape") {
      set("");
      box.current?.blur();
    }
  };
  return html`
    <div class="search">
      <input
        ref=${box}
        type="search"
        role="combobox"
        aria-expanded=${hits.length ? "true" : "false"}
        aria-controls="hits"
        aria-label="Find a job, node or queue"
        placeholder="Find a job, node or queue  ( / )"
        value=${words}
        onFocus=${() => setOpen(true)}
        onBlur=${() => setTimeout(() => setOpen(false), 200)}
        onInput=${(e) => {
          set(e.target.value);
          choose(0);
        }}
        onKeyDown=${keys} />
      <ul id="hits" role="listbox" aria-label="Found" hidden=${!open || !hits.length}>
        ${hits.map(
          (hit, i) => html`
            <li
              role="option"
              aria-selected=${i === chosen ? "true" : "false"}
              onMouseDown=${() => take(hit)}>
              <span class="soft">${hit[0]}</span>
              ${" "}${hit[1]}
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

const THEMES = { "": "auto", light: "light", dark: "dark" };
function Theme() {
  const [theme, set] = useState(localStorage.getItem("theme") || "");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    dispatchEvent(new Event("theme"));
  }, [theme]);
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme) + 1) % names.length];
  return html`
    <button
      type="button"
      class="theme"
      title="Colours: automatic, light or dark"
      onClick=${() => set(next)}
      aria-label=${`Colours: ${THEMES[theme]}; switch to ${THEMES[next]}`}>
      ${{ "": "◐", light: "☀", dark: "☾" }[theme]}
    </button>
  `;
}

function Bar({ path }) {
  const { session } = useNews();
  const here = (href) =>
    href === "/" ? path === "/" : path === href || path.startsWith(`${href}/`);
  return html`
    <header>
      <div class="top">
        <${Link} href="/" class="brand">
          <img src="/static/icon.svg" alt="" width="20" height="20" />
          Pumice
        <//>
        <span class="cluster" title=${session?.title || ""}>${session?.title || ""}</span>
        <${Search} />
        <${Live} />
        <${Theme} />
        ${
          session?.person &&
          html`
            <button
              type="button"
              class="theme"
              onClick=${logout}
              title=${`logged in as ${session.person}`}>
              log out
            </button>
          `
        }
      </div>
      <nav aria-label="Pages">
        ${PAGES.map(
          ([href, name]) => html`
            <${Link} href=${to(href)} aria-current=${here(href) ? "page" : undefined}>${name}<//>
          `,
        )}
      </nav>
    </header>
  `;
}
async function logout() {
  await answer("/api/logout", {});
  location.reload();
}

const local = (t) =>
  new Date(t * 1000 - new Date(t * 1000).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
const STEPS = [
  [-3600, "− 1 h"],
  [-300, "− 5 min"],
  [300, "+ 5 min"],
  [3600, "+ 1 h"],
];
/** Any time of the record: a picker, a slider, steps. */
function TimeBar() {
  const document = useDocument(source("/api/past"));
  const [dragged, drag] = useState(null);
  const at = query().get("at");
  if (!document.data) return document.error && at ? html`<${Nowhere} />` : null;
  const { start, end } = document.data;
  news.then = document.data.at || end;
  const shown = dragged ?? clusterNow();
  const show = (t) => {
    drag(null);
    setQuery({ at: t >= end ? "" : utc(Math.max(t, start)) });
  };
  return html`
    <div class="banner timebar" role="group" aria-label="Time">
      <span class="pick">
        <input
          type="datetime-local"
          step="1"
          aria-label="Time that is shown"
          min=${local(start)}
          max=${local(end)}
          value=${local(shown)}
          onChange=${(e) => e.target.value && show(new Date(e.target.value) / 1000)} />
        ${STEPS.map(
          ([by, words]) => html`
            <button
              type="button"
              disabled=${by < 0 ? shown <= start : shown >= end}
              onClick=${() => show(shown + by)}>
              ${words}
            </button>
          `,
        )}
        ${
          at
            ? html`
                <button type="button" onClick=${() => show(end)}>
                  ${news.session.speed ? "Back to now" : "To the end"}
                </button>
                <a href=${source("/api/snapshot")} download>Save it as a snapshot</a>
              `
            : html`
                <span class="soft">
                  ${news.session.speed ? "now" : "the end of the record"}
                </span>
              `
        }
      </span>
      <span class="scrub">
        <input
          type="range"
          aria-label="Time that is shown"
          aria-valuetext=${utc(shown)}
          min=${Math.floor(start)}
          max=${Math.ceil(end)}
          step="1"
          value=${shown}
          onInput=${(e) => drag(Number(e.target.value))}
          onChange=${(e) => show(Number(e.target.value))} />
        <span class="ends soft" aria-hidden="true">
          <time title=${utc(start)}>${local(start).replace("T", " ")}</time>
          <time title=${utc(end)}>${local(end).replace("T", " ")}</time>
        </span>
      </span>
    </div>
  `;
}
/** For a time that the record does not have; each page says why. */
const Nowhere = () => html`
  <p class="banner">
    This time cannot be shown.${" "}
    <button type="button" onClick=${() => setQuery({ at: "" })}>Show the last one</button>
  </p>
`;

function Banner() {
  const current = useNews();
  const at = /^\d+$/.test(query().get("at") || "") && query().get("at");
  const live = query();
  live.delete("at");
  const rest = live.toString();
  const partial = current.session && current.session.namespaces !== null;
  return html`
    ${current.session?.past && !at && html`<${TimeBar} />`}${
      at &&
      html`
        <p class="banner">
          You are looking at the cluster as it was when cycle ${at} began.${" "}
          <${Link} href=${`${location.pathname}${rest ? `?${rest}` : ""}`}>Back to now<//>
          ${" "}
          <a href=${`/api/snapshot?at=${at}`} download>Save it as a snapshot</a>
        </p>
      `
    }
    ${current.problem && html`<p class="banner warn" role="alert">${current.problem}</p>`}
    ${
      partial &&
      html`
        <p class="banner">
          You
          see ${
            current.session.namespaces.length
              ? `the namespaces ${current.session.namespaces.join(", ")}`
              : "no namespace"
          };
          jobs and pods of others are hidden, their amounts are counted.
        </p>
      `
    }
  `;
}

function Login() {
  const [problem, set] = useState("");
  const send = async (event) => {
    event.preventDefault();
    try {
      await answer("/api/login", { token: new FormData(event.target).get("token") });
      location.reload();
    } catch (error) {
      set(error.message);
    }
  };
  return html`
    <main class="login">
      <h1>Pumice</h1>
      <p>Log in: paste a token of the cluster, or the token that the dashboard was started with.</p>
      <form onSubmit=${send}>
        <label>
          Token${" "}
          <input type="password" name="token" autocomplete="off" required />
        </label>
        ${" "}
        <button type="submit">Log in</button>
      </form>
      ${problem && html`<p class="problem" role="alert">${problem}.</p>`}
    </main>
  `;
}

function Page({ path }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => {
    if (error) reset();
  }, [path]);
  const [page, name] = found(path);
  if (error) return html`<${Problem} error=${error} again=${reset} />`;
  if (!page)
    return html`
      <h1 tabindex="-1">No such page</h1>
      <${Problem} error=${{ status: 404, message: `there is no page ${path}` }} />
    `;
  return html`<${page} name=${name} key=${path} />`;
}

function App() {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => onMove(again), []);
  const current = useNews();
  if (current.login) return html`<${Login} />`;
  const path = location.pathname;
  return html`
    <a class="skip" href="#main">Skip to the page</a>
    <${Bar} path=${path} />
    <main id="main">
      <${Banner} />
      <${Page} path=${path} />
    </main>
    <footer>
      Pumice ${current.session?.version || ""}${
        current.session && !current.session.decides && !timeShown()
          ? " · cycles shown here are computed for this page and not carried out"
          : ""
      }
    </footer>
  `;
}

addEventListener("popstate", () => go(location.href, { replace: true }));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (
    !link ||
    link.origin !== location.origin ||
    link.target ||
    link.hasAttribute("download") ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey ||
    event.button
  )
    return;
  if (link.getAttribute("href").startsWith("#") || link.pathname.startsWith("/api/")) return;
  event.preventDefault();
  go(link.href);
});
document.documentElement.dataset.theme = localStorage.getItem("theme") || "";
const host = document.getElementById("app");
host.replaceChildren();
await connect();
if (news.session) {
  try {
    learnQueues((await get("/api/queues")).queues.map((queue) => queue.name));
  } catch {
    /* colours come as queues are met */
  }
}
render(
  html`<${App} />`,
  host,
);
