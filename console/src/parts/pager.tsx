import { type Filters, href, type Route } from "../lib/route";

/** The ways to the first page of a list and to the next, with the filters that are chosen. */
export function Pager({ route, next }: { route: Route; next: string | null }) {
  const begun = route.query.has("cursor");
  if (!begun && next === null) return null;
  const chosen: Filters = {};
  for (const name of new Set(route.query.keys())) chosen[name] = route.query.getAll(name);
  return (
    <nav class="pager" aria-label="pages of the list">
      {begun && <a href={href(route.parts, { ...chosen, cursor: null })}>first page</a>}
      {next !== null && <a href={href(route.parts, { ...chosen, cursor: next })}>next page</a>}
    </nav>
  );
}
