// Data that cannot be read anew at present: parts inside say nothing about now.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { useAway, useStoreAway } from "../api/data";

/** Since when what is shown could not be read anew, in milliseconds since 1970. */
export const Stale = createContext<number | undefined>(undefined);

/** Tells a part since when its data are old; undefined: they are of now. */
export function useStale(): number | undefined {
  const away = useAway();
  const storeAway = useStoreAway();
  return useContext(Stale) ?? away ?? storeAway;
}
