// The doors of the side bar, and the pages behind each: tabs above a page, a column beside
// those of the settings, and the way back above one object.
import { useEffect, useRef } from "preact/hooks";
import { pages, type Entry } from "./pages";
import { match } from "./route";
import { may, me, operator } from "./session";
import { Icon, type IconName } from "./ui/icon";

// listed are the pages with a name that the person may see.
export const listed = () =>
  pages.filter((p) => p.name && (!p.needs || may(p.needs)) && (!p.operators || operator.value));

const doors: { name: string; icon: IconName; sections: string[] }[] = [
  { name: "Home", icon: "house", sections: ["Home"] },
  { name: "Inbox", icon: "inbox", sections: ["Inbox"] },
  { name: "Work", icon: "layers", sections: ["Work"] },
  { name: "Pull requests", icon: "git-pull-request", sections: ["Pull requests"] },
  { name: "Repositories", icon: "folder-git-2", sections: ["Repositories"] },
  { name: "Fleet", icon: "server", sections: ["Fleet"] },
  { name: "Insight", icon: "chart-column", sections: ["Insight"] },
  { name: "Settings", icon: "settings", sections: ["Settings", "Platform"] },
];

export type Door = { name: string; icon: IconName; ways: Entry[] };

// open are the doors behind which there is a page for the person.
export const open = (): Door[] =>
  doors
    .map((d) => ({ name: d.name, icon: d.icon, ways: listed().filter((p) => d.sections.includes(p.section ?? "")) }))
    .filter((d) => d.ways.length > 0);

export const address = (p: Entry) => (p.path === "/ui" ? "/ui/" : p.path);

// place is the page with a name that is nearest to an address.
export function place(shown: string): Entry | undefined {
  const path = pages.find((p) => p.under && match(p.path, shown))?.under ?? shown;
  return listed()
    .filter((p) => (p.path === "/ui" ? /^\/ui\/?$/.test(path) : (path + "/").startsWith(p.path + "/")))
    .sort((a, b) => b.path.length - a.path.length)[0];
}

// Within leads from a page to the others behind its door.
export function Within(p: { shown: string; of: Entry }) {
  const here = place(p.shown),
    door = here && open().find((d) => d.ways.includes(here));
  if (!here || !door) return null;
  if (door.name === "Settings") return <Column of={door.ways} here={here} />;
  if (!p.of.name && !p.of.under)
    return (
      <nav class="crumbs" aria-label="Way back">
        {door.ways.length > 1 && door.name !== here.name && (
          <>
            <span>{door.name}</span>
            <Icon of="chevron-right" />
          </>
        )}
        <a href={address(here)}>{here.name}</a>
      </nav>
    );
  return door.ways.length > 1 ? (
    <nav class="tabs within" aria-label={door.name + ", its pages"}>
      {door.ways.map((w) => (
        <Way key={w.path} of={w} here={w === here} />
      ))}
    </nav>
  ) : null;
}

function Column(p: { of: Entry[]; here: Entry }) {
  const parts = [...new Set(p.of.map((w) => w.section!))];
  return (
    <nav class="side2" aria-label="Settings, its pages">
      {parts.map((s) => (
        <div key={s}>
          {parts.length > 1 && <h2>{s}</h2>}
          {p.of
            .filter((w) => w.section === s)
            .map((w) => (
              <Way key={w.path} of={w} here={w === p.here} />
            ))}
        </div>
      ))}
    </nav>
  );
}

function Way(p: { of: Entry; here: boolean }) {
  const way = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (p.here) way.current!.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [p.here, me.value]);
  return (
    <a ref={way} href={address(p.of)} aria-current={p.here ? "page" : undefined}>
      {p.of.name}
    </a>
  );
}
