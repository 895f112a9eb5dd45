import { useState } from "preact/hooks";
import { cut, firstLine, pieces, plainly } from "../lib/text";

/** Text of others: always shown as text, with a name in place of what cannot be seen. */
export function Text({ value }: { value: string }) {
  const found = pieces(value);
  if (found.length === 1 && !found[0]?.odd) return <bdi>{value}</bdi>;
  return (
    <bdi>
      {found.map((piece, at) =>
        piece.odd ? (
          <span key={at} class="odd" title="a character that cannot be seen">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

/** One line of a text of others; the whole of it is in the title. */
export function Line({ value, most = 120 }: { value: string; most?: number }) {
  const line = cut(firstLine(value), most);
  return (
    <span class="line" title={plainly(cut(value, 2000))}>
      <Text value={line} />
    </span>
  );
}

/** A text of others with all its lines. The rest of a long one is a click away. */
export function Block({ value, most = 4000 }: { value: string; most?: number }) {
  const [whole, setWhole] = useState(false);
  const isLong = value.length > most;
  return (
    <>
      <pre class="block" tabIndex={0}>
        <Text value={whole ? value : cut(value, most)} />
      </pre>
      {isLong && (
        <button type="button" class="quiet" onClick={() => setWhole(!whole)}>
          {whole ? "show less" : `show all ${value.length.toLocaleString("en")} characters`}
        </button>
      )}
    </>
  );
}

/** Characters of a name that are seen wherever it stands. */
const ALWAYS_SEEN = 12;

/** An id or a name, to be compared letter by letter. A table may cut it; the title has it all. */
export function Name({ value, most = 60 }: { value: string; most?: number }) {
  return (
    <code class="name" title={value.length > ALWAYS_SEEN ? plainly(cut(value, 2000)) : undefined}>
      <Text value={cut(value, most)} />
    </code>
  );
}

/** The id of a job; on a narrow screen its end, which tells jobs of the same time apart. */
export function Id({ value }: { value: string }) {
  return (
    <>
      <span class="if-wide">
        <Name value={value} />
      </span>
      <span class="if-narrow" aria-hidden="true">
        <Name value={`…${value.slice(-6)}`} />
      </span>
    </>
  );
}
