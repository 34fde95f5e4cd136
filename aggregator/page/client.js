// SPDX-License-Identifier: GPL-3.0-or-later
// The client of the REST interface: a session by cookie, requests, and events. A cookie is sent by the
// browser itself; requests that change something also need the session's CSRF token.

const BASE = "api/v1/";
const POLL_MS = 5000; // without events
const CHECK_MS = 10000; // beside events: cells of timelines are added without one
const SILENT_MS = 45000; // a stream of events without a ping for so long is lost
const RETRY_MS = 30000; // after the stream was refused
const GATHER_MS = 300; // events that come together cause one refresh

let csrf = "", scope = "";

export class Problem extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

/** The session may be a newer one, begun in another tab: its CSRF token is read, and the request repeated once. */
async function send(method, path, options = {}) {
  try {
    return await sendOnce(method, path, options);
  } catch (problem) {
    if (problem.code !== "csrf")
      throw problem;
    adopt(await sendOnce("GET", "session"));
    return sendOnce(method, path, options);
  }
}

async function sendOnce(method, path, options = {}) {
  const headers = { Accept: "application/json, application/problem+json" };
  if (options.token)
    headers.Authorization = "Bearer " + options.token;
  if (options.body)
    headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrf && !options.token)
    headers["X-CSRF-Token"] = csrf;
  let answer;
  try {
    answer = await fetch(BASE + path, {
      method, headers, credentials: "same-origin", redirect: "error",
      body: options.body ? JSON.stringify(options.body) : undefined,
      signal: AbortSignal.timeout(20000),
    });
  } catch {
    throw new Problem(0, "unreachable", "the aggregator cannot be reached");
  }
  if (answer.ok) {
    try {
      return answer.status === 204 ? null : await answer.json();
    } catch {
      throw new Problem(0, "unreachable", "the reply of the aggregator was cut");
    }
  }
  const problem = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, problem.code || "", problem.detail || problem.title || "status " + answer.status);
}

function adopt(session) {
  csrf = session.csrf;
  scope = session.scope;
  return session;
}

/** True: this browser has a session, or none is needed. */
export async function resume() {
  try {
    adopt(await send("GET", "session"));
    return true;
  } catch (problem) {
    if (problem.status === 401 || problem.status === 404)
      return false;
    throw problem;
  }
}

export async function login(token) {
  adopt(await send("POST", "session", { token }));
}

/** Throws if the session may still exist. */
export async function logout() {
  try {
    await send("DELETE", "session");
  } catch (problem) {
    if (problem.status !== 401 && problem.status !== 404)
      throw problem;
  }
  csrf = scope = "";
}

export function isAdmin() {
  return scope === "admin";
}

export function get(path) {
  return send("GET", path);
}

export function post(path, body) {
  return send("POST", path, { body });
}

export function remove(path) {
  return send("DELETE", path);
}

/** Items of a list, page by page up to a number; `more`: there are further ones. */
export async function list(path, most = 1000) {
  const items = [];
  let next = "", first = null;
  do {
    const query = (path.includes("?") ? "&" : "?") + "limit=" + Math.min(1000, most) +
      (next ? "&cursor=" + encodeURIComponent(next) : "");
    const page = await send("GET", path + query);
    first ||= page;
    items.push(...page.items);
    next = page.next;
  } while (next && items.length < most);
  return { ...first, items, more: Boolean(next) };
}

/**
 * Calls `refresh` whenever something may have changed, and `report` with the state of the connection:
 * "live", "polling", or "stale" with the time of the last answer in ms.
 */
export class Live {
  constructor(refresh, report) {
    this.refresh = refresh;
    this.report = report;
    this.answered = Date.now();
    this.heard = 0;
    this.due = this.running = this.again = this.closed = this.shownLive = false;
    this.timer = setInterval(() => this.tick(), 1000);
    this.checked = Date.now();
    this.open();
  }

  open() {
    this.source?.close();
    this.refused = 0;
    this.source = new EventSource(BASE + "events");
    this.source.onopen = () => this.hear();
    this.source.onerror = () => {
      // A lost stream is opened again by the browser, a refused one is not.
      this.heard = 0;
      if (this.source.readyState === EventSource.CLOSED)
        this.refused = Date.now();
      this.soon();
    };
    for (const kind of ["incident", "job", "node", "level", "reset", "message"])
      this.source.addEventListener(kind, () => {
        this.hear();
        this.soon();
      });
    this.source.addEventListener("ping", () => this.hear());
  }

  hear() {
    this.heard = Date.now();
  }

  isLive() {
    return this.heard > 0 && Date.now() - this.heard < SILENT_MS;
  }

  soon() {
    if (this.due)
      return;
    this.due = true;
    setTimeout(() => this.run(), GATHER_MS);
  }

  tick() {
    const now = Date.now();
    if (this.refused && now - this.refused >= RETRY_MS || this.heard && now - this.heard >= 2 * SILENT_MS) {
      this.heard = 0;
      this.open();
    }
    if (now - this.checked >= (this.isLive() ? CHECK_MS : POLL_MS))
      this.soon();
    if (this.failed)
      this.report("stale", this.answered);
    else if (this.shownLive && !this.isLive())
      this.tell("polling"); // a reply may take long
  }

  tell(name, text) {
    this.shownLive = name === "live";
    this.report(name, this.answered, text);
  }

  async run() {
    this.due = false;
    this.again = this.running;
    if (this.running || this.closed)
      return;
    this.running = true;
    this.checked = Date.now();
    try {
      await this.refresh();
      this.answered = Date.now();
      this.failed = false;
      if (!this.closed)
        this.tell(this.isLive() ? "live" : "polling");
    } catch (problem) {
      if (!(problem instanceof Problem))
        throw problem;
      this.failed = true;
      if (!this.closed)
        this.tell(problem.status === 401 ? "ended" : "stale", problem.message);
    } finally {
      this.running = false;
      if (this.again && !this.closed)
        this.soon();
    }
  }

  /** Nothing is reported any more, also not of a request that is under way. */
  close() {
    this.closed = true;
    clearInterval(this.timer);
    this.source.close();
  }
}
