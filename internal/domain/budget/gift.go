package budget

// Gift is the scope of the meter of a gift: calls over a key that its account has lent count for
// it and for the account's month, and for nothing of who makes them. The session of such calls
// is the gift, by its id.
const Gift = "gift"

// giftSubject makes gifts subjects too: for each, who has lent the key, and what calls may cost.
const giftSubject = ` UNION ALL SELECT d.account_id, NULL, NULL, NULL, '', '', '` + Gift + `', d.micros, d.id, NULL,
	a.spend_cap_micros, d.parked_at IS NOT NULL FROM donations d JOIN accounts a ON a.id = d.account_id WHERE d.id = $1`

// giftMeters are the meters of the calls over a gift.
func giftMeters(sub subject, period string, month *int64) []Meter {
	return []Meter{{Account, sub.AccountID, period, lower(sub.CapMicros, month)}, {Gift, *sub.Served, "", sub.TaskMicros}}
}
