package plan

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of plans that clients follow.
var Topic = event.Plans

// GroupTopic is the list of their groups. No event is of it: groups change with their plan
// and its tasks.
var GroupTopic = &event.Topic{Name: "groups", Scope: policy.ReadTasks, Key: "plan_id", Fixed: true}

// The data of events.
type (
	createdData struct {
		Dir      *string `json:"dir" doc:"where its documents are committed; null without documents"`
		Groups   int     `json:"groups" doc:"how many groups it has"`
		Held     bool    `json:"held" doc:"whether it waits for approval"`
		Revision int64   `json:"revision" doc:"which reading of the directory it is, from 1"`
		Source   string  `json:"source" doc:"the way it came about: execute, file or triage"`
		Title    string  `json:"title" doc:"its title"`
	}
	startedData struct {
		Held   bool   `json:"held" doc:"whether it will wait for approval"`
		TaskID string `json:"task_id" doc:"its scout"`
		Title  string `json:"title" doc:"its title"`
	}
	tasksData struct {
		TaskIDs []string `json:"task_ids" doc:"the tasks that were created"`
	}
	draftedData struct {
		Groups int    `json:"groups" doc:"how many groups it has"`
		Title  string `json:"title" doc:"its title"`
	}
	failedData struct {
		Reason string `json:"reason" doc:"why, in words"`
	}
	cancelledData struct {
		AlreadyFinished   []string `json:"already_finished" doc:"tasks that were over"`
		ReviewsNotStopped []string `json:"reviews_not_stopped" doc:"reviews of pull requests that are still open"`
		Status            string   `json:"status" doc:"state of the plan after the event"`
		Stopped           []string `json:"stopped" doc:"tasks that were cancelled"`
	}
	regroupedData struct {
		Groups           []string `json:"groups" doc:"the new groups"`
		Revived          []string `json:"revived" doc:"tasks that are back in the queue"`
		SupersededGroups []string `json:"superseded_groups" doc:"the groups whose place the new ones took"`
		SupersededTasks  []string `json:"superseded_tasks" doc:"their tasks, which were cancelled"`
		TaskIDs          []string `json:"task_ids" doc:"the tasks of the new groups"`
	}
	unlinkedData struct {
		After   []Edge   `json:"after" doc:"what the group waits for now"`
		Before  []Edge   `json:"before" doc:"what it waited for"`
		GroupID string   `json:"group_id" doc:"the group that waits for less"`
		Reason  string   `json:"reason" doc:"why the order no longer matters, in the words of the caller"`
		Revived []string `json:"revived" doc:"tasks that are back in the queue"`
	}
	switchData struct {
		Changed bool `json:"changed" doc:"false: it was so before"`
		Enabled bool `json:"enabled" doc:"whether plan documents may be filed"`
	}
)

// The events of a plan.
var (
	createdEvent   = event.Declare[createdData]("plan.created", Topic, "A plan was created, with its groups.")
	startedEvent   = event.Declare[startedData]("plan.started", Topic, "A scout was sent to draft a plan.")
	fannedOutEvent = event.Declare[tasksData]("plan.fanned_out", Topic, "Scouts were sent into several repositories.")
	draftedEvent   = event.Declare[draftedData]("plan.drafted", Topic, "The scout of the plan came back with its groups.")
	FailedEvent    = event.Declare[failedData]("plan.failed", Topic, "The scout of the plan came back without groups.")
	approvedEvent  = event.Declare[tasksData]("plan.approved", Topic, "Somebody approved the plan, and its tasks were created.")
	cancelledEvent = event.Declare[cancelledData]("plan.cancelled", Topic, "Somebody cancelled what of the plan was not over.")
	regroupedEvent = event.Declare[regroupedData]("plan.regrouped", Topic, "Other groups took the place of some of the plan's.")
	unlinkedEvent  = event.Declare[unlinkedData]("plan.unlinked", Topic, "A group of the plan waits for fewer others.")
	switchedEvent  = event.Declare[switchData]("plan.file_switch_set", Topic, "Somebody said whether plan documents may be filed.")
)

// Mended are the events of a plan after which units of it that had failed may count no more.
var Mended = []event.Any{regroupedEvent, unlinkedEvent, cancelledEvent, draftedEvent}

// Finished is a plan that is done.
type Finished struct {
	PlanID  string
	AskID   *string  // the ask that it was made of; nil: none
	TaskIDs []string // in the order of its groups
}

// Ended is sent when a plan is done: all its groups are.
var Ended = event.DeclareSignal[Finished]("plan.ended", "A plan is done.")
