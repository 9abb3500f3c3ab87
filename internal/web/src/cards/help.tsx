// The table of the keys that do something now.
import { Dialog } from "../ui/dialog";
import { all, setSingle, single } from "../ui/keys";
import { table } from "../own";

// Names of keys as they stand on keyboards.
const caps: Record<string, string> = table({
  ArrowDown: "↓",
  ArrowUp: "↑",
  PageDown: "PgDn",
  PageUp: "PgUp",
  Escape: "Esc",
});

export function Help(p: { close: () => void }) {
  const groups = new Map<string, { keys: string; does: string }[]>([
    ["Everywhere", [{ keys: "Ctrl K, ⌘ K", does: "find anything: pages, objects, actions, every capability" }]],
  ]);
  for (const b of all()) {
    const g = b.group ?? "This page",
      own = groups.get(g) ?? [];
    if (!own.some((x) => x.keys === b.keys)) own.push(b);
    groups.set(g, own);
  }
  return (
    <Dialog title="Keys" close={p.close}>
      <p>
        What a word means and how a thing is done stands in{" "}
        <a href="/ui/docs" onClick={p.close}>
          the manual
        </a>
        .
      </p>
      <label class="check">
        <input type="checkbox" checked={single.value} onChange={(e) => setSingle(e.currentTarget.checked)} /> Single
        letters do something
      </label>
      {[...groups].map(([g, list]) => (
        <section key={g}>
          <h3>{g}</h3>
          <dl class="shortcuts">
            {list.map((b) => (
              <div key={b.keys}>
                <dt>
                  {b.keys.split(", ").map((k) => (
                    <kbd key={k}>{caps[k] ?? k}</kbd>
                  ))}
                </dt>
                <dd>{b.does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
