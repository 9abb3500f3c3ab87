package cli

import (
	"slices"
	"time"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// workNouns are the commands of the nouns of the work about which nothing is special.
func workNouns() []tree.Command {
	escalation, session, schedule := noun.Called("escalation"), noun.Called("session"), noun.Called("schedule")
	issue, check := noun.Called("issue"), noun.Called("check")
	notification, digest, board := noun.Called("notification"), noun.Called("digest"), noun.Called("board")
	return slices.Concat([]tree.Command{
		escalation.ListCommand("questions that agents have handed to people", "yardmaster escalation list --state open"),
		escalation.ViewCommand("one escalation"),
		session.ListCommand("the newest sessions"),
		session.ViewCommand("one session: its calls, tokens and cost"),
		{Words: "session watch", Args: "ID", Summary: "follow what happens in a session", Of: session,
			Define:   tree.Nothing(runSessionWatch),
			Examples: []string{"yardmaster session watch @last"}},
		{Words: "session export", Args: "ID", Summary: "print what happened in a session, one JSON object a line", Of: session,
			Define: tree.Nothing(runSessionExport), Examples: []string{"yardmaster session export @last > session.jsonl"}},
		issue.ListCommand("the issues of a repository", "yardmaster issue list --repo acme/web --state open"),
		issue.ViewCommand("one issue, and what became of it", "yardmaster issue view acme/web#12"),
		schedule.ListCommand("the schedules"),
		schedule.ViewCommand("one schedule"),
		check.ListCommand("the checks that boxes run", "yardmaster check list --status failed"),
		{Words: "check log", Answers: "ci.log_url", Args: "ID", Summary: "print the whole output of a check", Of: check,
			Define:   defineCheckLog,
			Examples: []string{"yardmaster check log @last", "yardmaster check log @last --url"}},
		noun.Flake().NamedList("check flakes", "the failures of checks in a repository that come and go"),
		notification.ListCommand("what concerns you", "yardmaster notification list --state unread"),
		notification.ViewCommand("one notification, with the address of what it is about"),
		{Words: "notification settings", Args: "[KIND.CHANNEL=on|off]…", Summary: "what you are told of, and how; what is named is changed", Answers: "notification.prefs_list",
			Define: defineNotificationSettings, Examples: []string{"yardmaster notification settings",
				"yardmaster notification settings task_done.email=on", `yardmaster notification settings --quiet "22:00-07:00 Europe/Berlin"`}},
		digest.ListCommand("the digests"),
		digest.ViewCommand("one digest"),
		board.ListCommand("the boards"),
		board.ViewCommand("a board, with what each widget shows now"),
	}, act.Commands(
		act.Act{Words: "escalation resolve", Args: "ID [NOTE]…", Summary: "say that a person has dealt with it",
			Op: "escalation.resolve", Of: escalation,
			Plain: []string{"note"}, Done: "{id} is resolved.", Next: "yardmaster escalation list --state open has what is left.",
			Examples: []string{`yardmaster escalation resolve @last "We keep the old format."`}},
		act.Act{Words: "session replay", Args: "ID",
			Summary: "what another policy would have decided in a finished session", Op: "session.replay", Of: session,
			Text: "yml", More: "The policy file is given with --file.",
			Next:     "Nothing has changed.",
			Examples: []string{"yardmaster session replay @last --file policy.yml"}},
		act.Act{Words: "session message", Args: "RUN [TEXT]…", Summary: "say something to the agent of a live run",
			Op: "session.message", Plain: []string{"runId"}, Picks: pickRun,
			Text: "message", Next: "yardmaster session watch shows what the agent does then.",
			Examples: []string{`yardmaster session message RUN "Leave the parser alone."`}},
		act.Act{Words: "issue escalate", Args: "ID [REASON]…", Summary: "ask a person to decide about an issue",
			Op: "issue.escalate", Of: issue, Text: "reason",
			Done: "A person is asked.", Next: "yardmaster escalation list --state open shows the question.",
			Examples: []string{`yardmaster issue escalate acme/web#12 --category unclear "Which browsers are meant?"`}},
		act.Act{Words: "issue handoff", Args: "ID [REASON]…", Summary: "hand an issue to a webhook of the account",
			Op: "issue.handoff", Of: issue, Text: "reason",
			Done: "It is handed off.", Next: "yardmaster webhook deliveries shows what became of it."},
		act.Act{Words: "schedule create", Summary: "file an ask again and again", Op: "schedule.create", Made: schedule,
			Done: "Schedule {id} is made.", Says: filesNext("Schedule {id} is made; it files its ask next at {next_at}."),
			Next:     "Undo: yardmaster schedule delete {id}",
			Examples: []string{`yardmaster schedule create --title "Update dependencies" --body "Raise what is newer." --cron "0 6 * * 1-5"`}},
		act.Act{Words: "schedule update", Args: "ID", Summary: "change a schedule", Op: "schedule.update", Of: schedule,
			Done: "Changed.", Says: filesNext("Changed: it files its ask next at {next_at}."),
			Next: "yardmaster schedule view {id} shows it all."},
		act.Act{Words: "schedule pause", Args: "ID", Summary: "have it file nothing", Op: "schedule.update", Of: schedule,
			Fixed: map[string]string{"paused": "true"},
			Done:  "Paused.", Next: "Undo: yardmaster schedule resume {id}"},
		act.Act{Words: "schedule resume", Args: "ID", Summary: "have it file asks again", Op: "schedule.update",
			Of: schedule, Fixed: map[string]string{"paused": "false"},
			Done: "It files its ask again.", Says: filesNext("It files its ask next at {next_at}."),
			Next: "Undo: yardmaster schedule pause {id}"},
		act.Act{Words: "schedule run", Args: "ID", Summary: "file its ask now, besides its times", Op: "schedule.run_now", Of: schedule,
			Done: "Its ask {ask_id} is filed.", Next: "yardmaster ask view {ask_id} shows what becomes of it."},
		act.Act{Words: "schedule delete", Args: "ID", Summary: "delete a schedule", Op: "schedule.delete", Of: schedule, Done: "Deleted.",
			Next: "yardmaster schedule create makes another."},
		act.Act{Words: "notification read", Args: "ID", Summary: "mark it as read", Op: "notification.read", Of: notification,
			Done: "Read.",
			Next: "Undo: yardmaster notification unread {id}"},
		act.Act{Words: "notification unread", Args: "ID", Summary: "mark it as unread again", Op: "notification.unread",
			Of: notification, Done: "Unread.",
			Next: "Undo: yardmaster notification read {id}"},
		act.Act{Words: "notification archive", Args: "ID", Summary: "put it away", Op: "notification.archive",
			Of: notification, Done: "Archived.",
			Next: "Undo: yardmaster notification unread {id}"},
		act.Act{Words: "notification read-all", Summary: "mark all as read", Op: "notification.read_all", Done: "All are read.",
			Next: "yardmaster notification list --state all still has them."},
	))
}

// filesNext says when a schedule files its ask next, as ages are told, if it files any.
func filesNext(done string) func(o act.Occasion) (string, string) {
	return func(o act.Occasion) (string, string) {
		if o.Answer["next_at"] == nil { // it is paused
			return "", ""
		}
		return client.Times(o.Done(done), time.Now()), ""
	}
}
