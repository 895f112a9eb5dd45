import { useState } from "preact/hooks";
import { announce } from "../lib/news";
import { Block } from "./text";

/** A JSON value, as text with its structure. */
export function Json({ value }: { value: unknown }) {
  const [copied, setCopied] = useState(false);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "null");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      announce("the browser does not allow to copy here", "bad");
    }
  };
  return (
    <div class="json">
      <Block value={text} />
      <button type="button" class="quiet copy" onClick={copy}>
        {copied ? "copied" : "copy"}
      </button>
    </div>
  );
}
