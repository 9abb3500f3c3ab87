// table is an object that has its own members alone, so that it may be asked for any text:
// what a stranger has named "constructor" is in no table.
export const table = <T>(of: Record<string, T>): Record<string, T> => Object.assign(Object.create(null), of);
