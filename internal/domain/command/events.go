package command

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

var audience = event.Audience(policy.ReadPRs)

type givenData struct {
	By    string `json:"by" doc:"who asked: user:<id>, or code-host:<login>"`
	Login string `json:"login" doc:"of whoever asked, at the code host"`
	PRID  string `json:"pr_id" doc:"the pull request"`
	State string `json:"state" doc:"done; declined: the pull request is in no state for it; not_permitted: they may not write there; silenced: too much was said in the thread"`
	Verb  string `json:"verb" doc:"review, rebase, fix, stop or explain"`
}

var givenEvent = event.Declare[givenData]("command.given", audience, "Somebody asked for something in a comment at the code host.")
