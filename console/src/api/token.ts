// The key of whoever uses this tab. It lives as long as the tab does.

const PLACE = "lamplighter.token";

let known: string | null = read();

function read(): string | null {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null; // storage can be forbidden; then the key lives as long as the page
  }
}

/** Gives the token, if there is one. */
export function token(): string | null {
  return known;
}

/** Keeps a token; null forgets it. */
export function keepToken(value: string | null): void {
  known = value;
  try {
    if (value === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, value);
  } catch {
    // see read()
  }
}

/** Takes the token out of `#token=…`, so that it stands in no history and no link. */
export function takeToken(): void {
  const found = /^#token=([^&]*)(?:&(.*))?$/.exec(location.hash);
  if (!found) return;
  const value = decodeURIComponent(found[1] ?? "").trim();
  if (value) keepToken(value);
  history.replaceState(null, "", `${location.pathname}${location.search}#${found[2] ?? "/"}`);
}
