// Questions and commands to the broker. Addresses are relative, so that the page works behind any path.

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

const SENTENCES = {
  401: "Log in to see this.",
  403: "You do not have permission for this; it needs the right to “plans”.",
  404: "The broker does not know this.",
  409: "Somebody else has changed this meanwhile.",
  429: "Too many attempts. Wait a little, then try again.",
  503: "The broker is too busy to answer this now.",
};

async function sentenceOf(response) {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string" && detail) return detail;
  } catch {
    // not JSON: the status has to do
  }
  return SENTENCES[response.status] ?? `The broker answered with status ${response.status}.`;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refused(0, "The broker cannot be reached.");
  }
  if (!response.ok) {
    if (response.status === 401 && !path.startsWith("login")) window.dispatchEvent(new Event("logged-out"));
    throw new Refused(response.status, await sentenceOf(response));
  }
  return response.status === 204 ? null : response.json();
}

function send(method, path, value) {
  // The header proves that this page sends it: other sites cannot add one (docs/dashboard.md).
  const headers = { "Content-Type": "application/json", "X-Nearcast": "1" };
  return ask(path, { method, headers, body: JSON.stringify(value ?? {}) });
}

export function get(path, query = {}) {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const parameters = new URLSearchParams(asked);
  return ask(asked.length ? `${path}?${parameters}` : path);
}

export const post = (path, value) => send("POST", path, value);
export const put = (path, value) => send("PUT", path, value);
