// Why tasks wait.
import { taskStalls } from "../client.gen";
import { Clears, Until } from "../cards/hold";
import { NamedTask } from "../cards/named";
import { useOne } from "../list";
import { useEvery } from "../ui/every";
import { many } from "../ui/money";
import { Coming } from "../ui/parts";
import { waits } from "../ui/say";
import { Time } from "../ui/time";

export function Why() {
  const stalls = useOne("stalls", (signal) => taskStalls({ per_page: 20 }, { signal }), {
    counts: ["tasks", "runners", "repos"],
  });
  useEvery(10, () => void stalls.load(), [stalls]); // a key that is added has no topic
  const all = stalls.value.value?.data;
  if (all?.length === 0) return null; // nothing in the queue is held up
  return (
    <>
      <h2>Why it waits</h2>
      {!all ? (
        <Coming of={stalls} />
      ) : (
        <ul class="cards" id="stalls">
          {all.map((s) => (
            <li key={s.reason + JSON.stringify(s.clear)} class="item">
              <div>
                <p>
                  <strong>{waits(s.reason)}</strong>
                  <span class="dim">
                    , {many(s.count, "task")}, since <Time at={s.since} suffix={false} />,
                  </span>{" "}
                  <Until text={s.clears_when} clear={s.clear} />
                </p>
                <p class="dim">
                  {s.task_ids.slice(0, 3).map((id, i) => (
                    <>
                      {i > 0 && ", "}
                      <NamedTask id={id} />
                    </>
                  ))}
                  {s.count > 3 && ` and ${s.count - 3} more`}
                </p>
              </div>
              <div class="acts">
                <Clears of={s.clear} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
