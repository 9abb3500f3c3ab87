// The last two weeks on Home, as two drawings.
import { overviewFlow } from "../client.gen";
import { Ended, Lead } from "../cards/flow";
import { useOne } from "../list";
import { may } from "../session";
import { useEvery } from "../ui/every";
import { Coming } from "../ui/parts";

export function Weeks() {
  const one = useOne(
      "flow14",
      (signal) => (may(overviewFlow) ? overviewFlow({ days: 14 }, { signal }) : Promise.reject(new Error(""))),
      {
        counts: ["prs"],
      },
    ),
    f = one.value.value;
  useEvery(60, () => void one.load(), [one]);
  if (!may(overviewFlow)) return null;
  return (
    <div class="weeks" id="weeks">
      {!f ? (
        <Coming of={one} />
      ) : (
        <>
          <Ended of={f} href="/ui/flow" />
          <Lead of={f} href="/ui/flow" />
        </>
      )}
    </div>
  );
}
