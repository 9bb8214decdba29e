// What is shown stands in the address, so that it can be sent to somebody, or kept.

const parameters = new URLSearchParams(location.search);

export function asked(name) {
  return parameters.get(name);
}

export function remember(values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") parameters.delete(name);
    else parameters.set(name, String(value));
  }
  const text = parameters.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}
