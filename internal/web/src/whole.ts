// All rows of a collection at once, for what is chosen from: page after page, up to a number
// of pages that no form is good for.
import { projectList, type Repository } from "./client.gen";
import { useOne, type One, type Page } from "./list";
import { may } from "./session";

const most = 20; // pages of 100

// whole reads every page; next_cursor is there where even that was not all.
export async function whole<R>(page: (cursor: string | undefined) => Promise<Page<R>>): Promise<Page<R>> {
  const data: R[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < most; n++) {
    const one = await page(cursor);
    data.push(...one.data);
    if (!one.next_cursor) return { data };
    cursor = one.next_cursor;
  }
  return { data, next_cursor: cursor ?? null };
}

// repos are all repositories, none for whoever may not read them.
export const repos = (signal?: AbortSignal): Promise<Page<Repository>> =>
  may(projectList)
    ? whole((cursor) => projectList({ cursor, per_page: 100 }, signal ? { signal } : undefined))
    : Promise.resolve({ data: [] });

// useRepos are the repositories to choose from.
export const useRepos = (): One<Page<Repository>> => useOne("repos", repos);
