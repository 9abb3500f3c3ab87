// What somebody means to do, from the press of a button to the answer of the server.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, uuid, type Call } from "../api";

// settled says that the server has decided about a call, so that the next one is another
// call. What was not let in, and what failed at the server or on the way, may be sent again
// as it is: done already, it is answered as it was the first time.
const settled = (e: unknown) => e instanceof Problem && e.status < 500 && ![401, 408, 425, 429].includes(e.status);

// useIntent sends a call with a key of its own for each intent: the same input until it is
// settled. It counts the seconds down that the server says to wait.
export function useIntent<In, Out>(call: Call<In, Out>) {
  const [busy, setBusy] = useState(false),
    [wait, setWait] = useState(0);
  const sent = useRef({ key: "", input: "" });
  useEffect(() => {
    if (!wait) return;
    const t = setTimeout(() => setWait(wait - 1), 1000);
    return () => clearTimeout(t);
  }, [wait]);
  const send = async (input: In): Promise<Out> => {
    const text = call.id + JSON.stringify(input);
    if (!sent.current.key || sent.current.input !== text) sent.current = { key: uuid(), input: text };
    setBusy(true);
    try {
      const out = await call(input, { key: sent.current.key });
      sent.current.key = "";
      return out;
    } catch (e) {
      if (settled(e)) sent.current.key = "";
      if (e instanceof Problem && e.later) setWait(Math.max(1, e.after));
      throw e;
    } finally {
      setBusy(false);
    }
  };
  return { send, busy, wait, off: busy || wait > 0 };
}
