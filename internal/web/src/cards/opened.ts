// Which changes were looked at in this tab.
const seen = new Set<string>();

// look notes that the changes of a head were shown.
export const look = (pr: string, head: string) => void seen.add(pr + ":" + head);

// opened tells whether the changes of a head were shown in this tab.
export const opened = (pr: string, head: string) => seen.has(pr + ":" + head);
