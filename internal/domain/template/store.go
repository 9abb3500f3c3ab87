package template

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/op"
)

type row struct {
	Name      string
	Body      db.JSON[AgentTemplate]
	CreatedAt time.Time
	UpdatedAt time.Time
}

func (r row) template() AgentTemplate {
	t := r.Body.V
	t.Name, t.CreatedAt, t.UpdatedAt = r.Name, &r.CreatedAt, &r.UpdatedAt
	return t
}

var (
	byName = db.Q[row](`SELECT name, body, created_at, updated_at FROM templates WHERE account_id = $1 AND name = $2`)
	upsert = db.S(`INSERT INTO templates (account_id, name, body, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (account_id, name) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at`)
	remove = db.S(`DELETE FROM templates WHERE account_id = $1 AND name = $2`)
)

// ByName finds a template of an account. The default one is always there.
func ByName(tx *db.Tx, account, name string) (AgentTemplate, bool, error) {
	r, ok, err := byName.Maybe(tx, account, name)
	switch {
	case err != nil:
		return AgentTemplate{}, false, err
	case ok:
		return r.template(), true, nil
	case name == Default:
		return fresh(Default), true, nil
	}
	return AgentTemplate{}, false, nil
}

func list(tx *db.Tx, p op.PageIn) ([]AgentTemplate, error) {
	b := db.Build(`SELECT name, body, created_at, updated_at FROM templates WHERE account_id = `, tx.Account)
	after := p.After()
	if len(after) == 1 {
		b.And("name > ", after[0])
	}
	rows, err := db.Select[row](tx, b.SQL(" ORDER BY name LIMIT ", p.Size()))
	if err != nil {
		return nil, err
	}
	out := make([]AgentTemplate, 0, len(rows)+1)
	for _, r := range rows {
		out = append(out, r.template())
	}
	return out, nil
}
