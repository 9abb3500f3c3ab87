// Digests: what happened, by day and by week.
import { digestList } from "../client.gen";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { useEvery } from "../ui/every";
import { inert } from "../ui/ansi";
import { Coming, Empty, Head, More } from "../ui/parts";
import { Time } from "../ui/time";

export default function Digests() {
  const limit = Math.min(100, Number(query().get("limit")) || 30),
    one = useOne("digests" + limit, (signal) => digestList({ limit }, { signal })),
    d = one.value.value;
  useEvery(30, () => void one.load(), [one]);
  return (
    <>
      <Head title="Digests" count={d?.data.length} />
      {!d ? (
        <Coming of={one} />
      ) : d.data.length === 0 ? (
        <Empty>The first digest is made at eight in the morning, in the time zone of the organisation.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Digests">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Period</th>
                <th>Of the</th>
                <th>Headline</th>
                <th>Made</th>
              </tr>
            </thead>
            <tbody>
              {d.data.map((x) => (
                <tr key={x.id}>
                  <td>
                    <a href={"/ui/digests/" + x.id}>{x.period}</a>
                  </td>
                  <td>{x.kind === "daily" ? "day" : "week"}</td>
                  <td class={x.quiet ? "dim" : undefined}>{inert(x.headline)}</td>
                  <td>
                    <Time at={x.created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {d?.has_more && limit < 100 && <More of={{ more: true, older: () => setQuery({ limit: "100" }) }} />}
    </>
  );
}
