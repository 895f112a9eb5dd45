// Who uses the console, and what they may do.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Me, Scope } from "./schema";

export type { Me, Scope };

const NOBODY: Me = { name: "", scopes: [], tenant: null };

export const Session = createContext<Me>(NOBODY);

/** Gives whoever uses the console. */
export function useMe(): Me {
  return useContext(Session);
}

/** What somebody must have to see a page. */
export interface Terms {
  scope: Scope;
  /** It is about all tenants, and not for those who have one. */
  whole?: boolean;
}

/** Tells whether a page is for whoever uses the console. */
export function useSees(): (page: Terms) => boolean {
  const me = useMe();
  return ({ scope, whole }) => me.scopes.includes(scope) && !(whole && me.tenant !== null);
}

/** Tells what whoever uses the console may do: `const may = useMay(); may("operator")`. */
export function useMay(): (scope: Scope) => boolean {
  const me = useMe();
  return (scope) => me.scopes.includes(scope);
}
