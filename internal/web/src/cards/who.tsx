// Who did something, in words: the login of a member in the place of an id.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { account } from "../api";
import { memberList, type OrgMember } from "../client.gen";
import { may, me } from "../session";
import { whoOf } from "./events";

// The members of the account that is looked at. One answer serves every name on the page.
const team = signal<{ of: string; at: number; members: OrgMember[] }>({ of: "", at: 0, members: [] });

// read asks for the members, again at most every half minute if somebody is not among them.
function read(id: string) {
  const of = account.value || me.value?.account.id || "", had = team.peek();
  if (had.of === of && (had.members.some((m) => m.user_id === id) || Date.now() - had.at < 30_000)) return;
  team.value = { of, at: Date.now(), members: had.of === of ? had.members : [] };
  if (may(memberList)) void memberList({}).then((r) => { if (team.peek().of === of) team.value = { ...team.peek(), members: r.data }; }, () => undefined);
}

export function Who(p: { of: string }) {
  const id = p.of.startsWith("user:") ? p.of.slice(5) : "";
  useEffect(() => { if (id) read(id); }, [id]);
  return <>{id && id === me.value?.user?.id ? "you" : p.of === "policy" ? "the policy" : whoOf(p.of, team.value.members)}</>;
}
