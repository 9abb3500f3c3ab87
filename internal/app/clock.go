package app

import (
	"yardmaster/internal/api/idempotency"
	"yardmaster/internal/clock"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/hostlimit"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/mail"
)

// keeper lists the owners of waits, which a clock that is set back would prolong.
func (a *App) keeper() *clock.Keeper {
	return &clock.Keeper{DB: a.db, Logger: a.log, Waits: []func(*db.Tx) error{
		a.parts.run.ClockSetBack,
		a.parts.schedule.ClockSetBack,
		box.ClockSetBack,
		ci.ClockSetBack,
		delivery.ClockSetBack,
		hostlimit.ClockSetBack,
		idempotency.ClockSetBack,
		mail.ClockSetBack,
		mergequeue.ClockSetBack,
		quota.ClockSetBack,
		repo.ClockSetBack,
		source.ClockSetBack,
		task.ClockSetBack,
		webhook.ClockSetBack,
	}}
}
