// Home: what waits for me, what runs, what went wrong, what it cost.
import { useEffect, useState } from "preact/hooks";
import { accountNextSteps, overviewBurn } from "../client.gen";
import { keys } from "../cards/decide";
import { Deck } from "../cards/deck";
import { First } from "../home/first";
import { useWaiting } from "../home/waiting";
import { countOf, useWrong } from "../home/wrong";
import { useOne } from "../list";
import { useEvery } from "../ui/every";
import { usd } from "../ui/money";
import { Figure, Head, Loading, Trouble } from "../ui/parts";
import { filing } from "./newtask";
import { more } from "../ui/more";
import { counts } from "../waits";

// The cards, and what is below them, come beside the figures: they are most of the page.
const later = Promise.all([import("../home/body"), more()]).then(([m]) => m);
type Body = Awaited<typeof later>;

export default function Home() {
  const steps = useOne("steps", (signal) => accountNextSteps({}, { signal }), {
    counts: ["repos", "runners", "tasks", "asks"],
  });
  const s = steps.value.value,
    begun = s && s.begun !== false;
  useEvery(5, () => {
    if (!begun) void steps.load(); // a key that is added has no topic
  }, [steps, begun]);
  return (
    <>
      <Head title="Home">
        <span class="grow" />
        <button type="button" class="main" title="c" {...filing()}>
          New
        </button>
      </Head>
      {s && !begun ? <First of={s} /> : s || steps.error.value ? <Work /> : <Loading />}
    </>
  );
}

function Work() {
  const waiting = useWaiting(),
    wrong = useWrong(waiting.needing);
  const burn = useOne("burn", (signal) => overviewBurn({}, { signal }), { counts: ["sessions"] });
  const [body, set] = useState<Body | undefined>(),
    [failed, fail] = useState<unknown>();
  useEffect(() => {
    let on = true;
    later.then(
      (m) => on && set(m),
      (e) => on && fail(e),
    );
    return () => {
      on = false;
    };
  }, []);
  const n = counts.value;
  // What is shown is the figure, unless there is more than was asked for.
  const waits = waiting.state.value === "ready" && waiting.total >= 0 ? waiting.total : n?.waiting_for_me.total;
  return (
    <>
      <div class="figures">
        <Figure n={waits} name={waits === 1 ? "Waits for you" : "Wait for you"} href="#waits" />
        <Figure n={n ? (n.running_tasks ?? "–") : undefined} name="Runs now" href="/ui/tasks?show=running" />
        <Figure n={countOf(wrong, waiting.pulls, n)} name="Went wrong, 24 h" href="#wrong" />
        <Figure
          n={burn.value.value ? usd(burn.value.value.cost_usd) : undefined}
          name="Spent, last hour"
          href="/ui/usage"
        />
        <Figure n={n?.merged_prs_24h} name="Merged, 24 h" href="#since" />
      </div>
      <div class="cols home">
        <div>
          <h2 id="waits">Waits for you</h2>
          {failed ? (
            <Trouble
              error={
                new Error("A part of the page could not be loaded. The server may have been replaced by a newer one.")
              }
              again={() => location.reload()}
            />
          ) : body ? (
            <>
              <Deck
                list={waiting}
                empty="Nothing waits for you."
                card={(w) => <body.WaitCard key={w.of.id} of={w} />}
                keys={keys}
              />
              <body.Rest wrong={wrong} above={waiting.pulls} />
            </>
          ) : (
            <Loading />
          )}
        </div>
        {body && <body.Beside />}
      </div>
    </>
  );
}
