// Asking the service. What goes wrong becomes an Error whose message is one line to show.

const KEPT = "maxdisc-token";
let token = remembered();
let limits = null;

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// A browser may forbid storage: then the token is kept in memory alone.
function remembered() {
  try {
    return sessionStorage.getItem(KEPT) || "";
  } catch {
    return "";
  }
}

export function setToken(value) {
  token = value;
  try {
    if (value) sessionStorage.setItem(KEPT, value);
    else sessionStorage.removeItem(KEPT);
  } catch {
    /* in memory then */
  }
}

export const hasToken = () => token !== "";

export function setLimits(value) {
  limits = value || null;
}

/** What the service takes at most, in bytes; null if it does not say. */
export const mostBytes = () => (limits && limits.bytes) || null;

/** Ask, and ask again a few times while the service is busy: what it works out once for a model may take a while. */
export async function askPatiently(path, given, times = 6) {
  for (;;) {
    try {
      return await ask(path, given);
    } catch (error) {
      if (error.status !== 503 || --times === 0) throw error;
      await new Promise((done) => setTimeout(done, 1500));
      given.signal?.throwIfAborted();
    }
  }
}

/** Ask for `path`; `json` or `body` make it a POST. Gives JSON, or text if `as` is "text". */
export async function ask(path, { query = {}, json, body, type, as = "json", signal } = {}) {
  const parameters = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== undefined && value !== ""),
  );
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  let sent = body;
  if (json !== undefined) {
    sent = new Blob([JSON.stringify(json)]);
    headers["Content-Type"] = "application/json";
  } else if (type) headers["Content-Type"] = type;
  refuseTooLarge(sent);
  const address = parameters.size ? `${path}?${parameters}` : path;
  let answer;
  try {
    answer = await fetch(address, {
      method: sent === undefined ? "GET" : "POST",
      headers,
      body: sent,
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("The service does not answer. Is it still running?", 0);
  }
  if (!answer.ok) throw await failure(answer);
  return as === "text" ? answer.text() : answer.json();
}

// A service that refuses a large body hangs up while it is still being sent, and its reason is lost.
function refuseTooLarge(sent) {
  const most = mostBytes();
  if (sent !== undefined && most && sent.size > most) {
    throw new ServiceError(
      `This is too large: ${sent.size.toLocaleString("en")} bytes, and the service takes ${most.toLocaleString("en")} at most. Send less at a time.`,
      413,
    );
  }
}

async function failure(answer) {
  let words = "";
  try {
    words = (await answer.json()).error;
  } catch {
    /* no JSON: a proxy, perhaps */
  }
  if (typeof words !== "string" || !words)
    words = `The service answered ${answer.status} ${answer.statusText}`.trim() + ".";
  const wait = Number(answer.headers.get("Retry-After"));
  if (answer.status === 503 && wait > 0) words += ` (Try again in ${wait} s.)`;
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("token-needed", { detail: words }));
  return new ServiceError(words, answer.status);
}

/** Only the newest of several questions is answered: those before it are called off. */
export function newest() {
  let current = null;
  return async (question) => {
    if (current) current.abort();
    const mine = (current = new AbortController());
    try {
      const answer = await question(mine.signal);
      return mine === current ? { answer } : { late: true };
    } catch (error) {
      if (error.name === "AbortError" || mine !== current) return { late: true };
      return { error };
    }
  };
}
