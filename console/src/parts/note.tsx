import type { Note } from "../api/schema";
import { Text } from "./text";
import { Ago } from "./time";

/** Who did it, when and why. */
export function By({ note }: { note: Note }) {
  return (
    <span>
      by <Text value={note.by} /> <Ago at={note.at} />
      {note.reason && (
        <>
          : <Text value={note.reason} />
        </>
      )}
    </span>
  );
}
