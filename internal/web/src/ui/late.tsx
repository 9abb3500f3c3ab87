// Late is a dialog whose code comes when it is first wanted.
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

type Body = FunctionComponent<{ close: () => void }>;

export function Late(p: { open: boolean; load: () => Promise<Body>; close: () => void }) {
  const [Body, set] = useState<Body>();
  useEffect(() => {
    if (p.open && !Body) void p.load().then((b) => set(() => b));
  }, [p.open]);
  return p.open && Body ? <Body close={p.close} /> : null;
}
