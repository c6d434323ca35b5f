// Data from the server: the session, documents, answers, and change events.
import { useEffect, useReducer, useRef, useState } from "./vendor/htm-3.1.1/htm-preact.min.js";

export const news = {
  revision: "",
  now: 0,
  heard: 0,
  cycle: 0,
  problem: "",
  broken: 0,
  session: null,
  login: false,
  then: 0,
};
const listeners = new Set();
const tell = () => {
  for (const each of listeners) each();
};

const INSTANT = /T.*(Z|[+-]\d\d:\d\d)$/i;
/** The time of the record that is looked at, in seconds; null for now and for a cycle. */
export function timeShown() {
  const at = new URLSearchParams(location.search).get("at") || "";
  if (!at || /^\d+$/.test(at)) return null;
  const ms = INSTANT.test(at) ? Date.parse(at) : NaN;
  return Number.isNaN(ms) ? news.then : ms / 1000; // "03:10": the server says which day
}
/** The time of the cluster, by its own clock, or the time that is looked at. */
export function clusterNow() {
  const then = timeShown();
  if (then) return then;
  const speed = news.speed ?? news.session?.speed ?? 0;
  return news.now + (speed * (Date.now() - news.heard)) / 1000;
}

export class Trouble extends Error {
  constructor(problem, status) {
    super(problem);
    this.status = status;
  }
}
async function failed(response) {
  let problem = `the server answered ${response.status}`;
  try {
    problem = (await response.json()).problem || problem;
  } catch {
    /* no JSON: the status must do */
  }
  if (response.status === 401) {
    news.login = true;
    tell();
  }
  return new Trouble(problem, response.status);
}

const kept = new Map(); // address to its last mark and document
export async function get(path) {
  const known = kept.get(path);
  const response = await fetch(path, {
    headers: known ? { "If-None-Match": known.tag } : {},
    cache: "no-store",
  });
  if (response.status === 304) return known.data;
  if (!response.ok) throw await failed(response);
  if (response.status === 202) return null;
  const data = await response.json();
  const tag = response.headers.get("ETag");
  if (tag) kept.set(path, { tag, data });
  if (kept.size > 40) kept.delete(kept.keys().next().value);
  return data;
}
const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
/** An answer that takes its time: asked for until it is there. */
export async function answer(path, body, signal) {
  for (;;) {
    const options =
      body === undefined
        ? {}
        : {
            method: "POST",
            body: JSON.stringify(body),
            headers: {
              "Content-Type": "application/json",
              "X-Pumice-Csrf": news.session?.csrf || "",
            },
          };
    const response = await fetch(path, { ...options, signal, cache: "no-store" });
    if (response.status !== 202) {
      if (!response.ok) throw await failed(response);
      return response.json();
    }
    await pause(300);
  }
}

// News

let stream = null;
export async function connect() {
  try {
    news.session = await get("/api/session");
    news.login = false;
  } catch (error) {
    if (error.status !== 401) {
      news.broken ||= Date.now();
      setTimeout(connect, 2000);
    }
    tell();
    return;
  }
  stream?.close();
  stream = new EventSource("/api/news");
  stream.onmessage = (event) => {
    Object.assign(news, JSON.parse(event.data), { heard: Date.now(), broken: 0 });
    tell();
  };
  stream.onerror = () => {
    news.broken ||= Date.now();
    tell();
  };
  tell();
}
export function useNews() {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    listeners.add(again);
    return () => listeners.delete(again);
  }, []);
  return news;
}
/** Renders again every second: ages and clocks change. */
export function useTick(ms = 1000) {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(again, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** A document that is fetched again when the cluster has changed: at most four times a second, and
 *  less often the longer it takes. ``by`` is what it depends on: revision or cycle. */
export function useDocument(path, by = "revision") {
  const [state, set] = useState({ data: null, error: null, path: null });
  const current = useNews();
  const work = useRef({ busy: false, due: 0, again: null });
  const mark = path && path.includes("at=") ? "still" : current[by];
  useEffect(() => {
    if (!path || !current.session) return undefined;
    let gone = false;
    const load = async () => {
      if (work.current.busy && work.current.path === path) {
        work.current.again = load;
        return;
      }
      Object.assign(work.current, { busy: true, path, again: null });
      const started = performance.now();
      try {
        const data = await get(path);
        if (!gone || work.current.path === path) set({ data, error: null, path });
      } catch (error) {
        if (!gone) set((old) => ({ data: old.path === path ? old.data : null, error, path }));
      }
      work.current.due = performance.now() + Math.max(250, 8 * (performance.now() - started));
      work.current.busy = false;
      if (work.current.again) work.current.again();
    };
    const wait = work.current.path === path ? Math.max(0, work.current.due - performance.now()) : 0;
    const timer = setTimeout(load, wait);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path, mark, Boolean(current.session)]);
  return state.path === path ? state : { data: null, error: null, path };
}
/** An answer for a page: requested again when its address changes or on demand. */
export function useAnswer(path, body) {
  const [state, set] = useState({ data: null, error: null, busy: false, key: "" });
  const key = path ? `${path} ${JSON.stringify(body ?? null)}` : "";
  useEffect(() => {
    if (!path || !news.session) return undefined;
    const stop = new AbortController();
    set((old) => ({ ...old, busy: true, key }));
    answer(path, body, stop.signal)
      .then((data) => set({ data, error: null, busy: false, key }))
      .catch((error) => {
        if (error.name !== "AbortError") set({ data: null, error, busy: false, key });
      });
    return () => stop.abort();
  }, [key]);
  return state;
}
