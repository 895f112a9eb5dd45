import { useEffect, useState } from "preact/hooks";
import { hearNews, type News } from "../lib/news";
import { Text } from "./text";

/** What just happened, at the edge of the page and for screen readers. */
export function Toasts() {
  const [news, setNews] = useState<readonly News[]>([]);
  useEffect(() => hearNews(setNews), []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {news.map((each) => (
        <p key={each.id} class={each.kind}>
          <Text value={each.text} />
        </p>
      ))}
    </div>
  );
}
