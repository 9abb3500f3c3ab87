// What happens in a run or a session, as it comes: its steps and its lines.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../route";
import { follow, type Frame, type Link } from "../sse";
import { inert } from "../ui/ansi";
import { Log } from "../ui/log";
import { many } from "../ui/money";
import { Trouble } from "../ui/parts";
import { words } from "../ui/status";
import { span } from "../ui/time";
import { kinds, type Step, type Transcript } from "../ui/transcript";
import { VList } from "../ui/vlist";

export type Tail = { state: Link; why: string; last: () => string };

const away = 30_000; // milliseconds for which a tab is hidden before it reads no more

// useTail reads the events of a stream while the tab is seen, and goes on after the last one
// that came. last is the id of that one.
export function useTail(url: string, on: (event: string) => void): Tail {
  const [state, setState] = useState<Link>("retrying"),
    [why, setWhy] = useState("");
  const take = useRef(on),
    last = useRef("");
  take.current = on;
  useEffect(() => {
    let off: AbortController | undefined,
      hidden = 0,
      over = false;
    last.current = "";
    const got = (batch: Frame[]) => {
      last.current = batch[batch.length - 1]!.id || last.current;
      for (const f of batch) if (f.event === "event") take.current(f.data);
    };
    const read = () => {
      if (off || over) return;
      off = new AbortController();
      void follow(url, got, off.signal, {
        resume: true,
        from: last.current,
        ended: (b) => (over ||= b.some((f) => f.event === "end")),
        state: (s, w) => {
          setState(s);
          setWhy(w ?? "");
        },
      });
    };
    const see = () => {
      clearTimeout(hidden);
      if (!document.hidden) return read();
      hidden = window.setTimeout(() => {
        if (over || !off) return;
        off.abort();
        off = undefined;
        setState("paused");
      }, away);
    };
    read();
    see();
    document.addEventListener("visibilitychange", see);
    return () => {
      document.removeEventListener("visibilitychange", see);
      clearTimeout(hidden);
      off?.abort();
    };
  }, [url]);
  return { state, why, last: () => last.current };
}

// Talk shows what a tail has read into lines. Of one that was refused before a line came
// there is nothing to show but why.
export function Talk(p: {
  lines: Transcript;
  of: "run" | "session";
  tail: Tail;
  controls?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const { lines, tail } = p;
  void lines.version.value;
  const live = tail.state !== "ended";
  if (tail.state === "refused" && lines.size === 0) return <Trouble error={new Error(tail.why)} />;
  return (
    <section class="room run" aria-label="Transcript">
      <p class="dim">
        <span class={"link " + tail.state}>
          {tail.state === "ended" ? `The ${p.of} is over.` : tail.state === "live" ? "Live" : words(tail.state)}
        </span>{" "}
        {tail.why} {tail.state === "live" && lines.now && <span>· {inert(lines.now)}</span>}
      </p>
      <div class="talkbox">
        {lines.steps.length > 0 && <Outline steps={lines.steps} live={live} />}
        <Log
          lines={lines}
          id="transcript"
          label={`Transcript of the ${p.of}`}
          tail={live}
          kinds={kinds}
          wrong={["bad", "fail"]}
        >
          {p.controls}
        </Log>
      </div>
      {p.children}
    </section>
  );
}

// Outline is the steps and how long each took. It stands beside the lines where there is room.
function Outline(p: { steps: Step[]; live: boolean }) {
  const [open] = useState(() => matchMedia("(min-width: 1200px)").matches),
    last = p.steps[p.steps.length - 1];
  const took = (s: Step) =>
    s.from === undefined || Number.isNaN(s.to) ? "" : s.to === undefined ? "…" : span((s.to - s.from) / 1000);
  return (
    <details class="outline" open={open}>
      <summary>{many(p.steps.filter((s) => !s.idle).length, "step")}</summary>
      <VList
        id="steps"
        role="region"
        label="Steps"
        count={p.steps.length}
        height={24}
        tail={p.live}
        row={(i) => {
          const s = p.steps[i]!;
          return (
            <div
              key={i}
              class={"step" + (s.idle ? " dim" : "")}
              aria-current={s === last && p.live ? "step" : undefined}
            >
              <a
                href={"#L" + (s.line + 1)}
                onClick={(e) => {
                  e.preventDefault();
                  go("#L" + (s.line + 1), { replace: true });
                }}
              >
                {inert(s.title)}
              </a>
              <span class="num">{took(s)}</span>
            </div>
          );
        }}
      />
    </details>
  );
}
