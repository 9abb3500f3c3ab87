package task

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// setupProblem is the problem of tasks of kind setup.
const setupProblem = `Look this repository over and give it the base that people and agents need to work in it. Nobody has told you what it is made of: find out, and believe what you can run over what a document says.

1. Stack. Find the languages, their versions, package managers, frameworks, data stores, services and deployment targets, from manifests, lock files, CI configuration and container files. Name the file that each finding comes from, and say what you could not tell.

2. Scripts. Every everyday errand is to be one command from a fresh checkout: install what is needed, run, test, check style and types, build. Keep the commands that are there and work; add the missing ones in the way the repository already uses (its task runner, package scripts, a Makefile, else a folder of scripts). Run each of them, and say which ones you could not run and why.

3. Tools for agents. Write .mcp.json in the root, with the MCP servers that fit the stack. It refers to credentials by the names of environment variables and holds none. Keep entries that are there.

4. Project brain. Write AGENTS.md in the root, short, for somebody who starts here today: what the project is for, how it is laid out, the commands above, the conventions that the code keeps to, what breaks easily, and where to read more. Keep what people wrote there; correct it where it is wrong.

5. Checks. Where .svc/policy.yml names no command of checks, propose one: in checks.command, the one that runs the tests, which you have run. If there is no such file, write it with "version: 1" and that. Say in your report that each change is held against it from then on.

Change nothing of what the product does, and add no dependency that it ships with. Report what you found, what you added, what is broken or missing that you left alone, and what only a person can decide.`

// freshProblem is the problem of a repository that was made a moment ago. What its owner
// wants follows it.
const freshProblem = `This repository was made a moment ago and holds only the files that each new repository begins with: a README, AGENTS.md, .mcp.json, .svc/policy.yml and scripts/check. Give it the base that people and agents need to work in it.

1. Stack. What its owner wants stands at the end. Choose what is plain and common where nothing is said, and say in your report what you chose and why. Lock the versions.

2. Skeleton. The smallest program of that stack that installs, starts and answers, with one test that fails if it does not. No features beyond that.

3. Scripts. Every everyday errand is one command from a fresh checkout: install, run, test, check style and types, build. scripts/check runs all checks; replace what it does for stacks that are not here. Run each command, and say which ones you could not run and why.

4. Words. Bring README.md and AGENTS.md in line with what there is now. Add to .mcp.json the servers that fit the stack; it refers to credentials by the names of environment variables and holds none. Leave .svc/policy.yml alone unless the command of its checks is wrong.

Report what you made, what is missing, and what only a person can decide.`

// Fresh is what the owner of a new repository wants, in words.
type Fresh struct{ Description, Stack, UserID string }

// SetUpFresh queues the task that sets up a repository which was made a moment ago. It
// returns the faults of Queue.Admit.
func (s *Service) SetUpFresh(tx *db.Tx, repo Repo, f Fresh) (Row, error) {
	problem := freshProblem
	if f.Description != "" {
		problem += "\n\nWhat it is for, in the words of its owner: " + f.Description
	}
	if f.Stack != "" {
		problem += "\n\nWhat it is to be made of, in the words of its owner: " + f.Stack
	}
	return s.Create(tx, repo, Spec{Kind: KindSetup, Sink: SinkQueued, Title: "Set up " + repo.FullName(), Problem: problem,
		Priority: DefaultPriority, Confidence: 1, RequestedBy: &f.UserID})
}

type setupIn struct {
	Owner string `json:"owner" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"web" doc:"name of the repository, without the owner"`
}

// setup queues the task that gives a repository its base. It returns fault.NotFound for
// a repository that is unknown or not enabled.
func (s *Service) setup(ctx context.Context, in setupIn) (out Dispatched, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		repo, ok, err := s.RepoByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !repo.Enabled {
			return fault.New(fault.NotFound, "", "There is no such repository, or it is not enabled.")
		}
		t, err := s.Create(tx, repo, Spec{Kind: KindSetup, Sink: SinkQueued, Title: "Set up " + repo.FullName(), Problem: setupProblem,
			Priority: DefaultPriority, Confidence: 1})
		if err != nil {
			return err
		}
		out, err = s.dispatched(tx, &t)
		return err
	})
	return out, err
}
