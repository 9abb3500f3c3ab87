package keys

// Tally begins a query that a Column counts its values with: what it counts
// must be named sealed, and the table follows.
const Tally = `SELECT CASE WHEN sealed LIKE 'v2.%' THEN substr(sealed, 4, 8) ELSE '' END AS key_id, COUNT(*) AS n FROM `
