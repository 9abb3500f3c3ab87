// What was used of a gift, and what all gifts of the organisation came to.
import { donationList, type Donation, type ReceivedDonation } from "../client.gen";
import { useOne } from "../list";
import { whole } from "../whole";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { many, usd } from "../ui/money";
import { Meter } from "../ui/parts";

export const whats = { money: "Money", llm: "A key", compute: "A box" };

// Used is what was used of a gift, of what.
export function Used(p: { of: Donation | ReceivedDonation }) {
  const d = p.of,
    calls = many(d.calls, "call");
  if (d.kind === "compute") return null;
  if (d.usd === null)
    return (
      <span class="num">
        {usd(d.used_usd)} used in {calls}, no limit
      </span>
    );
  return (
    <Meter
      value={Number(d.used_usd)}
      max={Number(d.usd)}
      label={`${usd(d.used_usd)} of ${usd(d.usd)} used in ${calls}, ${usd(d.left_usd)} left`}
    />
  );
}

// Given is what others used over gifts of the organisation; nothing where it gives none.
export function Given() {
  const one = useOne("given", (signal) =>
      may(donationList)
        ? whole((cursor) => donationList({ cursor, per_page: 100 }, { signal }))
        : Promise.resolve({ data: [], next_cursor: null }),
    ),
    rows = (one.value.value?.data ?? []).filter((d) => d.kind !== "compute" && (d.state === "active" || d.calls > 0));
  if (!rows.length) return null;
  return (
    <>
      <h2>Given to open source</h2>
      <p class="dim">
        What others use of your gifts is paid by you, and counts for your budget. All of it is under{" "}
        <a href="/ui/settings/gifts">Gifts</a>.
      </p>
      <ul class="cards" aria-label="Gifts">
        {rows.map((d) => (
          <li key={d.id} class="item">
            <p>
              {whats[d.kind]} for{" "}
              {d.target === "pool" ? "every repository that takes gifts" : inert(d.target_repo_full_name ?? "")}
              {d.state === "parked" && <span class="dim"> · over</span>}
            </p>
            <div>
              <Used of={d} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
