package join

import (
	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
)

// The data of events.
type (
	askedData struct {
		At      string `json:"at" doc:"user@host of the machine"`
		HostKey string `json:"host_key" doc:"the host key that was named: its fingerprint, or its kind and bytes; empty: none"`
	}
	joinedData struct {
		At    string `json:"at" doc:"user@host of the machine"`
		BoxID string `json:"box_id" doc:"the box that it is now"`
	}
	failedData struct {
		At     string `json:"at" doc:"user@host of the machine"`
		Reason string `json:"reason" doc:"why, as a word"`
	}
)

// The events of a machine that is joined over SSH. Their object is the row of it.
var (
	askedEvent  = event.Declare[askedData]("box.ssh_join_asked", box.Topic, "Somebody had the server join a machine over SSH.")
	joinedEvent = event.Declare[joinedData]("box.ssh_joined", box.Topic, "A machine was joined over SSH.")
	failedEvent = event.Declare[failedData]("box.ssh_join_failed", box.Topic, "A machine could not be joined over SSH.")
)
