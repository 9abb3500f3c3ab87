package cli

import (
	"slices"
	"time"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// workNouns are the commands of the nouns of the work about which nothing is special.
func workNouns() []tree.Command {
	escalation, session, schedule := noun.Called("escalation"), noun.Called("session"), noun.Called("schedule")
	issue, check := noun.Called("issue"), noun.Called("check")
	notification, digest := noun.Called("notification"), noun.Called("digest")
	return slices.Concat([]tree.Command{
		escalation.ListCommand("questions that agents have handed to people", "yardmaster escalation list --state open"),
		escalation.ViewCommand("one escalation"),
		session.ListCommand("the newest sessions"),
		session.ViewCommand("one session: its calls, tokens and cost"),
		{Words: "session watch", Args: "ID", Summary: "follow what happens in a session", Of: session, Define: tree.Nothing(runSessionWatch),
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
	}, commandsOf(
		act{words: "escalation resolve", args: "ID [NOTE]…", summary: "say that a person has dealt with it",
			op: "escalation.resolve", of: escalation,
			plain: []string{"note"}, done: "{id} is resolved.", next: "yardmaster escalation list --state open has what is left.",
			examples: []string{`yardmaster escalation resolve @last "We keep the old format."`}},
		act{words: "session replay", args: "ID",
			summary: "what another policy would have decided in a finished session", op: "session.replay", of: session,
			text: "yml", more: "The policy file is given with --file.",
			next:     "Nothing has changed.",
			examples: []string{"yardmaster session replay @last --file policy.yml"}},
		act{words: "session message", args: "RUN [TEXT]…", summary: "say something to the agent of a live run",
			op: "session.message", plain: []string{"runId"}, picks: pickRun,
			text: "message", next: "yardmaster session watch shows what the agent does then.",
			examples: []string{`yardmaster session message RUN "Leave the parser alone."`}},
		act{words: "issue escalate", args: "ID [REASON]…", summary: "ask a person to decide about an issue",
			op: "issue.escalate", of: issue, text: "reason",
			done: "A person is asked.", next: "yardmaster escalation list --state open shows the question.",
			examples: []string{`yardmaster issue escalate acme/web#12 --category unclear "Which browsers are meant?"`}},
		act{words: "issue handoff", args: "ID [REASON]…", summary: "hand an issue to a webhook of the account",
			op: "issue.handoff", of: issue, text: "reason",
			done: "It is handed off.", next: "yardmaster webhook deliveries shows what became of it."},
		act{words: "schedule create", summary: "file an ask again and again", op: "schedule.create", made: schedule,
			done: "Schedule {id} is made.", says: filesNext("Schedule {id} is made; it files its ask next at {next_at}."),
			next:     "Undo: yardmaster schedule delete {id}",
			examples: []string{`yardmaster schedule create --title "Update dependencies" --body "Raise what is newer." --cron "0 6 * * 1-5"`}},
		act{words: "schedule update", args: "ID", summary: "change a schedule", op: "schedule.update", of: schedule,
			done: "Changed.", says: filesNext("Changed: it files its ask next at {next_at}."),
			next: "yardmaster schedule view {id} shows it all."},
		act{words: "schedule pause", args: "ID", summary: "have it file nothing", op: "schedule.update", of: schedule,
			fixed: map[string]string{"paused": "true"},
			done:  "Paused.", next: "Undo: yardmaster schedule resume {id}"},
		act{words: "schedule resume", args: "ID", summary: "have it file asks again", op: "schedule.update",
			of: schedule, fixed: map[string]string{"paused": "false"},
			done: "It files its ask again.", says: filesNext("It files its ask next at {next_at}."),
			next: "Undo: yardmaster schedule pause {id}"},
		act{words: "schedule run", args: "ID", summary: "file its ask now, besides its times", op: "schedule.run_now", of: schedule,
			done: "Its ask {ask_id} is filed.", next: "yardmaster ask view {ask_id} shows what becomes of it."},
		act{words: "schedule delete", args: "ID", summary: "delete a schedule", op: "schedule.delete", of: schedule, done: "Deleted.",
			next: "yardmaster schedule create makes another."},
		act{words: "notification read", args: "ID", summary: "mark it as read", op: "notification.read", of: notification, done: "Read.",
			next: "Undo: yardmaster notification unread {id}"},
		act{words: "notification unread", args: "ID", summary: "mark it as unread again", op: "notification.unread",
			of: notification, done: "Unread.",
			next: "Undo: yardmaster notification read {id}"},
		act{words: "notification archive", args: "ID", summary: "put it away", op: "notification.archive",
			of: notification, done: "Archived.",
			next: "Undo: yardmaster notification unread {id}"},
		act{words: "notification read-all", summary: "mark all as read", op: "notification.read_all", done: "All are read.",
			next: "yardmaster notification list --state all still has them."},
	))
}

// filesNext says when a schedule files its ask next, as ages are told, if it files any.
func filesNext(done string) func(o occasion) (string, string) {
	return func(o occasion) (string, string) {
		if o.answer["next_at"] == nil { // it is paused
			return "", ""
		}
		return client.Times(o.done(done), time.Now()), ""
	}
}
